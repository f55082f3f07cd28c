"""What a client sends as a prompt: words, files, selections and pictures, as a run takes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from acp.schema import (
    AudioContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from daiku.dataclass import dataclass
from daiku.domain.messages import Image
from daiku.domain.runs import ContextItem, Position, Range

Block: TypeAlias = (
    TextContentBlock
    | ImageContentBlock
    | AudioContentBlock
    | ResourceContentBlock
    | EmbeddedResourceContentBlock
)
_LINES = re.compile(r"#L(\d{1,9})(?:[:-]L?(\d{1,9}))?$")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt of a person."""

    text: str
    context: tuple[ContextItem, ...] = ()
    images: tuple[Image, ...] = ()


def read_prompt(blocks: Sequence[Block]) -> Prompt:
    """The prompt that `blocks` are. A file that is mentioned amid the words keeps its name there."""
    words: list[str] = []
    context: list[ContextItem] = []
    images: list[Image] = []
    for block in blocks:
        match block:
            case TextContentBlock(text=text):
                words.append(text)
            case ImageContentBlock(data=data, mime_type=mime):
                images.append(Image(media_type=mime, data=data))
            case ResourceContentBlock(uri=uri, name=name):
                words.append(f"@{name}")
                context.append(_item(uri, None))
            case EmbeddedResourceContentBlock(resource=TextResourceContents(uri=uri, text=text)):
                words.append(f"@{_name(uri)}")
                context.append(_item(uri, text))
            case _:
                pass  # sound, and bytes that are no text: not announced, so nobody sends them
    return Prompt("".join(words).strip(), tuple(context), tuple(images))


def _item(uri: str, text: str | None) -> ContextItem:
    lines = _LINES.search(uri)
    plain = uri[: lines.start()] if lines else uri
    if not plain.startswith("file:"):
        return ContextItem(kind="text" if text is not None else "url", uri=uri, text=text)
    if lines is None:
        return ContextItem(kind="file", uri=plain, text=text)
    first = max(int(lines[1]), 1) - 1
    last = max(int(lines[2] or lines[1]), first + 1)
    span = Range(start=Position(line=first, character=0), end=Position(line=last, character=0))
    return ContextItem(kind="selection", uri=plain, range=span, text=text)


def _name(uri: str) -> str:
    return uri.rstrip("/").rpartition("/")[2] or uri

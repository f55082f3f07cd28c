"""Convert ACP prompt blocks (text, files, selections, images) to the form of a run's request."""

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
class ClientPrompt:
    """A user prompt."""

    text: str
    context: tuple[ContextItem, ...] = ()
    images: tuple[Image, ...] = ()


def read_prompt(blocks: Sequence[Block]) -> ClientPrompt:
    """Convert `blocks` to a prompt; a file mentioned in the text keeps its name there."""
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
                pass  # audio and binary resources: not announced, so clients do not send them
    return ClientPrompt("".join(words).strip(), tuple(context), tuple(images))


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

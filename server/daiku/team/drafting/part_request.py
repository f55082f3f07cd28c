"""Build the requests to the draft and style agents for a part of a document."""

from __future__ import annotations

import re

from daiku.domain.base import Frozen
from daiku.domain.work.handovers import Brief
from daiku.prompts import render
from daiku.team.coding.handover_text import fence
from daiku.team.rules.drafting.headings import find_headings
from daiku.texts.rules.patterns import lazy

_KANA = re.compile(r"[\u3040-\u30ff]")
_LETTER = re.compile(r"[A-Za-z\u3040-\u30ff\u4e00-\u9fff]")
_POLITE = lazy(r"(?:です|ます|でした|ました|ません|でしょう|ください)(?:か|ね|よ)?[。！？!?\n]")
_PLAIN = lazy(r"(?:である|であった|だった|だ|した|する|ない|なる|れる|いる|ある|った|いた)[。！？!?\n]")
_SHARE = 0.1
_LEAST = 3


def is_japanese(text: str) -> bool:
    """Return True if a text is Japanese: at least a tenth of its letters are kana."""
    return len(_KANA.findall(text)) > _SHARE * max(1, len(_LETTER.findall(text)))


def detect_sentence_endings(text: str) -> str:
    """Return how the sentences of a Japanese text end, for the prompt; empty if mixed or unclear."""
    if not is_japanese(text):
        return ""
    polite, plain = len(_POLITE.findall(text)), len(_PLAIN.findall(text))
    if max(polite, plain) < _LEAST or min(polite, plain) * 3 > max(polite, plain):
        return ""
    return "敬体（です・ます）" if polite > plain else "常体（だ・である）"


class PartVariables(Frozen):
    """Template variables: a part of a document and facts about it; `text` is fenced already."""

    request: str
    path: str
    form: str
    depth: int
    part: int
    parts: int
    outline: str
    headings: tuple[str, ...]
    japanese: bool
    manner: str
    lessons: str
    text: str


def build_part_request(template: str, brief: Brief) -> str:
    """Build the request for the part in `brief` from `template`; the bare request if there is no document."""
    document = brief.document
    if document is None:
        return brief.request
    plain = document.text.replace("\r\n", "\n")
    return render(
        template,
        PartVariables(
            request=brief.request,
            path=document.path,
            form=document.form,
            depth=document.depth,
            part=document.part,
            parts=document.parts,
            outline=fence(document.outline, "~") if document.outline else "",
            headings=tuple(heading.format() for heading in find_headings(plain, document.form)),
            japanese=is_japanese(plain),
            manner=detect_sentence_endings(plain),
            lessons=document.lessons,
            text=fence(plain, "~"),
        ),
    ).strip()

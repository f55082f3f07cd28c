"""What draft and style are told of the part that they work on."""

from __future__ import annotations

from daiku.agents.coding.handover_text import fenced
from daiku.core.drafting.headings import headings
from daiku.core.drafting.manner import is_japanese, manner_of
from daiku.domain.base import Frozen
from daiku.domain.work.handovers import Brief
from daiku.prompts import render


class PartVariables(Frozen):
    """A part of a document with what has to be known of it; `text` is fenced already."""

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


def part_request(template: str, brief: Brief) -> str:
    """The request made from `template` for the part in `brief`; the bare request where there is none."""
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
            outline=fenced(document.outline, "~") if document.outline else "",
            headings=tuple(heading.shown() for heading in headings(plain, document.form)),
            japanese=is_japanese(plain),
            manner=manner_of(plain),
            lessons=document.lessons,
            text=fenced(plain, "~"),
        ),
    ).strip()

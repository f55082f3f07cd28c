"""The draft agent rewrites a part of a document and keeps its headings; the sections agent chooses parts (R1.60)."""

from __future__ import annotations

import re

from pydantic import Field

from daiku.domain.base import Frozen
from daiku.domain.labels import Label
from daiku.domain.work.documents import Document, PatchMade, SectionsChosen
from daiku.domain.work.handovers import Brief
from daiku.edits.rules.changes.changemap import change_map, moves_marks, patch_between
from daiku.edits.rules.changes.diff import compute_line_ops, split_lines
from daiku.guard.rules.redact import MARK
from daiku.models.rules.replies.parse import Unreadable
from daiku.prompts import render
from daiku.run.rules.state.state import State
from daiku.team.agent import Agent, Prompt
from daiku.team.coding.handover_text import fence
from daiku.team.drafting.part_request import AnswerForm, build_part_request, find_last_reply
from daiku.team.part import Part, Stage
from daiku.team.rules.drafting.headings import find_front_matter_end, find_lost_headings
from daiku.team.rules.drafting.moves import find_document
from daiku.texts.rules.omissions import may_hold_omission, omission_kind
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import Text, text

OPEN, CLOSE = "<new-text>", "</new-text>"
LEAST = 0.6
"""Minimum length of a draft as a share of the old text, unless it is to be shortened."""
SHORT = 400
"""Length in characters up to which a text may shrink more: one sentence less is no loss."""
_MAX_LISTED = 8
_FENCED = lazy(r"\A(`{3,}|~{3,})[ \t]*\w*[ \t]*\n(.*)\n\1[ \t]*\Z", re.DOTALL)


def parse_new_text(reply: str, document: Document) -> str | Unreadable:
    """Parse the part's new text from a reply.

    Unreadable if it is cut off, or lacks headings or passages of the old text.
    """
    body = _extract_text(reply, document.text)
    if isinstance(body, Unreadable):
        return body
    new = restore_line_ends(document.text, body)
    problem = find_problem(document, new)
    return Unreadable(problem) if problem else new


def find_problem(document: Document, new: str) -> Text:
    """Return why `new` cannot replace the document's text; empty if it can."""
    old = document.text
    if old.strip() and not new.strip():
        return text("document.empty_draft")
    if lost := find_lost_headings(old, new, document.form):
        names = ", ".join(f"“{heading.format()}”" for heading in lost[:_MAX_LISTED])
        more = f", … ({len(lost)})" if len(lost) > _MAX_LISTED else ""
        return text("document.headings_lost", headings=names + more)
    if find_front_matter_end(old) and not find_front_matter_end(new):
        return text("document.front_matter_lost")
    if (MARK in old or MARK in new) and moves_marks(old, MARK, change_map(old, new)):
        return text("document.mark_moved", mark=MARK)
    if left_out := _find_omission(old, new):
        return text("document.left_out", line=left_out)
    if document.depth and len(old) > SHORT and len(new) < LEAST * len(old):
        return text("document.too_short", old=len(old), new=len(new))
    return Text("")


def _find_omission(old: str, new: str) -> str:
    """Return a line of `new` that replaces omitted text, if the old text has no such line."""
    if not may_hold_omission(new):
        return ""
    old_lines = {line.strip() for line in old.splitlines()}
    return next(
        (line.strip() for line in new.splitlines() if omission_kind(line) and line.strip() not in old_lines),
        "",
    )


def _extract_text(reply: str, old: str) -> str | Unreadable:
    """Return the text between the marks, or a reply without marks that begins as the old text does."""
    start = reply.find(OPEN)
    if start >= 0:
        end = reply.rfind(CLOSE)
        if end < start:
            return Unreadable(text("document.cut_off", mark=CLOSE))
        return reply[start + len(OPEN) : end]
    plain = reply.strip()
    fenced = _FENCED.match(plain)
    if fenced is not None and not old.lstrip().startswith(("```", "~~~")):
        plain = fenced[2]
    first = next((line.strip() for line in old.splitlines() if line.strip()), "")
    if first and plain.lstrip().splitlines()[:1] == [first]:
        return plain
    return Unreadable(text("document.no_marks", open=OPEN, close=CLOSE), words_only=True)


def restore_line_ends(old: str, new: str) -> str:
    """Return `new` with the line endings of `old`, line by line, and its surrounding blank lines."""
    head, tail = _find_blank_margins(old)
    body = new.replace("\r\n", "\n").strip("\n")
    if not body.strip():
        return ""
    if "\r\n" not in old:
        return head + body + (tail if old else "\n")
    default_end = "\r\n" if old.count("\r\n") * 2 > old.count("\n") else "\n"
    inner = old[len(head) : len(old) - len(tail)] if tail else old[len(head) :]
    before = split_lines(inner)
    old_lines = [line.removesuffix("\n").removesuffix("\r") for line in before]
    after = body.split("\n")
    line_ends = [default_end] * len(after)
    for kind, i, j, k, _ in compute_line_ops(old_lines, after):
        if kind == "equal":
            for n in range(j - i):
                line_ends[k + n] = before[i + n][len(old_lines[i + n]) :] or default_end
    lines = (line + end for line, end in zip(after, [*line_ends[:-1], ""], strict=True))
    return head + "".join(lines) + tail


def _find_blank_margins(text: str) -> tuple[str, str]:
    """Return the blank lines before and after a text; for a blank text, all of them as after."""
    body = text.strip("\r\n")
    if not body:
        return "", text
    start = text.index(body)
    return text[:start], text[start + len(body) :]


def build_draft_request(brief: Brief) -> str:
    """Build the draft agent's request: its part, the headings to keep, and the depth."""
    return build_part_request("agents/draft_request", brief)


def build_draft_patch(state: State) -> PatchMade | Unreadable:
    """Return the patch for the text in the last reply; Unreadable if the text lost parts or was cut off."""
    document, reply = find_document(state), find_last_reply(state)
    if document is None or reply is None:
        return Unreadable(text("roles.no_answer"))
    new = parse_new_text(reply.text, document)
    return new if isinstance(new, Unreadable) else PatchMade(patch=patch_between(document.text, new))


DRAFT = Agent(
    "draft",
    Prompt("agents/draft"),
    part=Part(
        label=Label("Drafter", "下書き担当"),
        description="writes a part of a document anew and keeps its headings",
        delegate=False,
        repeats=True,
        stage=Stage(build_draft_patch, build_draft_request),
    ),
)


# ---- choosing the parts of a long document to change


class SectionsForm(Frozen):
    """Schema of the chosen parts of a document."""

    numbers: tuple[int, ...] = Field(
        description="numbers of the parts that have to change, as few as will do"
    )


CHOICE = AnswerForm(
    SectionsForm,
    "report/sections",
    "End your work with the parts that have to change.",
    lambda form: text("document.chosen", numbers=", ".join(map(str, form.numbers)) or "-"),
)


class SectionsVariables(Frozen):
    """Template variables: a long document as a list of its parts, fenced already."""

    request: str
    path: str
    parts: int
    outline: str


def build_sections_request(brief: Brief) -> str:
    """Build the request to choose the parts to change."""
    document = brief.document
    if document is None:
        return brief.request
    return render(
        "agents/sections_request",
        SectionsVariables(
            request=brief.request,
            path=document.path,
            parts=document.parts,
            outline=fence(document.outline, "~"),
        ),
    ).strip()


def find_chosen_sections(state: State) -> SectionsChosen | Unreadable:
    """Return the parts that the run chose; Unreadable if one of them does not exist."""
    document, form = find_document(state), CHOICE.find_answer(state)
    if document is None or form is None:
        return CHOICE.missing
    unknown = [str(number) for number in form.numbers if not 1 <= number <= document.parts]
    if unknown:
        return Unreadable(text("document.no_such_part", numbers=", ".join(unknown), count=document.parts))
    return SectionsChosen(numbers=tuple(sorted(set(form.numbers))))


SECTIONS = Agent(
    "sections",
    Prompt("agents/sections"),
    part=Part(
        label=Label("Section selector", "節の選択担当"),
        description="chooses the parts of a long document that a request is about",
        delegate=False,
        repeats=True,
        role=CHOICE.role,
        stage=Stage(find_chosen_sections, build_sections_request),
    ),
)

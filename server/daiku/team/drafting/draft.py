"""The draft agent: writes a part of a document anew, headings kept; and the one that chooses the parts (R1.60)."""

from __future__ import annotations

import re

from pydantic import Field

from daiku.domain.base import Frozen
from daiku.domain.labels import Label
from daiku.domain.work.documents import Document, PatchMade, SectionsChosen
from daiku.domain.work.handovers import Brief
from daiku.edits.rules.changes.changemap import change_map, moves_marks, patch_between
from daiku.edits.rules.changes.diff import line_ops, split_lines
from daiku.guard.rules.redact import MARK
from daiku.models.rules.replies.parse import Unreadable
from daiku.prompts import render
from daiku.run.rules.state.state import State
from daiku.team.agent import Agent, Prompt
from daiku.team.coding.handover_text import fence
from daiku.team.drafting.answer_form import AnswerForm, last_reply
from daiku.team.drafting.part_request import part_request
from daiku.team.part import Part, Stage
from daiku.team.rules.drafting.headings import front_matter_end, lost_headings
from daiku.team.rules.drafting.moves import document_of
from daiku.texts.rules.omissions import may_hold_omission, omission_kind
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import Text, text

OPEN, CLOSE = "<new-text>", "</new-text>"
LEAST = 0.6
"""The share of a text that a draft has to keep in length, where it is not to be shortened."""
SHORT = 400
"""Characters below which a text may become shorter than that: one sentence less is no loss."""
_MOST_NAMED = 8
_FENCED = lazy(r"\A(`{3,}|~{3,})[ \t]*\w*[ \t]*\n(.*)\n\1[ \t]*\Z", re.DOTALL)


def new_text(reply: str, document: Document) -> str | Unreadable:
    """Return the new text of the document's part; Unreadable if cut off, or without headings or passages of it."""
    found = _between(reply, document.text)
    if isinstance(found, Unreadable):
        return found
    made = restored(document.text, found)
    problem = objection(document, made)
    return Unreadable(problem) if problem else made


def objection(document: Document, new: str) -> Text:
    """Return why `new` cannot replace the document's text; empty if it can."""
    old = document.text
    if old.strip() and not new.strip():
        return text("document.empty_draft")
    if lost := lost_headings(old, new, document.form):
        shown = ", ".join(f"“{heading.shown()}”" for heading in lost[:_MOST_NAMED])
        more = f", … ({len(lost)})" if len(lost) > _MOST_NAMED else ""
        return text("document.headings_lost", headings=shown + more)
    if front_matter_end(old) and not front_matter_end(new):
        return text("document.front_matter_lost")
    if (MARK in old or MARK in new) and moves_marks(old, MARK, change_map(old, new)):
        return text("document.mark_moved", mark=MARK)
    if left_out := _left_out(old, new):
        return text("document.left_out", line=left_out)
    if document.depth and len(old) > SHORT and len(new) < LEAST * len(old):
        return text("document.too_short", old=len(old), new=len(new))
    return Text("")


def _left_out(old: str, new: str) -> str:
    """Return a line of `new` that stands for omitted text, if the old text has no such line."""
    if not may_hold_omission(new):
        return ""
    known = {line.strip() for line in old.splitlines()}
    return next(
        (line.strip() for line in new.splitlines() if omission_kind(line) and line.strip() not in known), ""
    )


def _between(reply: str, old: str) -> str | Unreadable:
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


def restored(old: str, new: str) -> str:
    """Return `new` with the line ends of `old`, line by line, and its surrounding blank lines."""
    head, tail = _around(old)
    body = new.replace("\r\n", "\n").strip("\n")
    if not body.strip():
        return ""
    if "\r\n" not in old:
        return head + body + (tail if old else "\n")
    usual = "\r\n" if old.count("\r\n") * 2 > old.count("\n") else "\n"
    inner = old[len(head) : len(old) - len(tail)] if tail else old[len(head) :]
    before = split_lines(inner)
    plain = [line.removesuffix("\n").removesuffix("\r") for line in before]
    after = body.split("\n")
    ends = [usual] * len(after)
    for kind, i, j, k, _ in line_ops(plain, after):
        if kind == "equal":
            for n in range(j - i):
                ends[k + n] = before[i + n][len(plain[i + n]) :] or usual
    lines = (line + end for line, end in zip(after, [*ends[:-1], ""], strict=True))
    return head + "".join(lines) + tail


def _around(text: str) -> tuple[str, str]:
    """Return the blank lines before and after a text; a text of blank lines counts as after."""
    body = text.strip("\r\n")
    if not body:
        return "", text
    start = text.index(body)
    return text[:start], text[start + len(body) :]


def draft_request(brief: Brief) -> str:
    """The request to the draft agent: its part, the headings that stay, and how deep to go."""
    return part_request("team/draft_request", brief)


def draft_made(state: State) -> PatchMade | Unreadable:
    """Return the patch to the text of the last reply; Unreadable if that text lost parts or was cut off."""
    document, said = document_of(state), last_reply(state)
    if document is None or said is None:
        return Unreadable(text("roles.no_answer"))
    new = new_text(said.text, document)
    return new if isinstance(new, Unreadable) else PatchMade(patch=patch_between(document.text, new))


DRAFT = Agent(
    "draft",
    Prompt("team/draft"),
    part=Part(
        label=Label("Draft", "下書き担当"),
        description="writes a part of a document anew and keeps its headings",
        delegate=False,
        repeats=True,
        stage=Stage(draft_made, draft_request),
    ),
)


# ---- which parts of a long document are concerned


class SectionsForm(Frozen):
    """The parts that the request is about."""

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
    """A long document as a list of its parts, fenced already."""

    request: str
    path: str
    parts: int
    outline: str


def sections_request(brief: Brief) -> str:
    """The request for the parts that are concerned."""
    document = brief.document
    if document is None:
        return brief.request
    return render(
        "team/sections_request",
        SectionsVariables(
            request=brief.request,
            path=document.path,
            parts=document.parts,
            outline=fence(document.outline, "~"),
        ),
    ).strip()


def sections_chosen(state: State) -> SectionsChosen | Unreadable:
    """The parts that the run chose; Unreadable where it names one that there is not."""
    document, form = document_of(state), CHOICE.given(state)
    if document is None or form is None:
        return CHOICE.missing
    wrong = [str(number) for number in form.numbers if not 1 <= number <= document.parts]
    if wrong:
        return Unreadable(text("document.no_such_part", numbers=", ".join(wrong), count=document.parts))
    return SectionsChosen(numbers=tuple(sorted(set(form.numbers))))


SECTIONS = Agent(
    "sections",
    Prompt("team/sections"),
    part=Part(
        label=Label("Section picker", "対象の節の選択"),
        description="chooses the parts of a long document that a request is about",
        delegate=False,
        repeats=True,
        role=CHOICE.role,
        stage=Stage(sections_chosen, sections_request),
    ),
)

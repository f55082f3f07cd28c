"""The new text of a part, out of a model's reply: its line ends and blanks restored, and why it cannot be taken."""

from __future__ import annotations

import re

from daiku.core.changes.align import line_ops
from daiku.core.changes.changemap import change_map
from daiku.core.changes.diff import split_lines
from daiku.core.changes.redacted import moves_marks
from daiku.core.drafting.headings import front_matter_end, lost_headings
from daiku.core.guard.redact import MARK
from daiku.core.replies.parse import Unreadable
from daiku.core.text.omissions import may_hold_omission, omission_kind
from daiku.core.text.patterns import lazy
from daiku.domain.work.documents import Document
from daiku.texts.text import Text, text

OPEN, CLOSE = "<new-text>", "</new-text>"
LEAST = 0.6
"""The share of a text that a draft has to keep in length, where it is not to be shortened."""
SHORT = 400
"""Characters below which a text may become shorter than that: one sentence less is no loss."""
_MOST_NAMED = 8
_FENCED = lazy(r"\A(`{3,}|~{3,})[ \t]*\w*[ \t]*\n(.*)\n\1[ \t]*\Z", re.DOTALL)


def new_text(reply: str, document: Document) -> str | Unreadable:
    """The text that `reply` gives for the document's part, with its line ends and the blanks around it; Unreadable
    where it cannot be taken: cut off, headings lost, left out in part."""
    found = _between(reply, document.text)
    if isinstance(found, Unreadable):
        return found
    made = restored(document.text, found)
    problem = objection(document, made)
    return Unreadable(problem) if problem else made


def objection(document: Document, new: str) -> Text:
    """Why `new` cannot take the place of the document's text; empty where it can."""
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
    """A line of `new` that stands for text that it leaves out, where the old text has no such line."""
    if not may_hold_omission(new):
        return ""
    known = {line.strip() for line in old.splitlines()}
    return next(
        (line.strip() for line in new.splitlines() if omission_kind(line) and line.strip() not in known), ""
    )


def _between(reply: str, old: str) -> str | Unreadable:
    """What stands between the marks. Without marks a reply counts that begins as the old text does: others begin
    with words about it."""
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
    """`new` with the line ends that `old` has, line by line, and the blank lines around it as they are there."""
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
    """The blank lines before and after a text; of a text without words all of it counts as after."""
    body = text.strip("\r\n")
    if not body:
        return "", text
    start = text.index(body)
    return text[:start], text[start + len(body) :]

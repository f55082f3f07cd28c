"""Approvals and questions in the terminal: show exactly what will happen, then read one key."""

from __future__ import annotations

from typing import Literal

from daiku.dataclass import dataclass
from daiku.domain.events import ApprovalAsked, ApprovalDecision, InputAsked
from daiku.edits.rules.changes.choose import NumberedHunk, parse_hunks
from daiku.fronts.cli.ask import keyboard
from daiku.fronts.cli.display.diffs import coloured_diff, looks_like_diff
from daiku.fronts.cli.display.show import Show
from daiku.fronts.cli.display.term import Terminal, safe
from daiku.texts.terminal import say


@dataclass(frozen=True, slots=True)
class Decision:
    """The user's decision; `hunks` limits it to these hunks of the edit, None means all."""

    decision: ApprovalDecision
    feedback: str | None = None
    hunks: tuple[int, ...] | None = None


async def pick_hunks(approval: ApprovalAsked, show: Show, people: Terminal) -> Decision | None:
    """Ask for each hunk of the edit; return None if the user went back.

    The end of input rejects the remaining hunks. An edit without approved hunks is rejected.
    """
    parts = parse_hunks(approval.preview)
    with keyboard.key_by_key():
        accepted = await _select_hunks(parts, show, people)
    if accepted is None:
        return None
    show.line(people.paint(say("pick.done", count=len(accepted), all=len(parts)), "bold"))
    if len(accepted) == len(parts):
        return Decision("allow_once")
    show.raw(people.paint(say("pick.feedback"), "bold"))
    feedback = ((await keyboard.read_line()) or "").strip() or None
    return Decision("allow_once", feedback, accepted) if accepted else Decision("reject_once", feedback)


async def _select_hunks(
    parts: tuple[NumberedHunk, ...], show: Show, people: Terminal
) -> tuple[int, ...] | None:
    answers: list[bool] = []
    while len(answers) < len(parts):
        number = len(answers)
        _show_hunk(parts, number, show, people)
        match await _read_hunk_key():
            case "y":
                _record_answer(show, people, answers, accepted=True)
            case "n":
                _record_answer(show, people, answers, accepted=False)
            case "a":
                _record_answer(show, people, answers, accepted=True)
                answers += [True] * (len(parts) - len(answers))
            case "k":
                show.raw("\n")
                del answers[-1:]
            case "q":
                show.raw("\n")
                return None
            case _:  # d, or the end of input
                _record_answer(show, people, answers, accepted=False)
                answers += [False] * (len(parts) - len(answers))
    return tuple(number for number, is_accepted in enumerate(answers) if is_accepted)


async def _read_hunk_key() -> str:
    while (key := await keyboard.read_key()) not in ("y", "n", "a", "d", "k", "q", "", "\x04", "\x1b"):
        pass
    return "q" if key == "\x1b" else key


def _record_answer(show: Show, people: Terminal, answers: list[bool], *, accepted: bool) -> None:
    text = people.paint(say("pick.yes"), "green") if accepted else people.paint(say("pick.no"), "red")
    show.raw(text + "\n")
    answers.append(accepted)


def _show_hunk(parts: tuple[NumberedHunk, ...], number: int, show: Show, people: Terminal) -> None:
    part = parts[number]
    show.line("")
    show.line(people.paint(say("pick.title", number=number + 1, count=len(parts)), "bold", "yellow"))
    for line in coloured_diff(part.head + part.body, people):
        show.line("  " + line)
    show.raw(people.paint(safe(say("pick.keys")), "bold") + " ")


FIRST_LINES = 60
"""Maximum lines of a diff that are shown at first; commands are always complete."""


async def ask_approval(approval: ApprovalAsked, show: Show, people: Terminal) -> Decision:
    """Ask for an approval and return the decision. The end of input rejects."""
    limit = FIRST_LINES if approval.kind == "edit" else 0
    show.quiet(silent=True)
    try:
        show.line("")
        show.line(
            people.paint(say(f"approve.{approval.kind}"), "bold", "yellow") + f"  {safe(approval.tool)}"
        )
        _show_preview(approval, show, people, limit)
        if approval.why:
            show.line(people.paint(f"  ({safe(approval.why)})", "dim"))
        details = approval.preview.count("\n") >= limit > 0
        always = say("approve.always", what=safe(approval.remember)) if approval.remember else ""
        pick = say("approve.pick") if approval.hunks > 1 else ""
        more = pick + (say("approve.details") if details else "")
        while True:
            with keyboard.key_by_key():
                show.raw(
                    people.paint(say("approve.keys", always=always) + f"  {more}".rstrip(), "bold") + " "
                )
                decision = await _read_decision(approval, show, people)
            if decision == "pick":
                picked = await pick_hunks(approval, show, people)
                if picked is None:
                    continue
                return picked
            if decision is not None:
                return Decision(decision)
            show.raw("\n" + people.paint(say("approve.feedback"), "bold"))
            return Decision("reject_once", ((await keyboard.read_line()) or "").strip() or None)
    finally:
        show.quiet(silent=False)


async def ask_question(question: InputAsked, show: Show, people: Terminal) -> str:
    """Ask a question and return the answer: a choice by its number, or free text."""
    show.quiet(silent=True)
    try:
        show.line("")
        show.line(people.paint(f"{say('question')}: ", "bold", "yellow") + safe(question.question))
        for number, choice in enumerate(question.choices, 1):
            show.line(f"  {number}. {safe(choice)}")
        show.raw(people.paint(say("question.choose") if question.choices else say("answer"), "bold"))
        text = ((await keyboard.read_line()) or "").strip()
        if text.isdecimal() and 0 < int(text) <= len(question.choices):
            return question.choices[int(text) - 1]
        return text
    finally:
        show.quiet(silent=False)


async def _read_decision(
    approval: ApprovalAsked, show: Show, people: Terminal
) -> ApprovalDecision | Literal["pick"] | None:
    """Read keys until a decision; return None for a rejection with feedback."""
    while True:
        match await keyboard.read_key():
            case "y":
                show.raw(people.paint(say("approve.yes"), "green") + "\n")
                return "allow_once"
            case "a" if approval.remember:
                show.raw(people.paint(say("approve.always.done"), "green") + "\n")
                return "allow_always"
            case "n" | "" | "\x04" | "\x1b":
                show.raw(people.paint(say("approve.no"), "red") + "\n")
                return "reject_once"
            case "f":
                return None
            case "p" if approval.hunks > 1:
                show.raw("\n")
                return "pick"
            case "d":
                show.raw("\n")
                _show_preview(approval, show, people, 0)
                show.raw("> ")
            case _:
                continue


def _show_preview(approval: ApprovalAsked, show: Show, people: Terminal, limit: int) -> None:
    """Show the diff, or the complete command with control characters visible."""
    if looks_like_diff(approval.preview):
        for line in coloured_diff(approval.preview, people, limit):
            show.line("  " + line)
        return
    for line in safe(approval.preview).split("\n"):
        show.line("  " + people.paint(line, "cyan"))

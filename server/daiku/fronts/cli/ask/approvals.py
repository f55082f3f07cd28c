"""Approvals and questions in the terminal: exactly what will happen is shown, then one key decides."""

from __future__ import annotations

from typing import Literal

from daiku.dataclass import dataclass
from daiku.domain.events import ApprovalAsked, ApprovalDecision, InputAsked
from daiku.edits.rules.changes.choose import NumberedHunk, shown_hunks
from daiku.fronts.cli.ask import keyboard
from daiku.fronts.cli.display.diffs import coloured_diff, looks_like_diff
from daiku.fronts.cli.display.show import Show
from daiku.fronts.cli.display.term import Terminal, safe
from daiku.texts.terminal import say


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's decision: with `hunks` only these of the edit, None all of it."""

    decision: ApprovalDecision
    feedback: str | None = None
    hunks: tuple[int, ...] | None = None


async def pick_hunks(asked: ApprovalAsked, show: Show, people: Terminal) -> Decision | None:
    """Ask for each change of the edit; None where the person went back. The end of input leaves out the
    rest, and an edit of which nothing is wanted is rejected."""
    parts = shown_hunks(asked.preview)
    with keyboard.key_by_key():
        chosen = await _chosen(parts, show, people)
    if chosen is None:
        return None
    show.line(people.paint(say("pick.done", count=len(chosen), all=len(parts)), "bold"))
    if len(chosen) == len(parts):
        return Decision("allow_once")
    show.raw(people.paint(say("pick.feedback"), "bold"))
    feedback = ((await keyboard.read_line()) or "").strip() or None
    return Decision("allow_once", feedback, chosen) if chosen else Decision("reject_once", feedback)


async def _chosen(parts: tuple[NumberedHunk, ...], show: Show, people: Terminal) -> tuple[int, ...] | None:
    answers: list[bool] = []
    while len(answers) < len(parts):
        number = len(answers)
        _show(parts, number, show, people)
        match await _key():
            case "y":
                _note(show, people, answers, taken=True)
            case "n":
                _note(show, people, answers, taken=False)
            case "a":
                _note(show, people, answers, taken=True)
                answers += [True] * (len(parts) - len(answers))
            case "k":
                show.raw("\n")
                del answers[-1:]
            case "q":
                show.raw("\n")
                return None
            case _:  # d, or the end of input
                _note(show, people, answers, taken=False)
                answers += [False] * (len(parts) - len(answers))
    return tuple(number for number, taken in enumerate(answers) if taken)


async def _key() -> str:
    while (key := await keyboard.read_key()) not in ("y", "n", "a", "d", "k", "q", "", "\x04", "\x1b"):
        pass
    return "q" if key == "\x1b" else key


def _note(show: Show, people: Terminal, answers: list[bool], *, taken: bool) -> None:
    text = people.paint(say("pick.yes"), "green") if taken else people.paint(say("pick.no"), "red")
    show.raw(text + "\n")
    answers.append(taken)


def _show(parts: tuple[NumberedHunk, ...], number: int, show: Show, people: Terminal) -> None:
    part = parts[number]
    show.line("")
    show.line(people.paint(say("pick.title", number=number + 1, count=len(parts)), "bold", "yellow"))
    for line in coloured_diff(part.head + part.body, people):
        show.line("  " + line)
    show.raw(people.paint(safe(say("pick.keys")), "bold") + " ")


FIRST_LINES = 60
"""Lines of a long diff that are shown at once; commands are always shown whole."""


async def ask_approval(asked: ApprovalAsked, show: Show, people: Terminal) -> Decision:
    """The person's decision, and what they say to it. The end of input is a no."""
    limit = FIRST_LINES if asked.kind == "edit" else 0
    show.quiet(silent=True)
    try:
        show.line("")
        show.line(people.paint(say(f"approve.{asked.kind}"), "bold", "yellow") + f"  {safe(asked.tool)}")
        _preview(asked, show, people, limit)
        if asked.why:
            show.line(people.paint(f"  ({safe(asked.why)})", "dim"))
        details = asked.preview.count("\n") >= limit > 0
        always = say("approve.always", what=safe(asked.remember)) if asked.remember else ""
        pick = say("approve.pick") if asked.hunks > 1 else ""
        more = pick + (say("approve.details") if details else "")
        while True:
            with keyboard.key_by_key():
                show.raw(
                    people.paint(say("approve.keys", always=always) + f"  {more}".rstrip(), "bold") + " "
                )
                decision = await _decided(asked, show, people)
            if decision == "pick":
                said = await pick_hunks(asked, show, people)
                if said is None:
                    continue
                return said
            if decision is not None:
                return Decision(decision)
            show.raw("\n" + people.paint(say("approve.feedback"), "bold"))
            return Decision("reject_once", ((await keyboard.read_line()) or "").strip() or None)
    finally:
        show.quiet(silent=False)


async def ask_question(asked: InputAsked, show: Show, people: Terminal) -> str:
    """The person's answer; one of the choices by its number, or free text."""
    show.quiet(silent=True)
    try:
        show.line("")
        show.line(people.paint(f"{say('question')}: ", "bold", "yellow") + safe(asked.question))
        for number, choice in enumerate(asked.choices, 1):
            show.line(f"  {number}. {safe(choice)}")
        show.raw(people.paint(say("question.choose") if asked.choices else say("answer"), "bold"))
        text = ((await keyboard.read_line()) or "").strip()
        if text.isdecimal() and 0 < int(text) <= len(asked.choices):
            return asked.choices[int(text) - 1]
        return text
    finally:
        show.quiet(silent=False)


async def _decided(
    asked: ApprovalAsked, show: Show, people: Terminal
) -> ApprovalDecision | Literal["pick"] | None:
    """What the keys say; None for a no whose reason is still to come."""
    while True:
        match await keyboard.read_key():
            case "y":
                show.raw(people.paint(say("approve.yes"), "green") + "\n")
                return "allow_once"
            case "a" if asked.remember:
                show.raw(people.paint(say("approve.always.done"), "green") + "\n")
                return "allow_always"
            case "n" | "" | "\x04" | "\x1b":
                show.raw(people.paint(say("approve.no"), "red") + "\n")
                return "reject_once"
            case "f":
                return None
            case "p" if asked.hunks > 1:
                show.raw("\n")
                return "pick"
            case "d":
                show.raw("\n")
                _preview(asked, show, people, 0)
                show.raw("> ")
            case _:
                continue


def _preview(asked: ApprovalAsked, show: Show, people: Terminal, limit: int) -> None:
    """The diff, or the whole command with its control characters visible."""
    if looks_like_diff(asked.preview):
        for line in coloured_diff(asked.preview, people, limit):
            show.line("  " + line)
        return
    for line in safe(asked.preview).split("\n"):
        show.line("  " + people.paint(line, "cyan"))

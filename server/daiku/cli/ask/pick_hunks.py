"""Picking the changes of an edit one by one in the terminal, by one key each."""

from __future__ import annotations

from daiku.cli.ask import keyboard
from daiku.cli.display.diffs import coloured_diff
from daiku.cli.display.show import Show
from daiku.cli.display.term import Terminal, safe
from daiku.core.changes.choose import NumberedHunk, shown_hunks
from daiku.dataclass import dataclass
from daiku.domain.events import ApprovalAsked, ApprovalDecision
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

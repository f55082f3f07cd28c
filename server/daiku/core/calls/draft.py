"""Arguments of a call while they are translated, each change noted."""

from __future__ import annotations

from pydantic import JsonValue

from daiku.domain.base import JsonObject


class Draft:
    """Arguments while they are translated: every change is noted, and no key of ours is ever overwritten."""

    def __init__(self, args: JsonObject) -> None:
        self.args: JsonObject = dict(args)
        self.notes: list[str] = []

    def rename(self, ours: str, *theirs: str) -> None:
        """Take the value of the one of `theirs` that is there for `ours`; two of them are left as they are."""
        here = [key for key in self.args if key.lower() in theirs]
        if ours in self.args or len(here) != 1:
            return
        self.args[ours] = self.args.pop(here[0])
        self.notes.append(f"{here[0]} was read as {ours}")

    def take(self, *names: str) -> tuple[str, JsonValue] | None:
        """Remove the one key of `names` that is there; its spelling and its value."""
        here = [key for key in self.args if key.lower() in names]
        return (here[0], self.args.pop(here[0])) if len(here) == 1 else None

    def put(self, ours: str, value: JsonValue, note: str) -> None:
        self.args[ours] = value
        self.notes.append(note)


def number(value: JsonValue) -> int | None:
    """A whole number, also as its text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return int(value) if value.strip().lstrip("-").isdecimal() else None
    return value if isinstance(value, int) else None


def truth(value: JsonValue) -> bool | None:
    """A truth value, also as its text."""
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else None


def opposite(draft: Draft, ours: str, *theirs: str) -> None:
    """Take the opposite of the one of `theirs` that is there for `ours`."""
    taken = draft.take(*theirs)
    if taken is None:
        return
    value = truth(taken[1])
    if value is None or ours in draft.args:
        draft.args[taken[0]] = taken[1]
        return
    draft.put(ours, not value, f"{taken[0]} was read as {ours}")

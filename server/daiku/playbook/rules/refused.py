"""Why a change of a playbook was not made, as a value."""

from __future__ import annotations

from typing import Literal, TypeAlias

from daiku.dataclass import dataclass
from daiku.playbook.rules.sections import MOST_CHARACTERS
from daiku.texts.text import Text, text

RefusedKind: TypeAlias = Literal["unknown", "inactive", "changed", "decided", "empty", "long", "incomplete"]
"""There is no such bullet or change; the bullet is inactive; it was changed since; the change was decided on already;
the text is empty or too long; the change does not say what it is of."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A change that was not made: nothing of it was, and nothing else either."""

    kind: RefusedKind
    message: Text


def no_bullet(name: str) -> Refused:
    return Refused("unknown", text("playbook.no_bullet", id=repr(name)))


def no_change(name: str) -> Refused:
    return Refused("unknown", text("playbook.no_change", id=repr(name)))


def inactive(name: str) -> Refused:
    return Refused("inactive", text("playbook.inactive", id=name))


def changed_since(name: str) -> Refused:
    return Refused("changed", text("playbook.changed_since", id=name))


def decided(name: str) -> Refused:
    return Refused("decided", text("playbook.decided", id=name))


def not_applied(name: str) -> Refused:
    return Refused("decided", text("playbook.not_applied", id=name))


def empty() -> Refused:
    return Refused("empty", text("playbook.empty"))


def too_long(length: int) -> Refused:
    return Refused("long", text("playbook.too_long", length=length, most=MOST_CHARACTERS))


def incomplete() -> Refused:
    return Refused("incomplete", text("playbook.incomplete"))

"""Reasons why a change of a playbook was refused."""

from __future__ import annotations

from typing import Literal, TypeAlias

from daiku.dataclass import dataclass
from daiku.playbook.rules.sections import MOST_CHARACTERS
from daiku.texts.text import Text, text

RefusalKind: TypeAlias = Literal["unknown", "inactive", "changed", "decided", "empty", "long", "incomplete"]
"""Reasons for a refusal.

`unknown`: no such bullet or change; `inactive`: the bullet is inactive; `changed`: it was changed since;
`decided`: the change was decided already; `empty`, `long`: the text is empty or too long; `incomplete`: the
change names no target.
"""


@dataclass(frozen=True, slots=True)
class ChangeRefusal:
    """A refused change. Nothing of it was applied."""

    kind: RefusalKind
    message: Text


def refuse_unknown_bullet(name: str) -> ChangeRefusal:
    return ChangeRefusal("unknown", text("playbook.no_bullet", id=repr(name)))


def refuse_unknown_change(name: str) -> ChangeRefusal:
    return ChangeRefusal("unknown", text("playbook.no_change", id=repr(name)))


def refuse_inactive(name: str) -> ChangeRefusal:
    return ChangeRefusal("inactive", text("playbook.inactive", id=name))


def refuse_changed(name: str) -> ChangeRefusal:
    return ChangeRefusal("changed", text("playbook.changed_since", id=name))


def refuse_decided(name: str) -> ChangeRefusal:
    return ChangeRefusal("decided", text("playbook.decided", id=name))


def refuse_not_applied(name: str) -> ChangeRefusal:
    return ChangeRefusal("decided", text("playbook.not_applied", id=name))


def refuse_empty() -> ChangeRefusal:
    return ChangeRefusal("empty", text("playbook.empty"))


def refuse_too_long(length: int) -> ChangeRefusal:
    return ChangeRefusal("long", text("playbook.too_long", length=length, most=MOST_CHARACTERS))


def refuse_incomplete() -> ChangeRefusal:
    return ChangeRefusal("incomplete", text("playbook.incomplete"))

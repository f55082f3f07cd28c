"""What a person answered with "always" in this workspace: listed, and taken back."""

from __future__ import annotations

from typing import Literal

from daiku.domain.base import Localizable, Wire
from daiku.texts.text import Text


class Grant(Localizable):
    """`what` says in words what was answered; `key` names it to `daiku/grants/revoke`."""

    key: str
    answer: Literal["allow", "reject"]
    what: Text


class GrantsResult(Localizable):
    grants: tuple[Grant, ...]
    workspace: str
    """The folder that the answers count in."""


class GrantRef(Wire):
    key: str

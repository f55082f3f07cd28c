"""What a person answered with "always" in this workspace: listed, and taken back."""

from __future__ import annotations

from typing import Literal

from daiku.domain.base import Wire


class Grant(Wire):
    """`what` says in words what was answered; `key` names it to `daiku/grants/revoke`."""

    key: str
    answer: Literal["allow", "reject"]
    what: str


class GrantsResult(Wire):
    grants: tuple[Grant, ...]
    workspace: str
    """The folder that the answers count in."""


class GrantRef(Wire):
    key: str

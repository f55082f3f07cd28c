"""Intents: external effects that a work item requests (comment, label, push, request), and their outcomes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from daiku.domain.base import Frozen
from daiku.domain.items.item import ItemState

IntentStatus = Literal["wanted", "sent", "done", "refused"]
"""`sent`: it was begun, and its outcome is unknown."""


REQUEST = "request"
"""Operation that opens the item's request; the request contains its mark."""


class SetState(Frozen):
    """Set the item's state label; other labels stay."""

    type: Literal["state"] = "state"
    state: ItemState


class PostComment(Frozen):
    """Post a new comment, in Markdown."""

    type: Literal["comment"] = "comment"
    text: str


class ShowProgress(Frozen):
    """Update the item's one progress comment, or create it."""

    type: Literal["progress"] = "progress"
    text: str


class PushBranch(Frozen):
    """Move the branch from `expected` (empty: it must not exist) to `commit`."""

    type: Literal["push"] = "push"
    branch: str
    commit: str
    expected: str = ""


class KeepTree(Frozen):
    """Keep the work tree on the server for another machine. `name`: what was done; `of`: identifies the time."""

    type: Literal["keep"] = "keep"
    name: str
    of: str


class DropKept(Frozen):
    """Delete the item's kept work trees from the server."""

    type: Literal["drop"] = "drop"


class OpenRequest(Frozen):
    """Open a draft request from `branch` into `base`."""

    type: Literal["request"] = "request"
    branch: str
    base: str
    title: str
    text: str


class MarkReady(Frozen):
    """Mark the request of `branch` as ready for review."""

    type: Literal["ready"] = "ready"
    branch: str


ForgeIntent: TypeAlias = SetState | PostComment | ShowProgress | OpenRequest | MarkReady
"""Intents that a source carries out."""
FORGE_KINDS = ("state", "comment", "progress", "request", "ready")
"""Types of `ForgeIntent`."""
GitIntent: TypeAlias = PushBranch | KeepTree | DropKept
"""Intents that git carries out."""
Intent: TypeAlias = Annotated[ForgeIntent | GitIntent, Field(discriminator="type")]

_INTENT: TypeAdapter[Intent] = TypeAdapter(Intent)


def read_intent(data: str) -> Intent:
    """Parse a stored intent. Raises pydantic.ValidationError."""
    return _INTENT.validate_json(data)


def without_secrets(intent: Intent, redact: Callable[[str], str]) -> Intent:
    """Return the intent with its texts passed through `redact`."""
    match intent:
        case PostComment() | ShowProgress():
            return intent.model_copy(update={"text": redact(intent.text)})
        case OpenRequest():
            return intent.model_copy(update={"title": redact(intent.title), "text": redact(intent.text)})
        case _:
            return intent


class Outcome(Frozen):
    """Result of an intent: a comment id, a request's URL, or a commit. `found`: it had been done before."""

    reference: str = ""
    found: bool = False


class IntentRecord(Frozen):
    """A stored intent. `operation` identifies it within its item and never changes."""

    item: str
    operation: str
    intent: Intent
    status: IntentStatus = "wanted"
    sent: bool = False
    """True if it was begun and its outcome is unknown: look for its effect before retrying."""
    reference: str = ""
    error: str = ""

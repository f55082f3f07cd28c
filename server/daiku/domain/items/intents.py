"""Intents: what a work item wants outside (a comment, a label, a push, a request), and what came of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from daiku.domain.base import Frozen
from daiku.domain.items.item import ItemState

IntentStatus = Literal["wanted", "sent", "done", "refused"]
"""`sent`: it was begun, and nobody knows what became of it."""


REQUEST = "request"
"""The operation by which the item's request is opened: its mark stands in it."""


class SetState(Frozen):
    """The item's labels say `state`, and no other state of ours; others' labels stay."""

    type: Literal["state"] = "state"
    state: ItemState


class PostComment(Frozen):
    """A comment of its own, in Markdown."""

    type: Literal["comment"] = "comment"
    text: str


class ShowProgress(Frozen):
    """The one progress comment says `text`; it is made when there is none."""

    type: Literal["progress"] = "progress"
    text: str


class PushBranch(Frozen):
    """The branch stands at `commit`; before it stood at `expected` (empty: it was not there)."""

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
    """What was kept of the item is taken from the server."""

    type: Literal["drop"] = "drop"


class OpenRequest(Frozen):
    """A draft request from `branch` into `base`."""

    type: Literal["request"] = "request"
    branch: str
    base: str
    title: str
    text: str


class MarkReady(Frozen):
    """The request of `branch` is no draft any more."""

    type: Literal["ready"] = "ready"
    branch: str


ForgeIntent: TypeAlias = SetState | PostComment | ShowProgress | OpenRequest | MarkReady
"""What a source carries out."""
FORGE_KINDS = ("state", "comment", "progress", "request", "ready")
"""The types of these."""
GitIntent: TypeAlias = PushBranch | KeepTree | DropKept
"""What git carries out."""
Intent: TypeAlias = Annotated[ForgeIntent | GitIntent, Field(discriminator="type")]

_INTENT: TypeAdapter[Intent] = TypeAdapter(Intent)


def read_intent(data: str) -> Intent:
    """The intent that was stored as `data`."""
    return _INTENT.validate_json(data)


def without_secrets(intent: Intent, redact: Callable[[str], str]) -> Intent:
    """The intent with words that `redact` has looked through."""
    match intent:
        case PostComment() | ShowProgress():
            return intent.model_copy(update={"text": redact(intent.text)})
        case OpenRequest():
            return intent.model_copy(update={"title": redact(intent.title), "text": redact(intent.text)})
        case _:
            return intent


class Outcome(Frozen):
    """What was done: the comment's id, the request's address, the commit. `found`: it was done before already."""

    reference: str = ""
    found: bool = False


class IntentRecord(Frozen):
    """An intent on record. `operation` names it within its item and never changes: what was done is found by it."""

    item: str
    operation: str
    intent: Intent
    status: IntentStatus = "wanted"
    sent: bool = False
    """It was begun, and nobody knows what became of it: look for its traces before it is repeated."""
    reference: str = ""
    error: str = ""

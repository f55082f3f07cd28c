"""Work items, and their intents: external effects that an item requests, and their outcomes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from daiku.domain.base import Frozen, Localizable, Wire
from daiku.domain.messages import Usage
from daiku.texts.text import NO_TEXT, Text

SourceName = Literal["github", "gitlab", "files"]
ItemKind = Literal["issue", "request", "file"]
"""`request`: a pull request (GitHub) or a merge request (GitLab)."""
ItemState = Literal["queued", "processing", "paused", "waiting", "done", "failed", "dead", "stopped"]
"""`waiting`: it asked a question and continues after the answer. `dead`: all its retries failed."""
Signal = Literal["", "pause", "cancel"]
"""Request to the worker of an item, handled at its next step."""
OVER: frozenset[ItemState] = frozenset({"done", "failed", "dead", "stopped"})

_KEY = re.compile(
    r"(github|gitlab):([^\s#!:]+/[^\s#!:]+)([#!])([1-9][0-9]{0,18})|files:([^\s/\\:](?:[^\r\n/\\:]{0,198}[^\s/\\:])?)"
)


class ItemKey(Frozen):
    """Key of an issue, a request, or a file.

    `repository` is `owner/name` or `group/sub/name`, empty for a file. `name` is the number, or the file's
    name without `.md`. `place`: a file's folder and the repository to change; commands omit it, so file
    names are unique.
    """

    source: SourceName
    kind: ItemKind
    repository: str = ""
    name: str
    place: str = ""

    def __str__(self) -> str:
        if self.source == "files":
            return f"files:{self.name}"
        return f"{self.source}:{self.repository}{'!' if self.kind == 'request' else '#'}{self.name}"


def read_key(text: str) -> ItemKey | None:
    """Parse a key such as `github:owner/name#12`; None if it is invalid."""
    match = _KEY.fullmatch(text.strip())
    if match is None:
        return None
    source, repository, mark, number, file = match.groups()
    if file is not None:
        return ItemKey(source="files", kind="file", name=file)
    kind: ItemKind = "request" if mark == "!" else "issue"
    return ItemKey.model_validate({"source": source, "kind": kind, "repository": repository, "name": number})


class ItemProgress(Wire):
    """Progress of an item's plan: completed steps, all steps, and the name of the current step."""

    done: int
    total: int
    step: str = ""


class WorkItem(Localizable):
    """A work item for commands, editors, and scripts.

    `error` says why it failed, waits, or was stopped. `wanted` is a pending signal. `usage` is the total of
    its runs so far, or None.
    """

    item: str
    title: str
    url: str = ""
    state: ItemState
    session_id: str = ""
    branch: str = ""
    request_url: str = ""
    attempts: int = 0
    wanted: Signal = ""
    progress: ItemProgress | None = None
    usage: Usage | None = None
    error: Text = NO_TEXT
    created_at: str
    updated_at: str


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

"""Work items: keys, states, and their form in commands (PROTOCOL 9)."""

from __future__ import annotations

import re
from typing import Literal

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

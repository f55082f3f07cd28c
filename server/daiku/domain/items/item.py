"""A work item: its key, its state, and how commands name it (PROTOCOL 9)."""

from __future__ import annotations

import re
from typing import Literal

from daiku.domain.base import Frozen, Localizable, Wire
from daiku.domain.messages import Usage
from daiku.texts.text import NO_TEXT, Text

SourceName = Literal["github", "gitlab", "files"]
ItemKind = Literal["issue", "request", "file"]
"""`request`: a pull request of GitHub, a merge request of GitLab."""
ItemState = Literal["queued", "processing", "paused", "waiting", "done", "failed", "dead", "stopped"]
"""`waiting`: it asked something, and goes on when a person has answered. `dead`: all its retries failed."""
Signal = Literal["", "pause", "cancel"]
"""What whoever works an item is to do at the next step."""
OVER: frozenset[ItemState] = frozenset({"done", "failed", "dead", "stopped"})

_KEY = re.compile(
    r"(github|gitlab):([^\s#!:]+/[^\s#!:]+)([#!])([1-9][0-9]{0,18})|files:([^\s/\\:](?:[^\r\n/\\:]{0,198}[^\s/\\:])?)"
)


class ItemKey(Frozen):
    """Which issue, request or file. `repository` is `owner/name` or `group/sub/name`, empty for a file; `name` is the
    number as digits, or the file's name without `.md`. `place`: the folder in which a file lies and the repository in
    which it is worked; commands do not name them, so that there is one file of a name."""

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
    """The key that `text` names, such as `github:owner/name#12`; None where it names none."""
    found = _KEY.fullmatch(text.strip())
    if found is None:
        return None
    source, repository, mark, number, file = found.groups()
    if file is not None:
        return ItemKey(source="files", kind="file", name=file)
    kind: ItemKind = "request" if mark == "!" else "issue"
    return ItemKey.model_validate({"source": source, "kind": kind, "repository": repository, "name": number})


class ItemProgress(Wire):
    """How far the plan of an item is: steps done, steps in all, and the name of the one under way."""

    done: int
    total: int
    step: str = ""


class WorkItem(Localizable):
    """A work item as commands, editors and scripts see it. `error` says why it failed, waits or was stopped; `wanted`
    what was asked of it while it is worked, and has not come about yet; `usage` what its runs took of models so far, None
    where there was none."""

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

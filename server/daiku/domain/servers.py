"""MCP servers as the rest of Daiku sees them: what a person agreed to, what is asked, how they stand."""

from typing import Literal

from daiku.domain.base import Frozen
from daiku.texts.text import NO_TEXT, Text


class Consent(Frozen):
    """What a person said to one server of a workspace. `launch` is the digest of what is started or
    reached; `tools` maps the names that they saw to the digests of the definitions (None: none was seen yet)."""

    launch: str
    answer: Literal["allow", "reject"]
    tools: dict[str, str] | None = None


class ConsentQuestion(Frozen):
    """May this server be used? `key` names server and definition: a changed one is another question."""

    server: str
    key: str
    preview: Text
    why: Text
    remember: Text


ServerStatus = Literal["ready", "starting", "down", "unasked", "changed", "rejected", "unusable"]
"""`down`: ended or could not be reached, and is tried again. `changed`: some of what it offers waits
for a new yes."""


class ServerReport(Frozen):
    """How a configured server stands, and why it is not usable where it is not; what to do is in `hint`."""

    name: str
    status: ServerStatus
    tools: tuple[str, ...] = ()
    why: Text = NO_TEXT
    hint: Text = NO_TEXT

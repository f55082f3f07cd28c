"""MCP servers: consent, consent questions, and status reports."""

from typing import Literal

from daiku.domain.base import Frozen
from daiku.texts.text import NO_TEXT, Text


class Consent(Frozen):
    """The user's answer about one MCP server of a workspace.

    `launch` is the digest of its command or URL. `tools` maps tool names to digests of their definitions, as
    the user saw them (None: not listed yet).
    """

    launch: str
    answer: Literal["allow", "reject"]
    tools: dict[str, str] | None = None


class ConsentQuestion(Frozen):
    """A question whether an MCP server may be used.

    `key` identifies server and definition: a changed definition is a new question.
    """

    server: str
    key: str
    preview: Text
    why: Text
    remember: Text


ServerStatus = Literal["ready", "starting", "down", "unasked", "changed", "rejected", "unusable"]
"""`down`: ended or unreachable; it is retried. `changed`: some of its tools need approval again."""


class ServerReport(Frozen):
    """Status of a configured MCP server, why it is unusable (`why`), and what to do (`hint`)."""

    name: str
    status: ServerStatus
    tools: tuple[str, ...] = ()
    why: Text = NO_TEXT
    hint: Text = NO_TEXT

"""What a model wants done (`ToolCall`), what came of it (`ToolResult`), what can be done (`ToolSpec`)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from daiku.domain.base import Frozen, JsonObject, Wire, long_id

Effect = Literal["none", "read", "edit", "command", "network", "mcp", "plan", "ask"]
"""What a tool touches. `none` and `read` change nothing; `plan` and `ask` change only the session."""


class ToolCall(Frozen):
    """One call that the model asked for.

    `tool` is the canonical `namespace/tool`. `malformed` holds the argument text
    when it was not a JSON object; such a call is answered with an error, never run.
    """

    id: str = Field(default_factory=lambda: long_id("call"))
    tool: str
    args: JsonObject = {}
    reasoning: str | None = None
    malformed: str | None = None


class Action(Frozen):
    """One operation of an ActionList, as in seed 4 (R4.24)."""

    operation: str
    args: JsonObject = {}
    reasoning: str | None = None


class ToolImage(Wire):
    """A picture that a tool returns: base64 data and its media type."""

    media_type: str
    data: str


class ToolResult(Frozen):
    """What a call came to. `text` is what the model reads; `data` what programs read."""

    ok: bool
    text: str
    data: JsonObject | None = None
    images: tuple[ToolImage, ...] = ()
    untrusted: bool = False
    """True where the text comes from outside (web, MCP, issue): it can grant nothing."""


class ToolSpec(Frozen):
    """What the model and the guard know of a tool."""

    name: str
    description: str
    parameters: JsonObject
    """JSON Schema of the arguments, an object."""
    effect: Effect
    parallel: bool = False
    """True where calls of one reply may run side by side (read-only and independent)."""
    resumes: bool = False
    """True where a call that was cut short by a restart goes on where it was when it is run again."""

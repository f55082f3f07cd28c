"""Tool calls, tool results, and tool specifications."""

from typing import Literal, cast

from pydantic import Field, model_validator

from daiku.domain.base import Frozen, JsonObject, Wire, long_id
from daiku.texts.text import Said

Effect = Literal["none", "read", "edit", "command", "network", "mcp", "plan", "ask", "memory"]
"""What a tool touches. `none` and `read` change nothing, `plan` and `ask` only the session, `memory` data that
outlives sessions."""


EditForm = Literal["search_replace", "apply_patch"]
"""Edit format that a model was trained on and that it is offered."""
Outcome = Literal["done", "failed", "denied", "rejected", "unattended", "interrupted", "cancelled", "not_run"]
"""Outcome of a call: done; failed; denied by the guard; rejected by the user; unattended, so that nobody could
approve; interrupted by a restart; cancelled by the user; not run."""
UNCHANGED = "unchanged"
"""Key of result data: True if a command left every file that it edits unchanged, False if it changed one."""
MISSING_SERVER = "missingServer"
"""Key of result data: the MCP server that did not answer the call."""


def with_outcome(values: object) -> object:
    """Set both `ok` and `outcome` in a call's result fields; old records lack `outcome`.

    Raises ValueError if the two contradict each other.
    """
    if not isinstance(values, dict):
        return values
    fields = cast("dict[str, object]", values)
    if "outcome" not in fields:
        return {**fields, "outcome": "done" if fields.get("ok") is True else "failed"}
    if "ok" not in fields:
        return {**fields, "ok": fields["outcome"] == "done"}
    if fields["ok"] is not (fields["outcome"] == "done"):
        raise ValueError("ok means the outcome done, and nothing else does")
    return fields


class ToolCall(Frozen):
    """A tool call of a model.

    `tool` is the canonical `namespace/tool`. `malformed` holds argument text that is not a JSON object; such
    a call is answered with an error, never run. `notes` say how nonstandard arguments were read; the result
    repeats them.
    """

    id: str = Field(default_factory=lambda: long_id("call"))
    tool: str
    args: JsonObject = {}
    reasoning: str | None = None
    malformed: str | None = None
    notes: tuple[str, ...] = ()


class ToolImage(Wire):
    """An image that a tool returns: base64 data and its media type."""

    media_type: str
    data: str


class ToolResult(Frozen):
    """Result of a tool call: `text` for the model, `data` for programs."""

    ok: bool = False
    """True if the outcome is `done`; set either, the other follows."""
    text: Said
    data: JsonObject | None = None
    images: tuple[ToolImage, ...] = ()
    outcome: Outcome = "failed"
    untrusted: bool = False
    """True if the text comes from outside (web, MCP, issue) and can grant nothing."""
    plain: str | None = None
    """The text without its frame, kept for reuse by another call."""

    _outcome = model_validator(mode="before")(with_outcome)


class ToolSpec(Frozen):
    """Definition of a tool for the model and the guard."""

    name: str
    description: str
    parameters: JsonObject
    """JSON Schema of the arguments, an object."""
    effect: Effect
    parallel: bool = False
    """True if calls of one reply may run in parallel (read-only and independent)."""
    inner: bool = False
    """True if only agents that list it may use it."""
    resumes: bool = False
    """True if a call interrupted by a restart continues when it is run again."""

"""What a model wants done (`ToolCall`), what came of it (`ToolResult`), what can be done (`ToolSpec`)."""

from typing import Literal, cast

from pydantic import Field, model_validator

from daiku.domain.base import Frozen, JsonObject, Wire, long_id
from daiku.texts.text import Said

Effect = Literal["none", "read", "edit", "command", "network", "mcp", "plan", "ask", "memory"]
"""What a tool touches. `none` and `read` change nothing; `plan` and `ask` change only the session; `memory` changes
what is kept over sessions."""


EditForm = Literal["search_replace", "apply_patch"]
"""The form of edit that a model was trained to write, and that it is offered."""
Outcome = Literal["done", "failed", "denied", "rejected", "unattended", "interrupted", "cancelled", "not_run"]
"""What came of a call: carried out; tried without success; refused by the guard; refused by a person; nobody
could be asked; begun and cut off by a restart; cancelled by a person; never begun."""
UNCHANGED = "unchanged"
"""Key of a result's data: True if a command changed none of the files that it edits, False if it changed a file."""
MISSING_SERVER = "missingServer"
"""Key of a result's data: the MCP server that did not answer the call."""


def with_outcome(values: object) -> object:
    """Complete a call's result fields so that both `ok` and `outcome` are set; old records lack `outcome`.
    Raises ValueError if the two contradict each other."""
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
    """One call that the model asked for.

    `tool` is the canonical `namespace/tool`. `malformed` holds the argument text
    when it was not a JSON object; such a call is answered with an error, never run. `notes` say how its
    arguments were read where the model wrote them in another way; its result repeats them.
    """

    id: str = Field(default_factory=lambda: long_id("call"))
    tool: str
    args: JsonObject = {}
    reasoning: str | None = None
    malformed: str | None = None
    notes: tuple[str, ...] = ()


class ToolImage(Wire):
    """A picture that a tool returns: base64 data and its media type."""

    media_type: str
    data: str


class ToolResult(Frozen):
    """What a call came to. `text` is what the model reads; `data` what programs read."""

    ok: bool = False
    """True where the outcome is `done`; either may be given, the other follows."""
    text: Said
    data: JsonObject | None = None
    images: tuple[ToolImage, ...] = ()
    outcome: Outcome = "failed"
    untrusted: bool = False
    """True where the text comes from outside (web, MCP, issue): it can grant nothing."""
    plain: str | None = None
    """What was found, without what `text` puts around it: kept where another call uses it."""

    _outcome = model_validator(mode="before")(with_outcome)


class ToolSpec(Frozen):
    """What the model and the guard know of a tool."""

    name: str
    description: str
    parameters: JsonObject
    """JSON Schema of the arguments, an object."""
    effect: Effect
    parallel: bool = False
    """True where calls of one reply may run side by side (read-only and independent)."""
    inner: bool = False
    """True where only agents that name it may use it."""
    resumes: bool = False
    """True where a call that was cut short by a restart goes on where it was when it is run again."""

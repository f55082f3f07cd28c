"""Replies that are action lists, or one command or the end."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, Field, TypeAdapter, field_validator, model_validator

from daiku.core.replies.parse import Unreadable, read_json
from daiku.domain.base import Frozen, JsonObject
from daiku.texts.text import text

MAX_ACTIONS = 50


class ActionReply(Frozen):
    """One operation of an action list; `id` is how later ones refer to its result (R4.24, C4.8)."""

    operation: str = Field(
        min_length=1, validation_alias=AliasChoices("operation", "tool", "name", "tool_name")
    )
    args: JsonObject = Field(
        default={}, validation_alias=AliasChoices("args", "arguments", "parameters", "input")
    )
    reasoning: str | None = Field(default=None, validation_alias=AliasChoices("reasoning", "comment"))
    id: str = Field(default="", validation_alias=AliasChoices("id", "action_id"), coerce_numbers_to_str=True)

    @field_validator("args", mode="before")
    @classmethod
    def _as_object(cls, value: Any) -> Any:
        """No arguments may be null; some models send them as JSON text."""
        if value is None:
            return {}
        if isinstance(value, str) and value.lstrip().startswith("{"):
            return TypeAdapter(JsonObject).validate_json(value)
        return value


class ActionsReply(Frozen):
    """An action list and what is said beside it; an empty list only answers (C4.10)."""

    actions: tuple[ActionReply, ...] = Field(max_length=MAX_ACTIONS)
    comment: str = ""

    @model_validator(mode="before")
    @classmethod
    def _forms(cls, data: Any) -> Any:
        """A bare list, one bare action, and the other names of the list are the same thing."""
        if isinstance(data, list):
            return {"actions": data}  # pyright: ignore[reportUnknownVariableType]  # JSON from a model
        if not isinstance(data, dict):
            return data
        found: dict[str, Any] = data  # pyright: ignore[reportUnknownVariableType]  # JSON from a model
        for name in ("actions", "action_list", "ActionList", "tool_calls"):
            if name in found:
                return {"actions": found[name] or [], "comment": _comment_of(found)}
        if isinstance(found.get("operation"), str) or (
            isinstance(found.get("tool") or found.get("name") or found.get("tool_name"), str)
            and any(
                isinstance(found.get(k), dict | str) for k in ("args", "arguments", "parameters", "input")
            )
        ):
            return {"actions": [found]}
        raise ValueError(text("forms.no_actions"))


class CommandReply(Frozen):
    """One command or the end (R2.47–R2.51); the outer comment wins over the command's own (C2.2)."""

    comment: str = ""
    tool: str = ""
    args: JsonObject = {}
    done: bool = False

    @model_validator(mode="before")
    @classmethod
    def _forms(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            raise ValueError(text("forms.command_object"))  # noqa: TRY004  # pydantic wants ValueError
        found: dict[str, Any] = data  # pyright: ignore[reportUnknownVariableType]  # JSON from a model
        comment = _comment_of(found)
        command = found.get("command")
        if isinstance(command, dict):
            inner: dict[str, Any] = command  # pyright: ignore[reportUnknownVariableType]  # JSON from a model
            if not isinstance(inner.get("tool"), str) or not inner["tool"].strip():
                raise ValueError(text("forms.command_tool"))
            return {
                "comment": comment or _comment_of(inner),
                "tool": inner["tool"],
                "args": inner.get("args") if inner.get("args") is not None else {},
            }
        if found.get("done") is True:
            return {"comment": comment, "done": True}
        if "done" in found and "command" not in found:
            raise ValueError(text("forms.done"))
        raise ValueError(text("forms.command_or_done"))


def _comment_of(data: dict[str, Any]) -> str:
    for name in ("comment", "reply", "message", "response"):
        if isinstance(said := data.get(name), str) and said:
            return said
    return ""


_ACTIONS = TypeAdapter(ActionsReply)
_COMMAND = TypeAdapter(CommandReply)


def read_actions(reply: str) -> ActionsReply | Unreadable:
    """An action list in any of its forms."""
    return read_json(reply, _ACTIONS.validate_python)


def read_command(reply: str) -> CommandReply | Unreadable:
    """`{"command": {…}, "comment": "…"}` or `{"done": true, "comment": "…"}`."""
    return read_json(reply, _COMMAND.validate_python)

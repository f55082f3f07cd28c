"""Models of the action lists in replies."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, Field, TypeAdapter, field_validator

from daiku.domain.base import Frozen, JsonObject

MAX_ACTIONS = 50


class ActionReply(Frozen):
    """One operation of an action list; later ones refer to its result by `id` (R4.24, C4.8)."""

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
        """Convert null to no arguments, and JSON text, which some models send, to an object."""
        if value is None:
            return {}
        if isinstance(value, str) and value.lstrip().startswith("{"):
            return TypeAdapter(JsonObject).validate_json(value)
        return value


class ActionsReply(Frozen):
    """Action list. An empty list is only an answer (C4.10)."""

    actions: tuple[ActionReply, ...] = Field(max_length=MAX_ACTIONS)

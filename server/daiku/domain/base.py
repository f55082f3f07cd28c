"""The two model bases (inside and wire), JSON types and new ids."""

from __future__ import annotations

import secrets
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic.alias_generators import to_camel

JsonObject: TypeAlias = dict[str, JsonValue]


class Frozen(BaseModel):
    """An immutable value; snake_case in Python and in stores."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Wire(BaseModel):
    """An immutable value that editors see: camelCase outside, snake_case in Python."""

    model_config = ConfigDict(
        frozen=True,
        defer_build=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        json_schema_serialization_defaults_required=True,
    )


def new_id(prefix: str) -> str:
    """`prefix_` and 8 hexadecimal digits, as the plan ids of PROTOCOL 3."""
    return f"{prefix}_{secrets.token_hex(4)}"


def long_id(prefix: str) -> str:
    """`prefix_` and 16 hexadecimal digits, for ids that live as long as the database."""
    return f"{prefix}_{secrets.token_hex(8)}"

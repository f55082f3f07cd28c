"""Parsers of a forge's API answers: objects, lists, times, and refusals."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TypeVar

from pydantic import ConfigDict, JsonValue, ValidationError

from daiku.domain.base import Frozen
from daiku.domain.items.forge import ForgeRefusal, RefusalKind
from daiku.texts.text import Text


class Shape(Frozen):
    """The part of an answer that is read; other fields are ignored."""

    model_config = ConfigDict(extra="ignore")


AnyShape = TypeVar("AnyShape", bound=Shape)

REFUSALS: Mapping[int, RefusalKind] = MappingProxyType(
    {
        301: "moved",
        302: "moved",
        307: "moved",
        308: "moved",
        401: "unauthorized",
        403: "forbidden",
        404: "gone",
        408: "unreachable",
        409: "exists",
        410: "gone",
        451: "gone",
    }
)
"""Meaning of each HTTP status below 500 on every forge."""
_EARLIEST = datetime.min.replace(tzinfo=UTC)


def parse_one(shape: type[AnyShape], data: JsonValue) -> AnyShape | None:
    """Parse an answer as `shape`; None if it does not fit."""
    try:
        return shape.model_validate(data)
    except ValidationError:
        return None


def parse_list(shape: type[AnyShape], data: JsonValue) -> tuple[AnyShape, ...] | None:
    """Parse an answer as a list of `shape`; None if it is no list or a row does not fit."""
    if not isinstance(data, list):
        return None
    rows = tuple(parse_one(shape, row) for row in data)
    valid = tuple(row for row in rows if row is not None)
    return valid if len(valid) == len(rows) else None


def build_refusal(kind: RefusalKind, message: Text) -> ForgeRefusal:
    """Build a refusal of this kind, with the message for the user."""
    return ForgeRefusal(kind=kind, message=message)


def is_forge_error(body: bytes) -> bool:
    """Return True if an error's body can be the forge's own (a JSON object, or empty), not a proxy's page."""
    if not body.strip():
        return True
    try:
        return isinstance(json.loads(body), dict)
    except (ValueError, RecursionError):
        return False


def parse_time(time: str | None) -> datetime:
    """Parse a forge's time (ISO 8601); return the earliest possible time if it is none."""
    try:
        parsed = datetime.fromisoformat(time or "")
    except ValueError:
        return _EARLIEST
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)

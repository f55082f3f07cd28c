"""Reads the answers of a forge's interface: as the shape that is expected, as a list of them, as times, as refusals."""

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
    """As much of an answer as is looked at; whatever else stands there is passed over."""

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
"""What a status below 500 means on every forge."""
_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


def one(shape: type[AnyShape], data: JsonValue) -> AnyShape | None:
    """The shape that an answer is; None where it is none of the kind."""
    try:
        return shape.model_validate(data)
    except ValidationError:
        return None


def several(shape: type[AnyShape], data: JsonValue) -> tuple[AnyShape, ...] | None:
    """The shapes that a list holds; None where it is no list of the kind."""
    if not isinstance(data, list):
        return None
    found = tuple(one(shape, row) for row in data)
    whole = tuple(row for row in found if row is not None)
    return whole if len(whole) == len(found) else None


def refused(kind: RefusalKind, message: Text) -> ForgeRefusal:
    """A refusal of this kind, with what a person is told of it."""
    return ForgeRefusal(kind=kind, message=message)


def is_forges_word(body: bytes) -> bool:
    """Return True if the body of a refusal can be the forge's own: a JSON object, or nothing. A page of a proxy is not."""
    if not body.strip():
        return True
    try:
        return isinstance(json.loads(body), dict)
    except (ValueError, RecursionError):
        return False


def moment(time: str | None) -> datetime:
    """A time as a forge writes it (ISO 8601); what is no time was before everything."""
    try:
        found = datetime.fromisoformat(time or "")
    except ValueError:
        return _BEFORE_ALL
    return found if found.tzinfo else found.replace(tzinfo=UTC)

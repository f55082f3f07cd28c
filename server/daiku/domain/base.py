"""The two model bases (inside and wire), JSON types and new ids."""

import secrets
from functools import cache
from operator import not_
from typing import Any, Self, TypeAlias, cast, get_args

from pydantic import BaseModel, ConfigDict, JsonValue, computed_field, model_validator
from pydantic.alias_generators import to_camel
from pydantic.json_schema import SkipJsonSchema

from daiku.texts.text import Text, as_json, from_json, render

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


class Localizable(Wire):
    """A value with sentences for a person. As JSON its fields hold their English, and `texts` beside them what
    each is made from, by field (a list for a field of several): a front puts it into the person's language."""

    @model_validator(mode="before")
    @classmethod
    def _with_values(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "texts" not in data:
            return data  # pyright: ignore[reportUnknownVariableType]  # whatever came in
        found = cast("dict[str, Any]", data)
        values = {to_camel(name): value for name, value in found["texts"].items()}
        return {
            key: _restored(value, values[to_camel(key)]) if to_camel(key) in values else value
            for key, value in found.items()
            if key != "texts"
        }

    @computed_field(repr=False, exclude_if=not_)
    @property
    def texts(self) -> SkipJsonSchema[JsonObject]:
        """The values of the sentences by field; fields without one are left out."""
        found: JsonObject = {}
        for name in _sentence_fields(type(self)):
            if value := _values_in(getattr(self, name)):
                found[name] = value
        return found

    def in_language(self, language: str) -> Self:
        """Return a copy with all sentences translated into `language`."""
        told = {name: _told(getattr(self, name), language) for name in type(self).model_fields}
        changed = {name: value for name, value in told.items() if value is not getattr(self, name)}
        return self.model_copy(update=changed) if changed else self


@cache
def _sentence_fields(model: type[BaseModel]) -> tuple[str, ...]:
    """The fields whose values may be sentences, or tuples of them; `Said` is known by its metadata."""
    return tuple(
        name
        for name, field in model.model_fields.items()
        if Text in (field.annotation, *get_args(field.annotation)) or field.metadata
    )


def _restored(said: object, value: JsonValue) -> object:
    match said, value:
        case str(), dict():
            return from_json(said, value)
        case list(), list():
            pairs = zip(cast("list[object]", said), value, strict=False)
            return [_restored(each, its) if its else each for each, its in pairs]
        case _:
            return said


def _values_in(said: object) -> JsonValue:
    if isinstance(said, Text):
        return as_json(said) if said.id else None
    if isinstance(said, tuple):
        values = [_values_in(each) for each in cast("tuple[object, ...]", said)]
        return values if any(values) else None
    return None


def _told(said: object, language: str) -> object:
    match said:
        case Text() if said.id:
            return Text(render(said, language))
        case Localizable():
            return said.in_language(language)
        case tuple():
            parts = cast("tuple[object, ...]", said)
            told = tuple(_told(each, language) for each in parts)
            return told if any(a is not b for a, b in zip(told, parts, strict=True)) else parts
        case _:
            return said


def new_id(prefix: str) -> str:
    """`prefix_` and 8 hexadecimal digits, as the plan ids of PROTOCOL 3."""
    return f"{prefix}_{secrets.token_hex(4)}"


def long_id(prefix: str) -> str:
    """`prefix_` and 16 hexadecimal digits, for ids that live as long as the database."""
    return f"{prefix}_{secrets.token_hex(8)}"


def is_long_id(name: str, prefix: str) -> bool:
    """Return True if `name` has the form of `long_id(prefix)`."""
    head, _, digits = name.partition("_")
    return head == prefix and len(digits) == 16 and set(digits) <= set("0123456789abcdef")

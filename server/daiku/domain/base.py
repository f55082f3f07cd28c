"""Base models (internal and wire), JSON type aliases, and id generation."""

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
    """An immutable internal model; snake_case in Python and in stores."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Wire(BaseModel):
    """An immutable model on the wire: camelCase in JSON, snake_case in Python."""

    model_config = ConfigDict(
        frozen=True,
        defer_build=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        json_schema_serialization_defaults_required=True,
    )


class Localizable(Wire):
    """A wire model with translatable text fields.

    In JSON each text field holds its English text. The field `texts` holds the message id and values of each
    text by field name, so that a front can translate it.
    """

    @model_validator(mode="before")
    @classmethod
    def _with_values(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "texts" not in data:
            return data  # pyright: ignore[reportUnknownVariableType]  # unvalidated input
        fields = cast("dict[str, Any]", data)
        values = {to_camel(name): value for name, value in fields["texts"].items()}
        return {
            key: _restore_texts(value, values[to_camel(key)]) if to_camel(key) in values else value
            for key, value in fields.items()
            if key != "texts"
        }

    @computed_field(repr=False, exclude_if=not_)
    @property
    def texts(self) -> SkipJsonSchema[JsonObject]:
        """Message ids and values of the text fields, by field name; fields without one are left out."""
        texts: JsonObject = {}
        for name in _sentence_fields(type(self)):
            if value := _text_values(getattr(self, name)):
                texts[name] = value
        return texts

    def in_language(self, language: str) -> Self:
        """Return a copy with all sentences translated into `language`."""
        translated = {name: _localize(getattr(self, name), language) for name in type(self).model_fields}
        changes = {name: value for name, value in translated.items() if value is not getattr(self, name)}
        return self.model_copy(update=changes) if changes else self


@cache
def _sentence_fields(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the fields of type `Text` or `Said`, or tuples of them; `Said` is recognized by its metadata."""
    return tuple(
        name
        for name, field in model.model_fields.items()
        if Text in (field.annotation, *get_args(field.annotation)) or field.metadata
    )


def _restore_texts(field: object, value: JsonValue) -> object:
    match field, value:
        case str(), dict():
            return from_json(field, value)
        case list(), list():
            pairs = zip(cast("list[object]", field), value, strict=False)
            return [_restore_texts(item, item_value) if item_value else item for item, item_value in pairs]
        case _:
            return field


def _text_values(field: object) -> JsonValue:
    if isinstance(field, Text):
        return as_json(field) if field.id else None
    if isinstance(field, tuple):
        values = [_text_values(item) for item in cast("tuple[object, ...]", field)]
        return values if any(values) else None
    return None


def _localize(field: object, language: str) -> object:
    match field:
        case Text() if field.id:
            return Text(render(field, language))
        case Localizable():
            return field.in_language(language)
        case tuple():
            parts = cast("tuple[object, ...]", field)
            translated = tuple(_localize(part, language) for part in parts)
            return translated if any(a is not b for a, b in zip(translated, parts, strict=True)) else parts
        case _:
            return field


def new_id(prefix: str) -> str:
    """Return `prefix_` and 8 random hexadecimal digits."""
    return f"{prefix}_{secrets.token_hex(4)}"


def long_id(prefix: str) -> str:
    """Return `prefix_` and 16 random hexadecimal digits, for ids that are unique in the database."""
    return f"{prefix}_{secrets.token_hex(8)}"


def is_long_id(name: str, prefix: str) -> bool:
    """Return True if `name` has the form of `long_id(prefix)`."""
    head, _, digits = name.partition("_")
    return head == prefix and len(digits) == 16 and set(digits) <= set("0123456789abcdef")

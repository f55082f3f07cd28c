"""A sentence for a person as a value: its id and arguments, and as a string its English."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, GetPydanticSchema, JsonValue
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

Argument: TypeAlias = str | int | float
"""Value of a placeholder; a `Text` is rendered in the language of the surrounding text."""
ENGLISH = "en"
_FOLDER = Path(__file__).parent
_HOLE = re.compile(r"( ?)\{(\w+)\}( ?)")
_OF_JAPAN = re.compile(r"[\u3001-\u30ff\u4e00-\u9fff\uff01-\uff5e]")


@cache
def languages() -> frozenset[str]:
    """Return the available languages, one per file."""
    return frozenset(path.stem for path in _FOLDER.glob("*.json"))


def language_of(locale: str) -> str:
    """Return the language for a locale such as `ja`, `ja-JP`, `ja_JP.UTF-8`; English if there is no match."""
    language = re.split(r"[-_.]", locale.lower(), maxsplit=1)[0]
    return language if language in languages() else ENGLISH


@cache
def sentences(language: str) -> Mapping[str, str]:
    """Return the catalogue of one language: message templates by key."""
    found: dict[str, str] = json.loads((_FOLDER / f"{language}.json").read_text("utf-8"))
    return found


def label(language: str, english: str) -> str:
    """Return the translation of the short English text `english`, or the text itself if there is none."""
    return sentences(language if language in languages() else ENGLISH).get(f"label.{english}", english)


def fill(language: str, key: str, args: Mapping[str, Argument]) -> str:
    """Return the message `key` with its placeholders filled; the parts of a `join.` are concatenated.

    Raises KeyError for an unknown key or a missing argument.
    """
    sentence = sentences(language)[key]
    if key.startswith("join."):
        return sentence.join(str(value) for value in args.values())
    return _HOLE.sub(lambda hole: _set_in(str(args[hole[2]]), hole), sentence)


def _set_in(value: str, hole: re.Match[str]) -> str:
    """Blanks stand between Japanese and other letters, not between Japanese and Japanese."""
    joins = _OF_JAPAN.match(value) and _OF_JAPAN.match(hole.string[: hole.start()][-1:])
    goes_on = _OF_JAPAN.match(value[-1:]) and _OF_JAPAN.match(hole.string[hole.end() :])
    return ("" if joins else hole[1]) + value + ("" if goes_on else hole[3])


Joint: TypeAlias = Literal["sentences", "clauses", "lines", "paragraphs", "list"]
"""How parts stand beside one another; the separators are texts of the catalogue, `join.sentences` and so on."""
_NONE: Mapping[str, Argument] = MappingProxyType({})


class Text(str):
    """A string for a person.

    As a string it is English, which models, logs and programs read; `id` and `args` are what `render` makes another
    language's sentence from. Without an id it is somebody's own words (a name, what a service answered), the same in
    every language.
    """

    __slots__ = ("args", "id")
    id: str
    args: Mapping[str, Argument]

    def __new__(cls, english: str, key: str = "", args: Mapping[str, Argument] = _NONE) -> Self:
        made = super().__new__(cls, english)
        made.id, made.args = key, args
        return made

    def __reduce__(self) -> tuple[type[Text], tuple[str, str, dict[str, Argument]]]:
        return Text, (str(self), self.id, dict(self.args))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        strings = core_schema.no_info_after_validator_function(cls._of, core_schema.str_schema())
        return core_schema.union_schema(
            [core_schema.is_instance_schema(cls), strings],
            mode="left_to_right",
            serialization=core_schema.to_string_ser_schema(),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "string"}

    @classmethod
    def _of(cls, plain: str) -> Text:
        return cls(plain)


NO_TEXT = Text("")


def text(key: str, /, **args: Argument) -> Text:
    """Return the message `key` of the catalogue with its arguments. Raises KeyError if there is none."""
    return Text(fill(ENGLISH, key, args), key, args)


def joined(joint: Joint, parts: Iterable[str]) -> Text:
    """Parts beside one another; empty ones are left out, and one alone stays what it is."""
    found = [part for part in parts if part]
    if len(found) == 1:
        return found[0] if isinstance(found[0], Text) else Text(found[0])
    args: dict[str, Argument] = {str(n): part for n, part in enumerate(found)}
    return Text(fill(ENGLISH, f"join.{joint}", args), f"join.{joint}", args) if found else Text("")


def as_text(said: str) -> Text:
    """`said` as a value: a sentence of ours as it is, anything else as somebody's own words."""
    return said if isinstance(said, Text) else Text(said)


def render(said: str, language: str) -> str:
    """`said` in `language`: by its id where it has one, else as it is.

    What the catalogue does not know (a journal of another version) stays English.
    """
    if not isinstance(said, Text) or not said.id or language == ENGLISH:
        return str(said)
    try:
        return fill(
            language, said.id, {name: _rendered(value, language) for name, value in said.args.items()}
        )
    except KeyError:
        return str(said)


def shortened(said: str, limit: int, language: str) -> str:
    """`said`, its end cut where it is longer than `limit` characters, and how much that was."""
    if len(said) <= limit:
        return said
    return render(text("box.more", shown=said[:limit], count=len(said) - limit), language)


def renderings(said: str) -> frozenset[str]:
    """`said` in every language: what a person may have picked where it was offered to them."""
    return frozenset(render(said, language) for language in languages())


def _rendered(value: Argument, language: str) -> Argument:
    return render(value, language) if isinstance(value, str) else value


def as_json(said: Text) -> JsonValue:
    """Return the key and the arguments as JSON, for the journal and the wire."""
    return {"id": said.id, "args": {name: _arg_as_json(value) for name, value in said.args.items()}}


def _arg_as_json(value: Argument) -> JsonValue:
    return (
        as_json(value)
        if isinstance(value, Text) and value.id
        else str(value)
        if isinstance(value, str)
        else value
    )


def from_json(english: str, value: JsonValue) -> Text:
    """Return the text that `as_json` encoded; `english` is its English fallback (empty: the catalogue's)."""
    match value:
        case {"id": str(key), "args": dict(args)}:
            if not english and isinstance(found := _arg_from_json(value), Text):
                return found
            return Text(english, key, {name: _arg_from_json(each) for name, each in args.items()})
        case _:
            return Text(english)


def _arg_from_json(value: JsonValue) -> Argument:
    match value:
        case {"id": str(key), "args": dict(args)}:
            found = {name: _arg_from_json(each) for name, each in args.items()}
            try:
                return Text(fill(ENGLISH, key, found), key, found)
            except KeyError:  # a text of another version: nothing better than its name is known
                return key
        case str() | int() | float():
            return value
        case _:
            return str(value)


def _value_or_string(_source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
    return core_schema.union_schema(
        [core_schema.is_instance_schema(Text), core_schema.str_schema()],
        mode="left_to_right",
        serialization=core_schema.to_string_ser_schema(),
    )


Said: TypeAlias = Annotated[
    str, GetPydanticSchema(_value_or_string, lambda _schema, handler: handler(core_schema.str_schema()))
]
"""A field of any words: those that are a sentence of ours stay the value that they are."""

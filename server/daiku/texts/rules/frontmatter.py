"""The front matter of a Markdown file: a small, strict part of YAML, read, and changed with all else left as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Literal, TypeAlias

from daiku.dataclass import dataclass, replace

_FENCE = re.compile(r"---[ \t]*\r?\n?")
_END = re.compile(r"(?:---|\.\.\.)[ \t]*\r?\n?")
_FIELD = re.compile(r"([^\s:#'\"\[\]{},&*!|>%@`-][^:\s]*)[ \t]*:(?=[ \t\r\n]|$)")
_OTHER_FIELD = re.compile(r"[^\s#].*:(?:\s|$)")
_NOTHING = re.compile(r"[ \t]*+(?:(?<![^ \t\n])#[^\n]*)?\r?\n?")
_ITEM = re.compile(r"[ \t]*-(?=[ \t\r\n]|$)[ \t]*")
_SINGLE = re.compile(r"'((?>(?:[^'\n]|'')*))'")
_DOUBLE = re.compile(r'"((?>(?:[^"\\\n]|\\[^\n])*))"')
_PLAIN = re.compile(
    r"(?![-?:](?:[ \t\r\n]|$))[^\s\[\]{},#&*!|>%@`'\"](?>(?:[^\s:#]|:(?=[^\s])|(?<=\S)#|[ \t]+(?=[^\s#]))*)"
)
_PLAIN_IN_LIST = re.compile(
    r"(?![-?:](?:[ \t\r\n]|$))[^\s\[\]{},#&*!|>%@`'\"](?>(?:[^\s:#\[\]{},]|:(?=[^\s\[\]{},])|(?<=\S)#|[ \t]+(?=[^\s#\[\]{},]))*)"
)
_BLANKS = re.compile(r"[ \t]*+")
_SAFE = re.compile(r"[^\W\d_][\w./-]*(?: [\w./-]+)*")
_NULLS = frozenset({"null", "Null", "NULL", "~"})
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "0": "\0",
    "b": "\b",
    "f": "\f",
    '"': '"',
    "\\": "\\",
    "/": "/",
    " ": " ",
}
Form: TypeAlias = Literal["empty", "scalar", "flow", "block"]


@dataclass(frozen=True, slots=True)
class BadLine:
    """The line that is not understood, counted from 1."""

    line: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value and where it is written."""

    value: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Field:
    """What stands behind a key. `start` and `end` enclose all of it; where there is nothing, they are behind the colon."""

    key: str
    form: Form
    items: tuple[Scalar, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The fields that were asked for. `end` is where the line begins that closes it, `body` what is behind that line."""

    text: str
    fields: tuple[Field, ...]
    end: int
    body: int

    def values(self, key: str) -> tuple[str, ...]:
        """Return the values of `key`, empty if it is missing."""
        found = self._field(key)
        return tuple(item.value for item in found.items if item.value) if found else ()

    def value(self, key: str) -> str:
        """Return the value of `key`, empty if it is missing."""
        return next(iter(self.values(key)), "")

    def with_value(self, key: str, value: str) -> str:
        """Return the text with `key: value`."""
        found = self._field(key)
        if found is None:
            return self._with_line(f"{key}: {_written(value)}")
        blank = " " if found.form == "empty" else ""
        return _spliced(self.text, [(found.start, found.end, blank + _written(value))])

    def with_item(self, key: str, item: str, instead_of: Collection[str]) -> str:
        """Return the text with `item` in the list of `key`, replacing those in `instead_of`; other items stay."""
        found = self._field(key)
        if found is None:
            return self._with_line(f"{key}: [{_written(item)}]")
        out = {each.casefold() for each in instead_of} - {item.casefold()}
        gone = [each for each in found.items if each.value.casefold() in out]
        there = any(each.value.casefold() == item.casefold() for each in found.items)
        if there and not gone:
            return self.text
        edits = {
            "empty": self._into_nothing,
            "scalar": self._into_one,
            "flow": self._into_flow,
            "block": self._into_block,
        }[found.form](found, gone, "" if there else _written(item))
        return _spliced(self.text, edits)

    def _field(self, key: str) -> Field | None:
        return next((each for each in self.fields if each.key == key), None)

    def _with_line(self, line: str) -> str:
        newline = "\r\n" if self.text[: self.end].endswith("\r\n") else "\n"
        return _spliced(self.text, [(self.end, self.end, line + newline)])

    def _into_nothing(self, found: Field, gone: list[Scalar], new: str) -> list[_Edit]:
        return [(found.start, found.end, f" [{new}]")]

    def _into_one(self, found: Field, gone: list[Scalar], new: str) -> list[_Edit]:
        if gone:
            return [(found.start, found.end, new)]
        return [(found.start, found.end, f"[{_written(found.items[0].value)}, {new}]")]

    def _into_flow(self, found: Field, gone: list[Scalar], new: str) -> list[_Edit]:
        if len(gone) == 1 and new:
            return [(gone[0].start, gone[0].end, new)]
        kept = [self.text[each.start : each.end] for each in found.items if each not in gone]
        return [(found.start, found.end, "[" + ", ".join([*kept, new] if new else kept) + "]")]

    def _into_block(self, found: Field, gone: list[Scalar], new: str) -> list[_Edit]:
        if not gone:
            first, last = self._line(found.items[0]), self._line(found.items[-1])
            before = self.text[first[0] : found.items[0].start]
            newline = "\r\n" if self.text[: last[1]].endswith("\r\n") else "\n"
            return [(last[1], last[1], f"{before}{new}{newline}")]
        lines: list[_Edit] = [(*self._line(each), "") for each in gone]
        return [(gone[0].start, gone[0].end, new), *lines[1:]] if new else lines

    def _line(self, item: Scalar) -> tuple[int, int]:
        return self.text.rfind("\n", 0, item.start) + 1, self.text.index("\n", item.end) + 1


_Edit: TypeAlias = tuple[int, int, str]


def read_front_matter(
    text: str, single: Collection[str], lists: Collection[str]
) -> FrontMatter | BadLine | None:
    """Return the front matter of `text`: its single values and its lists; None if there is none.

    Other fields may have any form.
    """
    at = 1 if text.startswith("\ufeff") else 0
    if not (opening := _FENCE.match(text, at)) or not opening[0].endswith("\n"):
        return None
    read = _Reading(text, frozenset(single), frozenset(lists))
    for number, start, end in _lines(text, opening.end(), 2):
        if closing := _END.fullmatch(text, start, end):
            closed = read.closed()
            return closed or FrontMatter(text, tuple(read.fields), start, closing.end())
        if not read.takes(number, start, end):
            return BadLine(number)
    return BadLine(1)


def _lines(text: str, at: int, number: int) -> Iterator[tuple[int, int, int]]:
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        yield number, at, end
        at, number = end, number + 1


class _Reading:
    """The fields found so far. The last one may still grow by the items of a block list."""

    def __init__(self, text: str, single: frozenset[str], lists: frozenset[str]) -> None:
        self.fields: list[Field] = []
        self._text = text
        self._single = single
        self._lists = lists
        self._open: Literal["no", "yes", "whatever"] = "no"
        self._line = 0

    def closed(self) -> BadLine | None:
        """Return an error if a single-value field turned out to be a list."""
        wrong = self.fields and self.fields[-1].key in self._single and self.fields[-1].form == "block"
        return BadLine(self._line) if wrong else None

    def takes(self, number: int, start: int, end: int) -> bool:
        """Read one line; False where it is not understood."""
        if _NOTHING.fullmatch(self._text, start, end):
            return True
        if self._text[start] in " \t" or _ITEM.match(self._text, start, end):
            return self._open == "whatever" or self._item(start, end)
        if self.closed():
            return False
        found = _FIELD.match(self._text, start, end)
        if found is None or found[1] not in self._single | self._lists:
            self._open = "whatever"
            return _OTHER_FIELD.match(self._text, start, end) is not None
        self._line = number
        made = (
            None
            if any(each.key == found[1] for each in self.fields)
            else self._field(found[1], found.end(), end)
        )
        if made is None:
            return False
        self.fields.append(made)
        self._open = "yes" if made.form == "empty" and made.key in self._lists else "no"
        return True

    def _field(self, key: str, at: int, end: int) -> Field | None:
        if _NOTHING.fullmatch(self._text, at, end):
            return Field(key, "empty", (), at, at)
        start = _behind_blanks(self._text, at)
        if self._text[start] == "[":
            items = _flow(self._text, start + 1, end) if key in self._lists else None
            return items and Field(key, "flow", items[0], start, items[1])
        one = _scalar(self._text, start, end)
        if one is None or not _NOTHING.fullmatch(self._text, one.end, end):
            return None
        return Field(key, "scalar", (one,), one.start, one.end)

    def _item(self, start: int, end: int) -> bool:
        found = _ITEM.match(self._text, start, end)
        if found is None or self._open == "no":
            return False
        one = _scalar(self._text, found.end(), end)
        if one is None or not _NOTHING.fullmatch(self._text, one.end, end):
            return False
        last = self.fields[-1]
        self.fields[-1] = replace(last, form="block", items=(*last.items, one))
        return True


def _flow(text: str, at: int, end: int) -> tuple[tuple[Scalar, ...], int] | None:
    """Return the items up to the closing bracket, and the position after it."""
    items: list[Scalar] = []
    while True:
        at = _behind_blanks(text, at)
        if text[at : at + 1] != "]":
            one = _scalar(text, at, end, _PLAIN_IN_LIST)
            if one is None:
                return None
            items.append(one)
            at = _behind_blanks(text, one.end)
        if text[at : at + 1] == "]":
            return (tuple(items), at + 1) if _NOTHING.fullmatch(text, at + 1, end) else None
        if text[at : at + 1] != ",":
            return None
        at += 1


def _behind_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _scalar(text: str, at: int, end: int, plain: re.Pattern[str] = _PLAIN) -> Scalar | None:
    if found := _SINGLE.match(text, at, end):
        return Scalar(found[1].replace("''", "'"), at, found.end())
    if found := _DOUBLE.match(text, at, end):
        value = _unescaped(found[1])
        return None if value is None else Scalar(value, at, found.end())
    found = plain.match(text, at, end)
    return found and Scalar("" if found[0] in _NULLS else found[0], at, found.end())


def _unescaped(raw: str) -> str | None:
    """Return the text in double quotes; None if an escape is unknown or names no character."""
    parts: list[str] = []
    at = 0
    for found in _ESCAPE.finditer(raw):
        digits = found[1] or found[2] or found[3]
        code = int(digits, 16) if digits else 0
        one = _ESCAPES.get(found[4]) if not digits else chr(code) if code < 0x110000 else None
        if one is None or "\ud800" <= one <= "\udfff":
            return None
        parts += raw[at : found.start()], one
        at = found.end()
    return "".join((*parts, raw[at:]))


def _written(value: str) -> str:
    """`value` as YAML has it: without quotes where nothing in it could be read otherwise."""
    plain = _SAFE.fullmatch(value) and value.isascii() and value.lower() not in _WORDS
    return value if plain else json.dumps(value, ensure_ascii=False)


_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


def _spliced(text: str, edits: list[_Edit]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text

"""A function's docstring read for a model: what it does, and what each parameter means."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from inspect import cleandoc
from typing import NamedTuple


class Described(NamedTuple):
    """What a docstring says: `about` the function, and of each parameter by name."""

    about: str
    parameters: Mapping[str, str]


_PARAMETERS = r"args|arguments|params|parameters|keyword args|keyword arguments|other parameters"
_OTHERS = r"returns?|yields?|raises|examples?|notes?|attributes|warns|warnings?|see also|references|todo"
_HEADING = re.compile(rf"(?:(?P<parameters>{_PARAMETERS})|{_OTHERS})\s*:?\s*", re.IGNORECASE)
_UNDERLINE = re.compile(r"[-=]{3,}\s*")
_FIELD = re.compile(r"[:@](?P<kind>[a-z]+)(?:[ \t]+(?P<about>[^:]*))?:(?:[ \t]+(?P<text>.*))?$")
_PARAMETER_FIELDS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})
_GOOGLE = re.compile(r"\*{0,2}(?P<names>\w+)\s*(?:\(.*?\))?\s*:(?:\s+(?P<text>.*))?$")
_NUMPY = re.compile(r"(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")


def read_docstring(docstring: str) -> Described:
    """Read the docstring in the form of Google, NumPy or reST; what is in none of them is about the function."""
    lines = cleandoc(docstring).splitlines()
    about: list[str] = []
    found: dict[str, str] = {}
    place = 0
    while place < len(lines):
        if (section := _heading_at(lines, place)) is not None:
            end = _section_end(lines, section.body)
            if section.parameters:
                found.update(_entries(lines[section.body : end], section.entry))
            place = end
        elif (field := _FIELD.match(lines[place])) is not None:
            end = _field_end(lines, place + 1)
            if field["kind"] in _PARAMETER_FIELDS and field["about"]:
                name = field["about"].split()[-1].lstrip("*")
                found[name] = _joined([field["text"] or "", *lines[place + 1 : end]])
            place = end
        else:
            about.append(lines[place])
            place += 1
    return Described("\n".join(about).strip(), found)


class _Section(NamedTuple):
    parameters: bool
    body: int
    """The line after the heading."""
    entry: re.Pattern[str]


def _heading_at(lines: Sequence[str], place: int) -> _Section | None:
    heading = _HEADING.fullmatch(lines[place])
    if heading is None:
        return None
    below = lines[place + 1] if place + 1 < len(lines) else ""
    parameters = heading["parameters"] is not None
    if _UNDERLINE.fullmatch(below):
        return _Section(parameters, place + 2, _NUMPY)
    if lines[place].rstrip().endswith(":") and (not below.strip() or below[0].isspace()):
        return _Section(parameters, place + 1, _GOOGLE)
    return None


def _section_end(lines: Sequence[str], start: int) -> int:
    """The line of the next heading or field; of Google's form, also of the first text that is not indented."""
    numpy = _UNDERLINE.fullmatch(lines[start - 1]) is not None
    for place in range(start, len(lines)):
        line = lines[place]
        if _heading_at(lines, place) is not None or _FIELD.match(line):
            return place
        if not numpy and line.strip() and not line[0].isspace():
            return place
    return len(lines)


def _field_end(lines: Sequence[str], start: int) -> int:
    place = start
    while place < len(lines) and lines[place][:1].isspace():
        place += 1
    return place


def _entries(body: Sequence[str], entry: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Each parameter with its text: an entry is what is indented least, its text may go on below it."""
    indented = [len(line) - len(line.lstrip()) for line in body if line.strip()]
    least = min(indented, default=0)
    names: list[str] = []
    text: list[str] = []
    for line in body:
        found = entry.match(line[least:]) if line.strip() and not line[least : least + 1].isspace() else None
        if found is None:
            text.append(line)
            continue
        yield from ((name, _joined(text)) for name in names)
        names = [name.strip().lstrip("*") for name in found["names"].split(",")]
        text = [found.groupdict().get("text") or ""]
    yield from ((name, _joined(text)) for name in names)


def _joined(lines: Sequence[str]) -> str:
    return " ".join(stripped for line in lines if (stripped := line.strip()))

"""How a tool call is displayed: an icon, a localized label, and a template that shows its arguments."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import JsonValue

from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject
from daiku.domain.labels import Label

_FIELD = re.compile(r"\{([^}]+)\}")
_OPTIONAL = re.compile(r"\[([^\]]*)\]")
_PATCHED = re.compile(r"^(?:\+\+\+ (?:b/)?|\*\*\* (?:Add|Update|Delete) File: )(\S.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Face:
    """`icon` is a codicon, `label` what is done.

    `subject` says to what: `{path}` is an argument of the call, `{path|glob}` the first that is there, a part in
    brackets is left out where it is empty. `{lines}` are the lines that are meant, `{files}` the files that a patch
    names, `{agents}` those who get the requests.

    In the terminal a `slow` tool is shown before it ends. Of a good `answer` a person is told its first line, its
    size (where it is for the model to read), or nothing (where the nested runs have said it).
    """

    icon: str
    label: Label
    subject: str = ""
    slow: bool = False
    answer: Literal["line", "size", "nothing"] = "line"


def subject_of(face: Face, args: JsonObject) -> str:
    """What a call is about, as `face` says it. The panel's `toolFace.ts` reads the same templates."""

    def optional(part: re.Match[str]) -> str:
        return part[1] if any(_value(field[1], args) for field in _FIELD.finditer(part[1])) else ""

    return _FIELD.sub(lambda field: _value(field[1], args), _OPTIONAL.sub(optional, face.subject))


def _value(names: str, args: JsonObject) -> str:
    values = (_argument(name, args) if name.isidentifier() else name for name in names.split("|"))
    return next((value for value in values if value), "")


def _argument(name: str, args: JsonObject) -> str:
    match name:
        case "lines":
            return _lines(args)
        case "files":
            return ", ".join(dict.fromkeys(_PATCHED.findall(_text(args.get("patch")))))
        case "agents":
            requests = args.get("requests")
            agents = (
                [one.get("agent") for one in requests if isinstance(one, dict)]
                if isinstance(requests, list)
                else []
            )
            return _text(agents)
        case _:
            return _text(args.get(name))


def _text(value: JsonValue) -> str:
    match value:
        case bool():
            return ""
        case str() | int() | float():
            return str(value)
        case list():
            return ", ".join(map(_text, value))
        case _:
            return ""


def _lines(args: JsonObject) -> str:
    start, end = _text(args.get("start_line")) or _text(args.get("line")), _text(args.get("end_line"))
    if end and end != start:
        return f":{start or 1}–{end}"
    return f":{start}" if start else ""

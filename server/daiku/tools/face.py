"""Display of a tool call: an icon, a localized label, and a template for its arguments."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import JsonValue

from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject
from daiku.domain.labels import Label

_FIELD = re.compile(r"\{([^}]+)\}")
_OPTIONAL = re.compile(r"\[([^\]]*)\]")
_PATCHED_FILE = re.compile(r"^(?:\+\+\+ (?:b/)?|\*\*\* (?:Add|Update|Delete) File: )(\S.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Face:
    """The display of a tool: `icon` is a codicon, `label` is the action.

    `subject` is a template: `{path}` is an argument of the call, `{path|glob}` the first of these that has a
    value, and a part in brackets is left out if it is empty. `{lines}` is the line range, `{files}` the files
    of a patch, `{agents}` the agents of the requests.

    The terminal shows a `slow` tool before it ends. Of a successful `answer` it shows the first line, the
    size (if only the model reads it), or nothing (if nested runs have shown it).
    """

    icon: str
    label: Label
    subject: str = ""
    slow: bool = False
    answer: Literal["line", "size", "nothing"] = "line"


def format_subject(face: Face, args: JsonObject) -> str:
    """Format the template of `face` with the call's arguments.

    The panel's `toolFace.ts` parses the same templates.
    """

    def expand_optional(part: re.Match[str]) -> str:
        return part[1] if any(_find_value(field[1], args) for field in _FIELD.finditer(part[1])) else ""

    return _FIELD.sub(lambda field: _find_value(field[1], args), _OPTIONAL.sub(expand_optional, face.subject))


def _find_value(names: str, args: JsonObject) -> str:
    values = (_format_argument(name, args) if name.isidentifier() else name for name in names.split("|"))
    return next((value for value in values if value), "")


def _format_argument(name: str, args: JsonObject) -> str:
    match name:
        case "lines":
            return _format_lines(args)
        case "files":
            return ", ".join(dict.fromkeys(_PATCHED_FILE.findall(_format_value(args.get("patch")))))
        case "agents":
            requests = args.get("requests")
            agents = (
                [one.get("agent") for one in requests if isinstance(one, dict)]
                if isinstance(requests, list)
                else []
            )
            return _format_value(agents)
        case _:
            return _format_value(args.get(name))


def _format_value(value: JsonValue) -> str:
    match value:
        case bool():
            return ""
        case str() | int() | float():
            return str(value)
        case list():
            return ", ".join(map(_format_value, value))
        case _:
            return ""


def _format_lines(args: JsonObject) -> str:
    start, end = (
        _format_value(args.get("start_line")) or _format_value(args.get("line")),
        _format_value(args.get("end_line")),
    )
    if end and end != start:
        return f":{start or 1}–{end}"
    return f":{start}" if start else ""

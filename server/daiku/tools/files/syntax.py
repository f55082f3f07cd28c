"""Check whether an edit breaks a file's syntax before it is offered: Python, JSON, TOML and grammars."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from pathlib import PurePosixPath

from daiku.dataclass import dataclass
from daiku.domain.work.patches import FileChange, Patch
from daiku.edits.rules.matching.refusal import number_lines
from daiku.texts.rules.truncate import truncate_middle
from daiku.tools.files.tags import create_parser

MAX_TEXT = 400_000
"""Characters of the longest text that is checked."""
CONTEXT_LINES = 3
"""Lines shown before and after a syntax error."""
_MAX_EXCERPT = 1500
"""Characters of the shown lines."""
_MAX_REFUSALS = 500
"""Refusals that are remembered."""
_MAX_REPORTED = 3
"""Syntax errors that one refusal reports."""

_TEMPLATE = re.compile(r"\{%.*?%\}|<%.*?%>", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{\{.*\}\}|\$\{.*\}")
_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\\n])*")|,(?=\s*[}\]])')
_MAX_SOURCE = 60
"""Characters of the shown source at a syntax error."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """A syntax error; `line` from 1."""

    line: int
    why: str


class OfferedEdits:
    """Refusals of edits that break a file's syntax. The same edit sent again is accepted.

    Refusals are keyed by session, path, and new text. They are bounded and lost at a restart.
    """

    def __init__(self) -> None:
        self._refused: OrderedDict[str, None] = OrderedDict()

    def find_new_flaws(self, patch: Patch, session: str) -> str:
        """Return the syntax errors that the patch would cause; empty if none, or if this edit was refused before."""
        reports: list[str] = []
        for change in patch.files:
            key = _build_key(change, session)
            if key in self._refused or (flaw := find_new_flaw(change)) is None:
                continue
            self._refused[key] = None
            reports.append(_format_flaw(change, flaw))
        while len(self._refused) > _MAX_REFUSALS:
            self._refused.popitem(last=False)
        if not reports:
            return ""
        omitted_note = (
            f"… and {len(reports) - _MAX_REPORTED} more files" if len(reports) > _MAX_REPORTED else ""
        )
        end = "Mend the edit. If it is meant so, send exactly the same edit again: it will be made."
        return "\n".join(
            part for part in ("Nothing was changed.", *reports[:_MAX_REPORTED], omitted_note, end) if part
        )


class RefusedCalls:
    """Calls that were refused once because one of their lines is ambiguous. Bounded; lost at a restart."""

    def __init__(self) -> None:
        self._refused: OrderedDict[str, None] = OrderedDict()

    def was_refused(self, call: str) -> bool:
        """Return True if the same call was refused before."""
        return _hash_text(call) in self._refused

    def note(self, call: str) -> None:
        """Record a refused call."""
        self._refused[_hash_text(call)] = None
        if len(self._refused) > _MAX_REFUSALS:
            self._refused.popitem(last=False)


def _hash_text(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _build_key(change: FileChange, session: str) -> str:
    parts = (session, change.to or change.path, change.new or "")
    return _hash_text("\0".join(parts))


def _format_flaw(change: FileChange, flaw: Flaw) -> str:
    verb = "does not parse" if change.old is None else "would no longer parse"
    lines = (change.new or "").count("\n") + 1
    excerpt = number_lines(
        change.new or "", max(1, flaw.line - CONTEXT_LINES), min(lines, flaw.line + CONTEXT_LINES)
    )
    return f"{change.to or change.path} {verb}: line {flaw.line}: {flaw.why}\n{truncate_middle(excerpt, _MAX_EXCERPT)}"


def find_new_flaw(change: FileChange) -> Flaw | None:
    """Return the syntax error that a change introduces; None if there is none or it cannot be checked."""
    new, path = change.new, change.to or change.path
    if new is None or new == change.old or not new.strip():
        return None
    flaw = find_flaw(path, new)
    if flaw is None or _is_template(path, new, flaw):
        return None
    if change.old is not None and find_flaw(change.path, change.old) is not None:
        return None
    return flaw


def find_flaw(path: str, text: str) -> Flaw | None:
    """Return the first syntax error of a text; None if it parses or no parser knows its suffix."""
    suffix = PurePosixPath(path).suffix.lower()
    check = _CHECKS.get(suffix, _check_by_grammar)
    if len(text) > MAX_TEXT:
        return None
    try:
        return check(text, suffix)
    except (RecursionError, MemoryError, ValueError):  # nested too deeply, or invalid characters
        return None


def _is_template(path: str, text: str, flaw: Flaw) -> bool:
    """Return True if the text contains template syntax, which parses only after rendering."""
    if "{{" in path or _TEMPLATE.search(text):
        return True
    lines = text.split("\n")
    return flaw.line <= len(lines) and _PLACEHOLDER.search(lines[flaw.line - 1]) is not None


def _check_python(text: str, suffix: str) -> Flaw | None:
    try:
        ast.parse(text)
    except SyntaxError as error:
        # The project may use a later Python, whose syntax the grammar knows; indentation rules never changed.
        if (
            isinstance(error, IndentationError)
            or _check_by_grammar(text, suffix) is not None
            or not _has_grammar(suffix)
        ):
            return Flaw(error.lineno or 1, error.msg)
    return None


def _check_json(text: str, _suffix: str) -> Flaw | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        # Many tools allow comments and trailing commas in JSON.
        plain = _TRAILING_COMMA.sub(_keep_string, _COMMENT.sub(_keep_string, text))
        try:
            json.loads(plain)
        except json.JSONDecodeError:
            return Flaw(error.lineno, error.msg)
    return None


def _keep_string(match: re.Match[str]) -> str:
    return match[1] or ""


def _check_toml(text: str, _suffix: str) -> Flaw | None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+)", str(error))
        line = int(place[1]) if place else text.count("\n") + 1
        return Flaw(line, str(error).partition(" (at ")[0])
    return None


def _has_grammar(suffix: str) -> bool:
    return create_parser(suffix) is not None


def _check_by_grammar(text: str, suffix: str) -> Flaw | None:
    parser = create_parser(suffix)
    if parser is None:
        return None
    data = text.encode("utf-8", "replace")
    root = parser.parse(data).root_node
    if not root.has_error:
        return None
    node = root
    while True:  # find the innermost node with the error
        error_child = next((child for child in node.children if child.has_error or child.is_missing), None)
        if error_child is None or node.is_error:
            break
        node = error_child
    line = node.start_point[0] + 1
    if node.is_missing:
        return Flaw(line, f"{node.type!r} is missing")
    start = data[node.start_byte : node.end_byte].decode("utf-8", "replace").strip().split("\n")[0]
    return Flaw(
        line, f"this is not expected here: {start[:_MAX_SOURCE]}" if start else "something is missing here"
    )


_CHECKS: dict[str, Callable[[str, str], Flaw | None]] = {
    ".py": _check_python,
    ".pyi": _check_python,
    ".json": _check_json,
    ".jsonc": _check_json,
    ".ipynb": _check_json,
    ".toml": _check_toml,
}

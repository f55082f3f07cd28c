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
from daiku.tools.files.tags import parser_for

LARGEST = 400_000
"""Characters of a text that is looked at."""
AROUND = 3
"""Lines shown on either side of a flaw."""
_SHOWN = 1500
_REMEMBERED = 500
_TOLD = 3

_TEMPLATE = re.compile(r"\{%.*?%\}|<%.*?%>", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{\{.*\}\}|\$\{.*\}")
_RELAXED = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = re.compile(r'("(?:\\.|[^"\\\n])*")|,(?=\s*[}\]])')
_CUT = 60


@dataclass(frozen=True, slots=True)
class Flaw:
    """Where a text stops being of its language; `line` from 1."""

    line: int
    why: str


class OfferedEdits:
    """Which edits may be offered: one that breaks a file is refused once; sent again as it was, it is meant.

    What was refused is remembered here, bounded, by session, path and new text; after a restart it is
    refused once more.
    """

    def __init__(self) -> None:
        self._refused: OrderedDict[str, None] = OrderedDict()

    def objection(self, patch: Patch, session: str) -> str:
        """Return the syntax errors that the patch would cause; empty if none, or if this edit was refused before."""
        told: list[str] = []
        for change in patch.files:
            key = _key(change, session)
            if key in self._refused or (flaw := new_flaw(change)) is None:
                continue
            self._refused[key] = None
            told.append(_told(change, flaw))
        while len(self._refused) > _REMEMBERED:
            self._refused.popitem(last=False)
        if not told:
            return ""
        more = f"… and {len(told) - _TOLD} more files" if len(told) > _TOLD else ""
        end = "Mend the edit. If it is meant so, send exactly the same edit again: it will be made."
        return "\n".join(part for part in ("Nothing was changed.", *told[:_TOLD], more, end) if part)


class RefusedCalls:
    """Calls that were refused once because a line of theirs may be meant otherwise; bounded, gone after a restart."""

    def __init__(self) -> None:
        self._refused: OrderedDict[str, None] = OrderedDict()

    def before(self, call: str) -> bool:
        """Whether this very call was refused before."""
        return _hashed(call) in self._refused

    def note(self, call: str) -> None:
        """The call was refused."""
        self._refused[_hashed(call)] = None
        if len(self._refused) > _REMEMBERED:
            self._refused.popitem(last=False)


def _hashed(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _key(change: FileChange, session: str) -> str:
    parts = (session, change.to or change.path, change.new or "")
    return _hashed("\0".join(parts))


def _told(change: FileChange, flaw: Flaw) -> str:
    verb = "does not parse" if change.old is None else "would no longer parse"
    lines = (change.new or "").count("\n") + 1
    shown = number_lines(change.new or "", max(1, flaw.line - AROUND), min(lines, flaw.line + AROUND))
    return (
        f"{change.to or change.path} {verb}: line {flaw.line}: {flaw.why}\n{truncate_middle(shown, _SHOWN)}"
    )


def new_flaw(change: FileChange) -> Flaw | None:
    """Return the syntax error that a change introduces; None if there is none or it cannot be checked."""
    new, path = change.new, change.to or change.path
    if new is None or new == change.old or not new.strip():
        return None
    flaw = flaw_of(path, new)
    if flaw is None or _templated(path, new, flaw):
        return None
    if change.old is not None and flaw_of(change.path, change.old) is not None:
        return None
    return flaw


def flaw_of(path: str, text: str) -> Flaw | None:
    """The first flaw of a text by its file's name; None where it parses or nobody can tell."""
    suffix = PurePosixPath(path).suffix.lower()
    look = _LOOKS.get(suffix, _by_grammar)
    if len(text) > LARGEST:
        return None
    try:
        return look(text, suffix)
    except (RecursionError, MemoryError, ValueError):  # too deep, or no text of any language
        return None


def _templated(path: str, text: str, flaw: Flaw) -> bool:
    """Sources with a template language in them are sources only once they were filled in."""
    if "{{" in path or _TEMPLATE.search(text):
        return True
    lines = text.split("\n")
    return flaw.line <= len(lines) and _PLACEHOLDER.search(lines[flaw.line - 1]) is not None


def _python(text: str, suffix: str) -> Flaw | None:
    try:
        ast.parse(text)
    except SyntaxError as error:
        # A project may be of a later Python than ours, whose forms the grammar knows; indentation never changed.
        if isinstance(error, IndentationError) or _by_grammar(text, suffix) is not None or not _known(suffix):
            return Flaw(error.lineno or 1, error.msg)
    return None


def _json(text: str, _suffix: str) -> Flaw | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        # Many tools allow comments and a comma too many in theirs.
        plain = _TRAILING.sub(_string_only, _RELAXED.sub(_string_only, text))
        try:
            json.loads(plain)
        except json.JSONDecodeError:
            return Flaw(error.lineno, error.msg)
    return None


def _string_only(match: re.Match[str]) -> str:
    return match[1] or ""


def _toml(text: str, _suffix: str) -> Flaw | None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+)", str(error))
        line = int(place[1]) if place else text.count("\n") + 1
        return Flaw(line, str(error).partition(" (at ")[0])
    return None


def _known(suffix: str) -> bool:
    return parser_for(suffix) is not None


def _by_grammar(text: str, suffix: str) -> Flaw | None:
    parser = parser_for(suffix)
    if parser is None:
        return None
    data = text.encode("utf-8", "replace")
    root = parser.parse(data).root_node
    if not root.has_error:
        return None
    node = root
    while True:  # the innermost first one that holds the error
        wrong = next((child for child in node.children if child.has_error or child.is_missing), None)
        if wrong is None or node.is_error:
            break
        node = wrong
    line = node.start_point[0] + 1
    if node.is_missing:
        return Flaw(line, f"{node.type!r} is missing")
    start = data[node.start_byte : node.end_byte].decode("utf-8", "replace").strip().split("\n")[0]
    return Flaw(line, f"this is not expected here: {start[:_CUT]}" if start else "something is missing here")


_LOOKS: dict[str, Callable[[str, str], Flaw | None]] = {
    ".py": _python,
    ".pyi": _python,
    ".json": _json,
    ".jsonc": _json,
    ".ipynb": _json,
    ".toml": _toml,
}

"""Find definitions and references in source files, with tree-sitter if there is a grammar."""

from __future__ import annotations

import importlib
import re
import threading
import time
from collections import OrderedDict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from daiku.dataclass import dataclass
from daiku.tools.rules.code.imports import read_imports
from daiku.tools.rules.code.repomap import SourceFile, Tag

if TYPE_CHECKING:
    from tree_sitter import Parser, Query

_MAX_BYTES = 400_000
"""Bytes of the largest source file that is read."""
_MAX_FILES = 20_000
"""Source files in the index."""

_GRAMMARS: dict[str, tuple[str, str]] = {
    ".py": ("tree_sitter_python", "language"),
    ".pyi": ("tree_sitter_python", "language"),
    ".js": ("tree_sitter_javascript", "language"),
    ".jsx": ("tree_sitter_javascript", "language"),
    ".mjs": ("tree_sitter_javascript", "language"),
    ".cjs": ("tree_sitter_javascript", "language"),
    ".ts": ("tree_sitter_typescript", "language_typescript"),
    ".mts": ("tree_sitter_typescript", "language_typescript"),
    ".cts": ("tree_sitter_typescript", "language_typescript"),
    ".tsx": ("tree_sitter_typescript", "language_tsx"),
    ".go": ("tree_sitter_go", "language"),
    ".rs": ("tree_sitter_rust", "language"),
    ".java": ("tree_sitter_java", "language"),
}
_PLAIN_SUFFIXES = frozenset(
    {
        ".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".cs", ".rb", ".php", ".swift", ".kt", ".kts", ".scala",
        ".lua", ".pl", ".pm", ".r", ".jl", ".dart", ".ex", ".exs", ".erl", ".hs", ".ml", ".fs", ".vb", ".groovy",
        ".zig", ".nim", ".sh", ".bash", ".zsh", ".fish", ".sql", ".proto", ".vue", ".svelte",
    }
)  # fmt: skip
"""Suffixes of languages without a grammar: definitions are matched line by line."""

_SCRIPT_DEFINITIONS = """
(function_declaration name: (identifier) @name) @definition.function
(generator_function_declaration name: (identifier) @name) @definition.function
(class_declaration name: (_) @name) @definition.class
(method_definition name: (property_identifier) @name) @definition.method
(lexical_declaration (variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @definition.function)
(call_expression function: (identifier) @name) @reference.call
(call_expression function: (member_expression property: (property_identifier) @name)) @reference.call
(new_expression constructor: (_) @name) @reference.class
"""
_TYPE_DEFINITIONS = """
(abstract_class_declaration name: (type_identifier) @name) @definition.class
(interface_declaration name: (type_identifier) @name) @definition.interface
(type_alias_declaration name: (type_identifier) @name) @definition.type
(enum_declaration name: (identifier) @name) @definition.enum
(type_annotation (type_identifier) @name) @reference.type
"""
_QUERIES = {
    "tree_sitter_javascript": _SCRIPT_DEFINITIONS,
    "tree_sitter_typescript": _SCRIPT_DEFINITIONS + _TYPE_DEFINITIONS,
}
"""Queries for grammars whose own query lacks definitions (TypeScript's has signatures only)."""

_PLAIN_DEFINITION = re.compile(
    r"^\s*(?:(?:export|public|private|protected|internal|static|abstract|final|async|pub|open|override|inline|local)\s+)*"
    r"(class|struct|interface|enum|trait|protocol|module|namespace|object|record|def|fn|func|fun|function|sub|proc|type|message|service)"
    r"\s+([A-Za-z_][\w]*)"
)


@dataclass(frozen=True, slots=True)
class _Grammar:
    parser: Parser
    query: Query


@cache
def _load_grammar(module: str, function: str) -> _Grammar | None:
    """Load a grammar when its language first occurs, because grammars are megabytes."""
    try:
        # when used: a server that never maps a repository does not need it
        from tree_sitter import Language, Parser, Query

        source: Any = importlib.import_module(module)
        language = Language(cast(object, getattr(source, function)()))
        return _Grammar(Parser(language), Query(language, _QUERIES.get(module) or source.TAGS_QUERY))
    except (ImportError, AttributeError, ValueError):  # not installed, or of another version
        return None


def create_parser(suffix: str) -> Parser | None:
    """Return a new parser for a suffix (lower case, with its dot); None without a grammar."""
    grammar = _load_grammar(*_GRAMMARS[suffix]) if suffix in _GRAMMARS else None
    return None if grammar is None else type(grammar.parser)(grammar.parser.language)


class SourceIndex:
    """Cache of the definitions and imports of source files, invalidated by time and size. Thread-safe."""

    def __init__(self) -> None:
        self._files: OrderedDict[Path, tuple[tuple[int, int], SourceFile]] = OrderedDict()
        self._lock = threading.Lock()

    def read_file(self, path: Path, deadline: float) -> SourceFile | None:
        """Return what `path` defines and imports.

        Returns None for a file that is not source, too large, unreadable, or not cached after `deadline`
        (time.monotonic()).
        """
        suffix = path.suffix.lower()
        if suffix not in _GRAMMARS and suffix not in _PLAIN_SUFFIXES:
            return None
        try:
            status = path.lstat()
        except OSError:
            return None
        stamp = (status.st_mtime_ns, status.st_size)
        with self._lock:
            cached = self._files.get(path)
            if cached is not None and cached[0] == stamp:
                return cached[1]
            if status.st_size > _MAX_BYTES or time.monotonic() > deadline:
                return None
            try:
                file = read_source(path.read_bytes(), suffix)
            except OSError:
                return None
            self._files[path] = (stamp, file)
            if len(self._files) > _MAX_FILES:
                self._files.popitem(last=False)
            return file


def read_source(data: bytes, suffix: str) -> SourceFile:
    """Parse the tags and imports of a source text; `suffix` (lower case, with its dot) is its language."""
    statements = read_imports(data.decode("utf-8", "replace"), suffix)
    return SourceFile(read_tags(data, suffix), statements, data.count(b"\n"))


def read_tags(data: bytes, suffix: str) -> tuple[Tag, ...]:
    """Parse the tags of a source text; `suffix` (lower case, with its dot) is its language."""
    if b"\0" in data[:8000]:
        return ()
    grammar = _load_grammar(*_GRAMMARS[suffix]) if suffix in _GRAMMARS else None
    return _match_tags(data) if grammar is None else _parse_tags(data, grammar)


def _parse_tags(data: bytes, grammar: _Grammar) -> tuple[Tag, ...]:
    # when used: as the grammar
    from tree_sitter import QueryCursor

    lines = data.split(b"\n")
    tags: dict[tuple[int, str, bool], Tag] = {}
    for _, captures in QueryCursor(grammar.query).matches(grammar.parser.parse(data).root_node):
        kind = next((name for name in captures if name.startswith(("definition.", "reference."))), None)
        names = captures.get("name")
        if kind is None or not names:
            continue
        name = data[names[0].start_byte : names[0].end_byte].decode("utf-8", "replace")
        row = names[0].start_point[0]
        is_definition = kind.startswith("definition.")
        signature = lines[row].decode("utf-8", "replace").strip()[:200] if is_definition else ""
        indent = len(lines[row]) - len(lines[row].lstrip()) if is_definition else 0
        tag = Tag(name, kind.partition(".")[2], row + 1, signature, is_definition, indent)
        tags.setdefault((row, name, is_definition), tag)
    return tuple(sorted(tags.values(), key=lambda tag: tag.line))


def _match_tags(data: bytes) -> tuple[Tag, ...]:
    text = data.decode("utf-8", "replace")
    tags: list[Tag] = []
    for number, line in enumerate(text.split("\n"), 1):
        if (match := _PLAIN_DEFINITION.match(line)) is not None:
            indent = len(line) - len(line.lstrip())
            tags.append(
                Tag(match[2], match[1], number, line.strip()[:200], is_definition=True, indent=indent)
            )
    defined_names = {tag.name for tag in tags}
    uses = {word for word in re.findall(r"[A-Za-z_]\w{2,}", text) if word not in defined_names}
    tags += (Tag(word, "use", 0, "", is_definition=False) for word in sorted(uses)[:2000])
    return tuple(tags)

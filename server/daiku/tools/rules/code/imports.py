"""Parse import, require, use, mod, and include statements line by line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple


class Import(NamedTuple):
    """An imported module as written, and the names imported from it (empty: all of it).

    `reexports`: the file re-exports those names.
    """

    module: str
    names: tuple[str, ...] = ()
    reexports: bool = False


class Statements(NamedTuple):
    """The imports of a file, and its package (Java)."""

    imports: tuple[Import, ...] = ()
    package: str = ""


class _LazyPattern:
    """A pattern for complete texts, compiled on first use."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return re.finditer(self._pattern, text, re.MULTILINE)


_WORD = re.compile(r"[A-Za-z_$][\w$]*")

_PYTHON_FROM = _LazyPattern(r"^[ \t]*from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]*(\([^)]*\)|(?:[^\n#;\\]|\\\n)+)")
_PYTHON_IMPORT = _LazyPattern(r"^[ \t]*import[ \t]+([\w.]+(?:[ \t]+as[ \t]+\w+)?(?:[ \t]*,[ \t]*[\w. \t]+)*)")
_SCRIPT_FROM = _LazyPattern(
    r"(?:(import)\s+(?:type\s+)?((?:[\w$]+\s*,?\s*)?(?:\{[^{}]*\}|\*\s*as\s+[\w$]+)?)"
    r"|export\s+(?:type\s+)?(\{[^{}]*\}|\*(?:\s*as\s+[\w$]+)?))\s*from\s*['\"]([^'\"\n]+)['\"]"
)
# Without an anchor, because a search for two first letters is several times faster.
_SCRIPT_BARE = _LazyPattern(r"(?:import|require)[ \t]*\(?\s*['\"]([^'\"\n]+)['\"]")
_GO = _LazyPattern(r"^import\s+(?:\(([^)]*)\)|(?:[\w.]+[ \t]+)?\"([^\"\n]+)\")")
_GO_PATH = _LazyPattern(r"\"([^\"\n]+)\"")
_JAVA_PACKAGE = _LazyPattern(r"^[ \t]*package\s+([\w.]+)")
_JAVA = _LazyPattern(r"^[ \t]*import\s+(static\s+)?(\w+(?:\.\w+)*)(\.\*)?")
_RUST_USE = _LazyPattern(r"^[ \t]*(pub(?:\([^)]*\))?[ \t]+)?use[ \t]+([^;]+);")
_RUST_MOD = _LazyPattern(r"^[ \t]*(?:pub(?:\([^)]*\))?[ \t]+)?mod[ \t]+(\w+)[ \t]*;")
_INCLUDE = _LazyPattern(r"^[ \t]*#[ \t]*include[ \t]*\"([^\"\n]+)\"")


def _parse_names(name_list: str) -> tuple[str, ...]:
    """Return the original names in a list such as `{ a, b as c }`."""
    parts = name_list.strip("(){} \t\n").split(",")
    matches = (_WORD.search(part.strip().removeprefix("type ")) for part in parts)
    return tuple(word[0] for word in matches if word is not None)


def _parse_python(text: str) -> Iterator[Import]:
    for match in _PYTHON_FROM.finditer(text):
        # An imported name can be imported from this file in turn, as packages do on purpose.
        yield Import(match[1], _parse_names(re.sub(r"#[^\n]*", "", match[2])), reexports=True)
    for match in _PYTHON_IMPORT.finditer(text):
        for part in match[1].split(","):
            yield Import(part.split()[0] if part.split() else "")


def _parse_script(text: str) -> Iterator[Import]:
    for match in _SCRIPT_FROM.finditer(text):
        clause = match[2] or match[3] or ""
        names = () if "*" in clause else _parse_names(clause.replace("{", ",").replace("}", ","))
        yield Import(match[4], names, reexports=not match[1])
    for match in _SCRIPT_BARE.finditer(text):
        yield Import(match[1])


def _parse_go(text: str) -> Iterator[Import]:
    for match in _GO.finditer(text):
        if match[2]:
            yield Import(match[2])
        else:
            yield from (Import(path[1]) for path in _GO_PATH.finditer(match[1] or ""))


def _parse_java(text: str) -> Iterator[Import]:
    for match in _JAVA.finditer(text):
        owner, _, name = match[2].rpartition(".")
        if match[3]:
            yield Import(f"{match[2]}.*")
        elif match[1]:
            yield Import(owner, (name,))
        else:
            yield Import(match[2], (name,))


def _parse_rust(text: str) -> Iterator[Import]:
    yield from (Import(f"mod {match[1]}") for match in _RUST_MOD.finditer(text))
    for match in _RUST_USE.finditer(text):
        for path in _expand_tree("".join(match[2].split(" as ")[0:1]) if "{" not in match[2] else match[2]):
            owner, _, name = path.rpartition("::")
            names = () if name in ("*", "self") or not owner else (name,)
            yield Import(owner or name, names, reexports=bool(match[1]))


_MAX_PATHS = 200
"""Paths of one use statement."""


def _expand_tree(tree: str) -> Iterator[str]:
    """Yield the single paths of a tree such as `a::{b, c::{d, e}}`, at most _MAX_PATHS."""
    remaining = _MAX_PATHS
    pending = ["".join(re.sub(r"\s+as\s+\w+", "", tree).split())]
    while pending and remaining:
        path = pending.pop()
        opening = path.find("{")
        if opening < 0:
            remaining -= 1
            yield path
            continue
        closing = _find_closing(path, opening)
        pending += (path[:opening] + part for part in _split_parts(path[opening + 1 : closing]) if part)


def _find_closing(path: str, opening: int) -> int:
    depth = 0
    for index in range(opening, len(path)):
        depth += (path[index] == "{") - (path[index] == "}")
        if depth == 0:
            return index
    return len(path)


def _split_parts(path_list: str) -> list[str]:
    """Split at the commas outside braces."""
    parts, depth = [""], 0
    for char in path_list:
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _parse_includes(text: str) -> Iterator[Import]:
    yield from (Import(match[1], reexports=True) for match in _INCLUDE.finditer(text))


_SCRIPT_SUFFIXES = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".vue", ".svelte")
_PARSERS: Mapping[str, Callable[[str], Iterator[Import]]] = {
    ".py": _parse_python,
    ".pyi": _parse_python,
    **dict.fromkeys(_SCRIPT_SUFFIXES, _parse_script),
    ".go": _parse_go,
    ".java": _parse_java,
    ".rs": _parse_rust,
    **dict.fromkeys((".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh"), _parse_includes),
}


def has_import_parser(suffix: str) -> bool:
    """Return True if imports of files with this suffix (lower case, with its dot) are parsed."""
    return suffix in _PARSERS


def read_imports(text: str, suffix: str) -> Statements:
    """Parse the imports of `text`, of a file with this suffix; empty for an unsupported language."""
    parser = _PARSERS.get(suffix)
    if parser is None:
        return Statements()
    package = next(_JAVA_PACKAGE.finditer(text), None) if suffix == ".java" else None
    return Statements(tuple(dict.fromkeys(parser(text))), package[1] if package else "")

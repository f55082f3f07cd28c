"""Which modules a source text says that it uses: its import, require, use, mod and include statements, read by line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple


class Import(NamedTuple):
    """One module that is used: as it is written there, and the names that are taken from it (none: all of it).
    `passes_on`: who uses this file reaches those names through it."""

    module: str
    names: tuple[str, ...] = ()
    passes_on: bool = False


class Statements(NamedTuple):
    """What a file says of modules: the package that it is in (Java), and those that it uses."""

    imports: tuple[Import, ...] = ()
    package: str = ""


class _Lines:
    """A pattern for whole texts, compiled when it is first used."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return re.finditer(self._pattern, text, re.MULTILINE)


_WORD = re.compile(r"[A-Za-z_$][\w$]*")

_PYTHON_FROM = _Lines(r"^[ \t]*from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]*(\([^)]*\)|(?:[^\n#;\\]|\\\n)+)")
_PYTHON_IMPORT = _Lines(r"^[ \t]*import[ \t]+([\w.]+(?:[ \t]+as[ \t]+\w+)?(?:[ \t]*,[ \t]*[\w. \t]+)*)")
_SCRIPT_FROM = _Lines(
    r"(?:(import)\s+(?:type\s+)?((?:[\w$]+\s*,?\s*)?(?:\{[^{}]*\}|\*\s*as\s+[\w$]+)?)"
    r"|export\s+(?:type\s+)?(\{[^{}]*\}|\*(?:\s*as\s+[\w$]+)?))\s*from\s*['\"]([^'\"\n]+)['\"]"
)
# Neither begins with an anchor: a search for two first letters is several times faster.
_SCRIPT_BARE = _Lines(r"(?:import|require)[ \t]*\(?\s*['\"]([^'\"\n]+)['\"]")
_GO = _Lines(r"^import\s+(?:\(([^)]*)\)|(?:[\w.]+[ \t]+)?\"([^\"\n]+)\")")
_GO_PATH = _Lines(r"\"([^\"\n]+)\"")
_JAVA_PACKAGE = _Lines(r"^[ \t]*package\s+([\w.]+)")
_JAVA = _Lines(r"^[ \t]*import\s+(static\s+)?(\w+(?:\.\w+)*)(\.\*)?")
_RUST_USE = _Lines(r"^[ \t]*(pub(?:\([^)]*\))?[ \t]+)?use[ \t]+([^;]+);")
_RUST_MOD = _Lines(r"^[ \t]*(?:pub(?:\([^)]*\))?[ \t]+)?mod[ \t]+(\w+)[ \t]*;")
_INCLUDE = _Lines(r"^[ \t]*#[ \t]*include[ \t]*\"([^\"\n]+)\"")


def _words(listed: str) -> tuple[str, ...]:
    """The names in a list such as `{ a, b as c }`, without those that they are given here."""
    parts = listed.strip("(){} \t\n").split(",")
    found = (_WORD.search(part.strip().removeprefix("type ")) for part in parts)
    return tuple(word[0] for word in found if word is not None)


def _python(text: str) -> Iterator[Import]:
    for found in _PYTHON_FROM.finditer(text):
        # A name that is imported can be imported from here: packages do so on purpose.
        yield Import(found[1], _words(re.sub(r"#[^\n]*", "", found[2])), passes_on=True)
    for found in _PYTHON_IMPORT.finditer(text):
        for part in found[1].split(","):
            yield Import(part.split()[0] if part.split() else "")


def _script(text: str) -> Iterator[Import]:
    for found in _SCRIPT_FROM.finditer(text):
        clause = found[2] or found[3] or ""
        names = () if "*" in clause else _words(clause.replace("{", ",").replace("}", ","))
        yield Import(found[4], names, passes_on=not found[1])
    for found in _SCRIPT_BARE.finditer(text):
        yield Import(found[1])


def _go(text: str) -> Iterator[Import]:
    for found in _GO.finditer(text):
        if found[2]:
            yield Import(found[2])
        else:
            yield from (Import(path[1]) for path in _GO_PATH.finditer(found[1] or ""))


def _java(text: str) -> Iterator[Import]:
    for found in _JAVA.finditer(text):
        owner, _, name = found[2].rpartition(".")
        if found[3]:
            yield Import(f"{found[2]}.*")
        elif found[1]:
            yield Import(owner, (name,))
        else:
            yield Import(found[2], (name,))


def _rust(text: str) -> Iterator[Import]:
    yield from (Import(f"mod {found[1]}") for found in _RUST_MOD.finditer(text))
    for found in _RUST_USE.finditer(text):
        for path in _branches("".join(found[2].split(" as ")[0:1]) if "{" not in found[2] else found[2]):
            owner, _, name = path.rpartition("::")
            names = () if name in ("*", "self") or not owner else (name,)
            yield Import(owner or name, names, passes_on=bool(found[1]))


_MOST_BRANCHES = 200


def _branches(tree: str) -> Iterator[str]:
    """The single paths of a tree such as `a::{b, c::{d, e}}`, the first of very many."""
    most = _MOST_BRANCHES
    pending = ["".join(re.sub(r"\s+as\s+\w+", "", tree).split())]
    while pending and most:
        path = pending.pop()
        opening = path.find("{")
        if opening < 0:
            most -= 1
            yield path
            continue
        closing = _closing(path, opening)
        pending += (path[:opening] + part for part in _parts(path[opening + 1 : closing]) if part)


def _closing(path: str, opening: int) -> int:
    depth = 0
    for index in range(opening, len(path)):
        depth += (path[index] == "{") - (path[index] == "}")
        if depth == 0:
            return index
    return len(path)


def _parts(listed: str) -> list[str]:
    """The parts between the commas that stand in no brackets."""
    parts, depth = [""], 0
    for char in listed:
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _included(text: str) -> Iterator[Import]:
    yield from (Import(found[1], passes_on=True) for found in _INCLUDE.finditer(text))


_SCRIPTS = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".vue", ".svelte")
_READERS: Mapping[str, Callable[[str], Iterator[Import]]] = {
    ".py": _python,
    ".pyi": _python,
    **dict.fromkeys(_SCRIPTS, _script),
    ".go": _go,
    ".java": _java,
    ".rs": _rust,
    **dict.fromkeys((".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh"), _included),
}


def tells_imports(suffix: str) -> bool:
    """Whether the imports of files with this suffix (lower case, with its dot) are understood."""
    return suffix in _READERS


def read_imports(text: str, suffix: str) -> Statements:
    """What `text`, of a file with this suffix, uses; nothing for a language that is not understood."""
    reader = _READERS.get(suffix)
    if reader is None:
        return Statements()
    package = next(_JAVA_PACKAGE.finditer(text), None) if suffix == ".java" else None
    return Statements(tuple(dict.fromkeys(reader(text))), package[1] if package else "")

"""Mutants: for each line of the requirements a way to break it, and the test that must notice; `npm run mutants`."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.conftest import ROOT

FOLDER = Path(__file__).parent
LINE = re.compile(r"[BRC]\d+\.\d+|X\.\d+|S2[CKPR]\.\d+|A23\.(?:\d+|D)|A24\.\d+")


@dataclass(frozen=True, slots=True)
class Mutant:
    """The line `id`, which is broken where `old` in `file` becomes `new`; `test` (one, or a file of them) then fails.
    `source` says where it
    is written down."""

    id: str
    file: str
    old: str
    new: str
    test: str
    source: str


def read_mutants(folder: Path = FOLDER) -> tuple[Mutant, ...]:
    """Every mutant of the folder's TOML files. Raises ValueError that names an entry that is not well formed."""
    found: list[Mutant] = []
    for path in sorted(folder.glob("*.toml")):
        try:
            entries = tomllib.loads(path.read_text("utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{path.name}: {error}") from None
        for number, entry in enumerate(entries.get("mutant", ()), 1):
            source = f"{path.name}, mutant {number}"
            if set(entry) != {"id", "file", "old", "new", "test"} or not all(
                isinstance(value, str) for value in entry.values()
            ):
                raise ValueError(f"{source}: has {sorted(entry)}, wants the texts id, file, old, new, test")
            found.append(Mutant(**entry, source=source))
    return tuple(found)


def problem_of(mutant: Mutant, root: Path = ROOT) -> str:
    """Why the entry cannot be used; empty where it can."""
    file = root / mutant.file
    test_file, _, test_name = mutant.test.partition("::")
    if not LINE.fullmatch(mutant.id):
        return f"id {mutant.id!r} is no line of the requirements"
    if not file.is_file() or mutant.file.startswith("tests/"):
        return f"there is no file {mutant.file} of the product"
    if (times := file.read_text("utf-8").count(mutant.old)) != 1:
        return f"its old text stands {times} times in {mutant.file}"
    if mutant.old == mutant.new:
        return "its new text is the old one"
    if not (root / test_file).is_file():
        return f"there is no file {test_file}"
    known = docstrings(root / test_file)
    docstring = known.get(test_name.partition("[")[0]) if test_name else "\n".join(known.values())
    if docstring is None:
        return f"there is no test {mutant.test}"
    if mutant.id not in LINE.findall(docstring):
        return f"{mutant.id} is not in the docstring of {test_name or 'any test there'}"
    return ""


@cache
def docstrings(path: Path) -> dict[str, str]:
    """The docstring of each test of the file, by `name` or `Class::name`; empty where it has none."""

    def of(body: Iterable[ast.stmt], before: str) -> Iterable[tuple[str, str]]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from of(node.body, f"{before}{node.name}::")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{before}{node.name}", ast.get_docstring(node) or ""

    return dict(of(ast.parse(path.read_text("utf-8")).body, ""))


def lines_with_tests(root: Path = ROOT) -> frozenset[str]:
    """The lines that stand in the docstring of a test."""
    return frozenset(
        line
        for path in (root / "tests").rglob("test_*.py")
        for name, docstring in docstrings(path).items()
        if name.rpartition("::")[2].startswith("test")
        for line in LINE.findall(docstring)
    )

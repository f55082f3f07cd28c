"""The map of the server in server/README.md: its rooms, each with the first line of its docstring."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

START, END = "<!-- rooms -->", "<!-- /rooms -->"


def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"), str(path))) or ""


def _first_line(path: Path) -> str:
    return _docstring(path).partition("\n")[0]


def _rooms(package: Path) -> Iterator[Path]:
    yield from sorted({path.parent for path in package.rglob("*.py")}, key=lambda p: (p != package, p.parts))


def _map(package: Path) -> str:
    """Markdown: one list item a room, those inside another indented below it."""
    lines: list[str] = []
    for room in _rooms(package):
        parts = room.relative_to(package).parts
        shown = f"`{room.relative_to(package.parent).as_posix() if len(parts) < 2 else parts[-1]}/`"
        lines.append(f"{'  ' * (len(parts) > 1)}- {shown} {_first_line(room / '__init__.py')}")
    return "\n".join(lines)


def with_rooms(readme: str, package: Path) -> str:
    """`readme` with the section between the two markers made anew; unchanged where there are no markers."""
    head, start, rest = readme.partition(START)
    _, end, tail = rest.partition(END)
    return f"{head}{START}\n{_map(package)}\n{END}{tail}" if start and end else readme

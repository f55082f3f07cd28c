"""The map of the server in server/README.md: its rooms, each with the first line of its docstring."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path


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
        lines.append(f"{'  ' * (len(parts) - 1)}- {shown} {_first_line(room / '__init__.py')}")
    return "\n".join(lines)


def with_rooms(readme: str, package: Path) -> str:
    """`readme` with its map of the rooms made anew."""
    return with_section(readme, "rooms", _map(package))


def with_section(page: str, name: str, text: str) -> str:
    """`page` with what stands between the two markers `name` made anew; unchanged where there are no markers."""
    first, last = f"<!-- {name} -->", f"<!-- /{name} -->"
    head, start, rest = page.partition(first)
    _, end, tail = rest.partition(last)
    return f"{head}{first}\n{text}\n{last}{tail}" if start and end else page

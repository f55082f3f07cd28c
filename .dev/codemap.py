"""The maps of the server: its rooms in server/README.md, and in each room's own docstring the files that lie in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

START, END = "<!-- rooms -->", "<!-- /rooms -->"
FILES = "\n\nFiles:\n"


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


def faces(package: Path) -> dict[Path, str]:
    """Every `__init__.py` with a list of its room's files at the end of its docstring."""
    return {room / "__init__.py": _face(room) for room in _rooms(package)}


def _face(room: Path) -> str:
    source = (room / "__init__.py").read_text(encoding="utf-8")
    _, opening, rest = source.partition('"""')
    words, closing, code = rest.partition('"""')
    told = words.partition(FILES)[0].rstrip()
    names = [path for path in sorted(room.glob("*.py")) if path.name != "__init__.py"]
    width = max((len(path.stem) for path in names), default=0)
    listed = "".join(f"    {path.stem.ljust(width)}  {_first_line(path)}\n" for path in names)
    return f"{opening}{told}{FILES}{listed}{closing}{code}" if listed else f"{opening}{told}{closing}{code}"

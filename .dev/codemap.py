"""The code map of server/README.md: every module with the first line of its docstring."""

from __future__ import annotations

import ast
from pathlib import Path

START, END = "<!-- code map -->", "<!-- /code map -->"


def _first_line(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"), str(path)))
    return (docstring or "").partition("\n")[0]


def code_map(package: Path) -> str:
    """Markdown: one list item a package, one a module below it; packages first named by their own docstring."""
    lines: list[str] = []
    folders = sorted({p.parent for p in package.rglob("*.py")}, key=lambda p: (p != package, p.parts))
    for folder in folders:
        shown = folder.relative_to(package.parent).as_posix()
        init = folder / "__init__.py"
        lines.append(f"- **`{shown}/`** {_first_line(init) if init.exists() else ''}".rstrip())
        files = [path for path in sorted(folder.glob("*.py")) if path != init]
        lines.extend(f"  - `{path.name}` {_first_line(path)}".rstrip() for path in files)
    return "\n".join(lines)


def with_code_map(readme: str, package: Path) -> str:
    """`readme` with the section between the two markers made anew; unchanged where there are no markers."""
    head, start, rest = readme.partition(START)
    _, end, tail = rest.partition(END)
    if not start or not end:
        return readme
    return f"{head}{START}\n{code_map(package)}\n{END}{tail}"

"""The folders in which a project's dependencies are installed: they are read, and never written by file tools."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from daiku.workspace.paths import within

_ENVIRONMENTS = (".venv", "venv", "env")
_NODE = "node_modules"
_PYTHON = "site-packages"


def is_dependency(inside: Path) -> bool:
    """True for a path (from its root) inside a folder of installed packages."""
    return not {_NODE, _PYTHON}.isdisjoint(inside.parts)


def dependency_folder(roots: tuple[Path, ...], real: Path) -> Path | None:
    """The folder with the project's dependencies that holds the real path `real`; None where none does.

    It may lie outside the roots, where a link of the project leads to it. A link could lead anywhere: what it
    leads to must itself be called as such folders are, and an environment must be one.
    """
    return next((folder for folder in _folders(roots) if within(real, folder)), None)


def _folders(roots: tuple[Path, ...]) -> Iterator[Path]:
    for root in roots:
        node = Path(os.path.realpath(root / _NODE))
        if node.name == _NODE:
            yield node
        for name in _ENVIRONMENTS:
            environment = root / name
            if not (environment / "pyvenv.cfg").is_file():
                continue
            for packages in (*environment.glob(f"lib/python3*/{_PYTHON}"), environment / "Lib" / _PYTHON):
                real = Path(os.path.realpath(packages))
                if real.name == _PYTHON:
                    yield real

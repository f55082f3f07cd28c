"""Folders with a project's installed dependencies, which file tools may read and never write."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from daiku.workspace.paths import is_within

_ENVIRONMENTS = (".venv", "venv", "env")
_NODE = "node_modules"
_PYTHON = "site-packages"


def is_dependency(inside: Path) -> bool:
    """Return True if the path (relative to its root) is inside a folder of installed packages."""
    return not {_NODE, _PYTHON}.isdisjoint(inside.parts)


def find_dependency_folder(roots: tuple[Path, ...], real: Path) -> Path | None:
    """Return the project's dependency folder that contains the real path `real`; None if there is none.

    The folder may lie outside the roots if a link of the project leads to it. To be safe, its real name must
    be a dependency folder's, and an environment must have a pyvenv.cfg.
    """
    return next((folder for folder in _find_folders(roots) if is_within(real, folder)), None)


def _find_folders(roots: tuple[Path, ...]) -> Iterator[Path]:
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

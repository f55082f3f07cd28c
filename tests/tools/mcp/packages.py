"""Programs of others for slow tests, installed once into the developer's cache, outside the tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from threading import Lock

import pytest

CACHE = Path(os.environ.get("DAIKU_DEV_CACHE") or Path.home() / ".cache" / "daiku-dev")
"""As .dev/places.mjs has it; read before the tests' own environment is set up."""
INSTALL_SECONDS = 400
_installing = Lock()


@cache
def node() -> str:
    """A Node.js of version 22 or later: the cache's, else the one on PATH."""
    found = [str(path) for path in sorted(CACHE.glob("node-*/node_modules/node-*/bin/node"), reverse=True)]
    for program in (*found, shutil.which("node")):
        if program is None:
            continue
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
        version = re.match(r"v(\d+)\.", done.stdout)
        if version and int(version[1]) >= 22:
            return program
    # The servers need Node.js 22, which `npm test` brings.
    pytest.skip("there is no Node.js 22 or later")


def npm() -> str:
    """The npm on PATH; the test is skipped where there is none."""
    # The servers are npm packages.
    return shutil.which("npm") or pytest.skip("there is no npm")


def from_npm(*packages: str) -> Path:
    """The node_modules with `packages` (name@version); the test is skipped where they cannot be had."""
    folder = CACHE / "mcp" / re.sub(r"[^\w.-]+", "_", "+".join(packages))[:120]
    done = folder / "installed"
    with _installing:
        if not done.exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "package.json").write_text('{"private": true}')
            _run([npm(), "install", "--no-audit", "--no-fund", *packages], folder)
            done.touch()
    return folder / "node_modules"


def from_pypi(*packages: str) -> Path:
    """The bin folder of an environment with `packages`; the test is skipped where they cannot be had."""
    folder = CACHE / "mcp" / re.sub(r"[^\w.-]+", "_", "+".join(packages))[:120]
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    done = folder / "installed"
    if not done.exists():
        _run([sys.executable, "-m", "venv", "--clear", str(folder)], CACHE)
        _run([str(programs / "python"), "-m", "pip", "install", "-q", *packages], folder)
        done.touch()
    return programs


def _run(argv: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            argv, cwd=folder, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired:
        # A registry that is slow or unreachable says nothing about Daiku.
        pytest.skip(f"the registry did not answer within {INSTALL_SECONDS} s: {argv[-1]}")
    if done.returncode:
        # A registry that is slow or unreachable says nothing about Daiku.
        pytest.skip(f"cannot be installed here: {(done.stderr or done.stdout).strip()[-300:]}")

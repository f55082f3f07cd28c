"""Where other projects' code is: their Pythons in the developer's cache, made when they are not there, versions fixed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

SLEEP_PACKAGES = ("skillopt==0.2.0",)
ACE_PACKAGES = ("openai==3.54.0", "python-dotenv==1.2.4", "numpy==2.4.6", "faiss-cpu==1.15.1")
"""What ACE's code imports. tiktoken and sentence-transformers fetch tables and weights where they are used: something
stands in for them (`ace_process.py`)."""
ACE_COMMIT = "ba78d343bf8cbe52f284da339a329a609565426a"
ACE_FILES = (
    "ace/__init__.py", "ace/ace.py", "ace/core/__init__.py", "ace/core/bulletpoint_analyzer.py", "ace/core/curator.py",
    "ace/core/generator.py", "ace/core/reflector.py", "ace/prompts/__init__.py", "ace/prompts/curator.py",
    "ace/prompts/generator.py", "ace/prompts/reflector.py", "llm.py", "logger.py", "playbook_utils.py", "utils.py",
)  # fmt: skip
ACE_SUM = "8b74f215b3dcd7b2e16a0de7b488501224abaabafd4e842f3325a64c6414ed06"
"""SHA-256 over those files, as they are in that commit."""


class Missing(NamedTuple):
    """Why a peer is left out, in a sentence."""

    why: str


def cache() -> Path:
    return Path(os.environ.get("DAIKU_DEV_CACHE") or Path.home() / ".cache" / "daiku-dev")


def python_with(*packages: str, make: bool = True) -> Path | Missing:
    """A Python with these packages in an environment of its own, outside the tree. `make`: where there is none yet."""
    name = f"{packages[0].partition('==')[0]}-{_sum(*(each.encode() for each in packages))[:12]}"
    folder = cache() / "beside" / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if (folder / ".ready").exists():
        return python
    if not make:
        return Missing(f"{packages[0]} is not installed in {folder}.")
    made = _quietly(sys.executable, "-m", "venv", "--clear", str(folder))
    made = made or _quietly(str(python), "-m", "pip", "install", "--quiet", *packages)
    if made:
        return Missing(f"{packages[0]} could not be installed: {made}")
    (folder / ".ready").touch()
    return python


def ace_folder() -> Path | Missing:
    """A checkout of ACE at the commit that the adapter was written for; it is not fetched."""
    folder = Path(os.environ.get("DAIKU_ACE") or cache() / "beside" / "ace")
    wanted = f"a checkout of github.com/ace-agent/ace at {ACE_COMMIT[:8]}; DAIKU_ACE names where it is"
    try:
        found = _sum(*((folder / name).read_bytes() for name in ACE_FILES))
    except OSError:
        return Missing(f"{folder} is not {wanted}.")
    return folder if found == ACE_SUM else Missing(f"{folder} is another version than {wanted}.")


def _quietly(*command: str) -> str:
    """Run it; the last line of what it complained of, if it failed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = (done.stderr or done.stdout).strip().splitlines()
    return "" if done.returncode == 0 else said[-1] if said else f"exit code {done.returncode}"


def _sum(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()

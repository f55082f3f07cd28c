"""What a repository's own settings would make git run, switched off for the commands that run in it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from daiku.tools.sandbox import safe_path

_SECONDS = 10
_NAMES = (
    r"^diff\.external$|^(filter|diff|merge)\..*\.(clean|smudge|process|textconv|command|driver)$|^alias\.|^remote\..*\.(uploadpack|receivepack|vcs)$"
    r"|^submodule\..*\.update$|^(difftool|mergetool)\..*\.cmd$"
)
_LARGE_FILES = re.compile(r"git-lfs (?:clean -- %f|smudge(?: --skip)? -- %f|filter-process(?: --skip)?)")
"""What git's extension for large files puts into a repository's settings itself."""
_known: dict[Path, tuple[tuple[int, ...], tuple[tuple[str, str], ...]]] = {}


def switched_off(root: Path, folder: Path, environ: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Settings that take away programs which the repository at `root`, with the git folder `folder`, names
    in its own settings (filters, drivers, aliases). `environ` is the one that git runs in."""
    stamps = tuple(_stamp(folder / name) for name in ("config", "config.worktree"))
    known = _known.get(folder)
    if known is not None and known[0] == stamps:
        return known[1]
    git = shutil.which("git", path=safe_path(os.environ.get("PATH") or os.defpath, (root,)))
    if git is None:
        return ()
    try:
        done = subprocess.run(
            [git, "config", "--null", "--show-scope", "--get-regexp", _NAMES],
            cwd=root,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    fields = done.stdout.decode("utf-8", "replace").split("\0")
    found: dict[str, str] = {}
    for scope, setting in zip(fields[::2], fields[1::2], strict=False):
        name, _, value = setting.partition("\n")
        if scope in ("local", "worktree") and not _LARGE_FILES.fullmatch(value):
            found[name] = "checkout" if name.startswith("submodule.") else ""
            if name.startswith("filter."):
                found[f"{name.rpartition('.')[0]}.required"] = "false"
    off = tuple(found.items())
    _known[folder] = (stamps, off)
    return off


def _stamp(file: Path) -> int:
    try:
        return file.stat().st_ctime_ns
    except OSError:
        return 0

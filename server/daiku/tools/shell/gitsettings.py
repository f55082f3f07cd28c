"""What a repository's own settings would make git run, switched off for the commands that run in it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from daiku.core.bash import read_script
from daiku.core.wrappers import program
from daiku.tools.sandbox import safe_path

_SECONDS = 10
# An object that is missing is not fetched: that would reach another machine, or start a program.
_REACHES_NOTHING = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
_NAMES = (
    r"^diff\.external$|^(filter|diff|merge)\..*\.(clean|smudge|process|textconv|command|driver)$|^alias\.|^remote\..*\.(uploadpack|receivepack|vcs)$"
    r"|^submodule\..*\.update$|^(difftool|mergetool)\..*\.cmd$"
)
_LARGE_FILES = re.compile(r"git-lfs (?:clean -- %f|smudge(?: --skip)? -- %f|filter-process(?: --skip)?)")
"""What git's extension for large files puts into a repository's settings itself."""
_known: dict[Path, tuple[tuple[int, ...], tuple[tuple[str, str], ...]]] = {}


def switched_off(root: Path, folder: Path, environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Settings that take away programs which the repository at `root`, with the git folder `folder`, names
    in its own settings (filters, drivers, aliases). `environ` is the one that git runs in."""
    stamps = tuple(_stamp(folder / name) for name in ("config", "config.worktree"))
    known = _known.get(folder)
    if known is not None and known[0] == stamps:
        return known[1]
    git = shutil.which("git", path=safe_path(os.environ.get("PATH") or os.defpath, (root,)))
    if git is None:
        return ()
    said = _said([git, "config", "--null", "--show-scope", "--get-regexp", _NAMES], root, environ)
    if said is None:
        return ()
    fields = said.split("\0")
    found: dict[str, str] = {}
    for scope, setting in zip(fields[::2], fields[1::2], strict=False):
        name, _, value = setting.partition("\n")
        if scope in ("local", "worktree") and not _LARGE_FILES.fullmatch(value):
            found[name] = "checkout" if name.startswith("submodule.") else ""
            if name.endswith(("uploadpack", "receivepack")):  # of these git takes the first, and it is there
                found["protocol.file.allow"] = "never"
            if name.startswith("filter."):
                found[f"{name.rpartition('.')[0]}.required"] = "false"
    off = tuple(found.items())
    _known[folder] = (stamps, off)
    return off


def names_a_blob(command: str, root: Path, environ: Mapping[str, str]) -> str:
    """The word of a git command that names a file's content by its object and not by its path; empty where
    there is none. What the content is called, and so whether it is secret, cannot be told from it."""
    words = [
        word.text
        for simple in read_script(command).commands
        if program(simple.words) == "git"
        for word in simple.words[2:]
        if not word.text.startswith("-") and ":" not in word.text and word.text.isprintable()
    ]
    git = shutil.which("git", path=safe_path(os.environ.get("PATH") or os.defpath, (root,)))
    if not words or git is None:
        return ""
    said = _said([git, "cat-file", "--batch-check=%(objecttype)"], root, environ, "\n".join(words) + "\n")
    kinds = (said or "").splitlines()
    return next((word for word, kind in zip(words, kinds, strict=False) if kind == "blob"), "")


def _said(argv: list[str], root: Path, environ: Mapping[str, str], stdin: str = "") -> str | None:
    try:
        done = subprocess.run(
            argv,
            cwd=root,
            env={**environ, **_REACHES_NOTHING},
            input=stdin.encode(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace")


def _stamp(file: Path) -> int:
    try:
        return file.stat().st_ctime_ns
    except OSError:
        return 0

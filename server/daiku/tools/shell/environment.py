"""The environment of a command: what programs need by name, and nothing else of the person's."""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from daiku.guard.rules.commands.readonly import PROGRAMS
from daiku.guard.rules.commands.wrappers import SHELLS
from daiku.guard.rules.redact import Redactor
from daiku.texts.rules.patterns import lazy
from daiku.tools.shell.gitsettings import FOR_COMMANDS, git_settings
from daiku.workspace.programs import safe_path

_TABLES = cast(
    "Mapping[str, Any]", json.loads(Path(__file__).with_name("environment.json").read_text("utf-8"))
)
# What passes, where its value holds no secret: the person, the language, the terminal, and where tools lie.
_PASSES = lazy("|".join(_TABLES["passes"]))
SYSTEM_TOOLS = (frozenset(PROGRAMS) - {"rg", "fd", "fdfind", "jq", "tree"}) | (SHELLS - {"xonsh"}) | {
    "env", "sudo", "xargs", "nice", "timeout", "rm", "cp", "mv", "ln", "mkdir", "rmdir", "touch", "tee", "chmod", "curl", "wget",
    "ssh", "scp", "awk", "perl", "make", "tar",
}  # fmt: skip
"""Names that mean a tool of the system. Packages of Python bring others (rg, jq, cmake), but none of these."""
_LOCALE = lazy(r"LANG|LC_[A-Z]+")
_PLAIN_LOCALE = "C.UTF-8"
_PROXY = lazy(r"(?:https?|all|no|ftp)_proxy", re.IGNORECASE)
_LOGIN = lazy(r"://[^/\s@]*@")
_FIXED = _TABLES["fixed"]


def child_environment(
    environ: Mapping[str, str],
    roots: tuple[Path, ...],
    *,
    network: bool,
    venv: Path | None = None,
    named: tuple[str, ...] = (),
) -> dict[str, str]:
    """What a command is given of `environ`. `venv`: a Python environment that comes first on PATH. `named`: variables that the person's settings pass on, whatever they hold."""
    looks_secret = Redactor(())
    kept: dict[str, str] = {}
    for name, value in environ.items():
        if name in named:
            kept[name] = value
            continue
        proxy = _PROXY.fullmatch(name) is not None
        if not proxy and (_PASSES.fullmatch(name) is None or looks_secret(value) != value):
            continue
        if _LOGIN.search(value) and not (network and proxy):
            continue
        if _LOCALE.fullmatch(name) and not is_locale(value):
            # A shell warns of it in the output of every command.
            if not is_locale(_PLAIN_LOCALE):
                continue
            value = _PLAIN_LOCALE
        kept[name] = value
    kept.update(_FIXED)
    path = safe_path(_without_ours(environ.get("PATH") or os.defpath), roots)
    if venv is not None:
        kept["VIRTUAL_ENV"] = str(venv)
        path = f"{venv / 'bin'}{os.pathsep}{path}"
    kept["PATH"] = path
    kept["TMPDIR"] = "/tmp"  # noqa: S108  # inside the sandbox it is the command's own
    return {**kept, **git_settings(FOR_COMMANDS)}


@cache
def is_locale(name: str) -> bool:
    """Whether this machine has the locale `name`; True where that cannot be told."""
    if sys.platform != "linux":
        return True
    try:
        libc = ctypes.CDLL(None)
        libc.newlocale.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
        libc.newlocale.restype = ctypes.c_void_p
        libc.freelocale.argtypes = (ctypes.c_void_p,)
        made = libc.newlocale(1, os.fsencode(name), None)  # 1: the characters (LC_CTYPE)
    except (AttributeError, OSError, ValueError):
        return True
    if made:
        libc.freelocale(made)
    return bool(made)


def _without_ours(path: str) -> str:
    # The server's private Python environment is not the project's.
    if sys.prefix == sys.base_prefix:
        return path
    own = str(Path(sys.prefix) / "bin")
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if entry.rstrip("/") != own)


def own_environment(roots: tuple[Path, ...]) -> tuple[Path | None, tuple[str, ...]]:
    """Return the project's Python environment, None if unusable, and the programs because of which it is.
    These have names of system tools: whoever allows a command by such a name means another program."""
    found = next((v for root in roots for v in (root / ".venv", root / "venv") if is_environment(v)), None)
    try:
        names = os.listdir(found / "bin") if found else ()  # noqa: PTH208  # names
    except OSError:
        names = ()
    impostors = tuple(sorted(name for name in names if name.casefold() in SYSTEM_TOOLS))
    return None if impostors else found, impostors


def is_environment(folder: Path) -> bool:
    """True where `folder` is a Python environment."""
    return (folder / "pyvenv.cfg").is_file() and (folder / "bin" / "python").exists()

"""The environment of a command: no keys, no folders of the workspace on PATH, nothing that waits for a person."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from daiku.core.redact import redactor
from daiku.tools.sandbox import safe_path

_SECRET_NAME = re.compile(
    r"KEY|SECRET|TOKEN|PASSW|PASSPHRASE|CREDENTIAL|AUTH|COOKIE|PRIVATE|DSN|DATABASE_URL|CONNECTION_STRING|WEBHOOK|_PAT$|^PAT$|_PWD$|^PGPASS",
    re.IGNORECASE,
)
# What editors, shells and our own start put there, and what makes programs load code.
_DROPPED = re.compile(
    r"^(?:DAIKU_|VSCODE_|ELECTRON_|GIT_|BASH_FUNC_|BASH_ENV$|ENV$|PROMPT_COMMAND$|PS4$|SHELLOPTS$|BASHOPTS$|LD_PRELOAD$|LD_AUDIT$"
    r"|DYLD_INSERT|NODE_OPTIONS$|PYTHONPATH$|PYTHONHOME$|PYTHONSTARTUP$|PERL5OPT$|PERL5LIB$|RUBYOPT$|RUBYLIB$|JAVA_TOOL_OPTIONS$"
    r"|_JAVA_OPTIONS$|VIRTUAL_ENV|PYTEST_|FORCE_COLOR$|CLICOLOR_FORCE$|DBUS_|XDG_RUNTIME_DIR$|WAYLAND_|DISPLAY$|RIPGREP_CONFIG_PATH$)"
)
_KEPT = frozenset(
    {"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_SSL_CAINFO"}
)
_PROXY = re.compile(r"^(?:https?|all|no|ftp)_proxy$", re.IGNORECASE)
_LOGIN = re.compile(r"://[^/\s@]*:[^/\s@]*@")
_FIXED = {
    "TERM": "dumb",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_PAGER": "cat",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PYTHONUNBUFFERED": "1",
}
GIT_SETTINGS = (
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("safe.bareRepository", "explicit"),
    ("protocol.ext.allow", "never"),
)
"""What no repository may say about the git that runs in it."""


def child_environment(
    environ: Mapping[str, str],
    roots: tuple[Path, ...],
    *,
    network: bool,
    hooks: bool = True,
    venv: bool = True,
) -> dict[str, str]:
    """What a command is given of `environ`. `hooks`: git may run those of the repository; `venv`: the
    project's Python environment comes first on PATH."""
    looks_secret = redactor(())
    kept: dict[str, str] = {}
    for name, value in environ.items():
        dropped = _DROPPED.match(name) and name not in _KEPT
        if dropped or _SECRET_NAME.search(name) or looks_secret(value) != value:
            continue
        if _LOGIN.search(value) and not (network and _PROXY.match(name)):
            continue
        kept[name] = value
    kept.update(_FIXED)
    path = safe_path(_without_ours(environ.get("PATH") or os.defpath), roots)
    folder = next((v for root in roots for v in (root / ".venv", root / "venv") if is_environment(v)), None)
    if venv and folder is not None:
        kept["VIRTUAL_ENV"] = str(folder)
        path = f"{folder / 'bin'}{os.pathsep}{path}"
    kept["PATH"] = path
    kept["TMPDIR"] = "/tmp"  # noqa: S108  # inside the sandbox it is the command's own
    git = [*GIT_SETTINGS, *(() if hooks else (("core.hooksPath", "/dev/null"),))]
    kept["GIT_CONFIG_COUNT"] = str(len(git))
    for at, (name, value) in enumerate(git):
        kept[f"GIT_CONFIG_KEY_{at}"] = name
        kept[f"GIT_CONFIG_VALUE_{at}"] = value
    return kept


def _without_ours(path: str) -> str:
    # The server's private Python environment is not the project's.
    if sys.prefix == sys.base_prefix:
        return path
    own = str(Path(sys.prefix) / "bin")
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if entry.rstrip("/") != own)


def is_environment(folder: Path) -> bool:
    """True where `folder` is a Python environment."""
    return (folder / "pyvenv.cfg").is_file() and (folder / "bin" / "python").exists()

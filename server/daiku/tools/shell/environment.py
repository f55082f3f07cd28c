"""Environment of a command: only the variables that programs need, by name."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import re
import sys
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from daiku.dataclass import dataclass
from daiku.domain.config import SandboxSettings
from daiku.guard.rules.commands.readonly import PROGRAMS
from daiku.guard.rules.commands.wrappers import SHELLS
from daiku.guard.rules.redact import Redactor
from daiku.guard.sandbox import Bounds, sandbox_argv, sandbox_state
from daiku.texts.rules.patterns import lazy
from daiku.tools.shell.gitsettings import FOR_COMMANDS, to_git_env
from daiku.tools.shell.process import start, wrap_in_reaper
from daiku.workspace.programs import build_safe_path, find_program

_TABLES = cast(
    "Mapping[str, Any]", json.loads(Path(__file__).with_name("environment.json").read_text("utf-8"))
)
# Variables that pass unless the value is a secret: user, language, terminal, and folders of tools.
_PASSES = lazy("|".join(_TABLES["passes"]))
SYSTEM_TOOLS = (frozenset(PROGRAMS) - {"rg", "fd", "fdfind", "jq", "tree"}) | (SHELLS - {"xonsh"}) | {
    "env", "sudo", "xargs", "nice", "timeout", "rm", "cp", "mv", "ln", "mkdir", "rmdir", "touch", "tee", "chmod", "curl", "wget",
    "ssh", "scp", "awk", "perl", "make", "tar",
}  # fmt: skip
"""Names of system tools. Python packages may install others (rg, jq, cmake), but none of these."""
_LOCALE = lazy(r"LANG|LC_[A-Z]+")
_PLAIN_LOCALE = "C.UTF-8"
_PROXY = lazy(r"(?:https?|all|no|ftp)_proxy", re.IGNORECASE)
_LOGIN = lazy(r"://[^/\s@]*@")
_FIXED = _TABLES["fixed"]


def build_environment(
    environ: Mapping[str, str],
    roots: tuple[Path, ...],
    *,
    network: bool,
    venv: Path | None = None,
    passed_names: tuple[str, ...] = (),
) -> dict[str, str]:
    """Build the environment of a command from `environ`.

    `venv`: a Python environment to put first on PATH. `passed_names`: variables that the user's settings pass
    on unconditionally.
    """
    redact = Redactor(())
    variables: dict[str, str] = {}
    for name, value in environ.items():
        if name in passed_names:
            variables[name] = value
            continue
        is_proxy = _PROXY.fullmatch(name) is not None
        if not is_proxy and (_PASSES.fullmatch(name) is None or redact(value) != value):
            continue
        if _LOGIN.search(value) and not (network and is_proxy):
            continue
        if _LOCALE.fullmatch(name) and not is_locale(value):
            # A shell prints a warning about an unknown locale in every command.
            if not is_locale(_PLAIN_LOCALE):
                continue
            value = _PLAIN_LOCALE
        variables[name] = value
    variables.update(_FIXED)
    path = build_safe_path(_remove_own_folder(environ.get("PATH") or os.defpath), roots)
    if venv is not None:
        variables["VIRTUAL_ENV"] = str(venv)
        path = f"{venv / 'bin'}{os.pathsep}{path}"
    variables["PATH"] = path
    variables["TMPDIR"] = "/tmp"  # noqa: S108  # in the sandbox each command has its own
    return {**variables, **to_git_env(FOR_COMMANDS)}


@cache
def is_locale(name: str) -> bool:
    """Return True if this machine has the locale `name`, or if that is unknown."""
    if sys.platform != "linux":
        return True
    try:
        libc = ctypes.CDLL(None)
        libc.newlocale.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
        libc.newlocale.restype = ctypes.c_void_p
        libc.freelocale.argtypes = (ctypes.c_void_p,)
        locale = libc.newlocale(1, os.fsencode(name), None)  # 1: LC_CTYPE
    except (AttributeError, OSError, ValueError):
        return True
    if locale:
        libc.freelocale(locale)
    return bool(locale)


def _remove_own_folder(path: str) -> str:
    # The server's private Python environment is not the project's.
    if sys.prefix == sys.base_prefix:
        return path
    own = str(Path(sys.prefix) / "bin")
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if entry.rstrip("/") != own)


def find_environment(roots: tuple[Path, ...]) -> tuple[Path | None, tuple[str, ...]]:
    """Return the project's Python environment, or None and the programs that make it unusable.

    Those programs have names of system tools: a user who allows a command by such a name means another
    program.
    """
    folder = next((v for root in roots for v in (root / ".venv", root / "venv") if is_environment(v)), None)
    try:
        names = os.listdir(folder / "bin") if folder else ()  # noqa: PTH208  # names
    except OSError:
        names = ()
    impostors = tuple(sorted(name for name in names if name.casefold() in SYSTEM_TOOLS))
    return None if impostors else folder, impostors


def is_environment(folder: Path) -> bool:
    """Return True if `folder` is a Python environment."""
    return (folder / "pyvenv.cfg").is_file() and (folder / "bin" / "python").exists()


TIMED_OUT, NOT_STARTED = 124, 127
MAX_OUTPUT = 4000
"""Characters of a command's output that are stored."""


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """The result of a command. `code`: exit code; `output`: both ends of its output."""

    code: int
    output: str
    seconds: float


@dataclass(frozen=True, slots=True)
class CommandPlace:
    """The folder that commands run in and may write, and the sandbox settings."""

    folder: Path
    sandbox: SandboxSettings


async def run_line(
    line: str,
    place: CommandPlace,
    seconds: float,
    *,
    network: bool = False,
    extra_env: Mapping[str, str] | None = None,
) -> CommandEnd:
    """Run a line of bash. Exit code 124 after a timeout. `extra_env`: additional variables."""
    shell = find_program("bash", (place.folder,)) or "/bin/sh"
    flags = ("--noprofile", "--norc") if shell.endswith("bash") else ()
    return await run_argv([shell, *flags, "-c", line], place, seconds, network=network, extra_env=extra_env)


async def run_argv(
    argv: list[str],
    place: CommandPlace,
    seconds: float,
    *,
    network: bool = False,
    bare: bool = False,
    extra_env: Mapping[str, str] | None = None,
) -> CommandEnd:
    """Run a program to its end. `bare`: outside the sandbox, for programs that need it (git)."""
    roots = (place.folder,)
    sandboxed = not bare and sandbox_state(place.sandbox) == "on"
    env = build_environment(os.environ, roots, network=network, passed_names=place.sandbox.environment)
    if not sandboxed:
        env["TMPDIR"] = os.environ.get("TMPDIR", "/tmp")  # noqa: S108  # the system's own
    env.update(extra_env or {})
    start_time = time.monotonic()
    try:
        if sandboxed:
            bounds = Bounds(roots=roots, network=network)
            argv = await asyncio.to_thread(sandbox_argv, argv, bounds, place.folder)
        else:
            argv = wrap_in_reaper(argv)
        process = await start(
            argv, cwd=place.folder, env=env, stdin=None, terminal=False, reaped=not sandboxed
        )
    except (OSError, ValueError) as error:
        return CommandEnd(NOT_STARTED, str(error), 0.0)
    try:
        async with asyncio.timeout(seconds):
            code = await process.finish(_discard)
    except TimeoutError:
        code = TIMED_OUT
    finally:
        await asyncio.shield(process.stop())
    return CommandEnd(code, process.output.format_for_model(MAX_OUTPUT), time.monotonic() - start_time)


def _discard(_piece: str) -> None:
    """Ignore live output."""

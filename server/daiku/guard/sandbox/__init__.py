"""Where commands run: bubblewrap when it works here, with what they may write, see and reach."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from daiku.domain.config import SandboxSettings
from daiku.guard.rules.policy import SandboxState
from daiku.guard.sandbox.sessions import enter_network, system_call_filter, user_namespace
from daiku.guard.sandbox.view import Bounds, view
from daiku.workspace.programs import find_program

__all__ = [
    "Bounds",
    "bubblewrap",
    "confines_root",
    "own_scratch",
    "sandbox_argv",
    "sandbox_state",
    "session_network",
]

PROBE_SECONDS = 10
_KEPT_CAPABILITIES = (
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_NET_BIND_SERVICE",
)  # fmt: skip
_NAMESPACES = ("mnt", "pid", "net", "ipc")
"""Namespaces that a sandboxed command does not share with Daiku."""
_PROBE_ENVIRONMENT = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin:/run/current-system/sw/bin"}
# Descriptors that bubblewrap reads from; a shell opens them for it.
_NAMESPACE, _FILTER = 8, 9


def sandbox_state(settings: SandboxSettings) -> SandboxState:
    """Return the sandbox state for the guard: off, on, missing, or refused because strict mode needs one."""
    if settings.mode == "off":
        return "off"
    if bubblewrap():
        return "on"
    return "refused" if settings.mode == "strict" else "missing"


def bubblewrap() -> str:
    """Return the path of a bubblewrap that was tried and isolates here; "" if there is none."""
    found = find_program("bwrap")
    return found if found and _way(found) is not None else ""


def confines_root() -> bool:
    """Return whether root's rights end at the sandbox: not run as root, or it has its own user namespace."""
    found = bubblewrap()
    return os.geteuid() != 0 or (bool(found) and (_way(found) or ("", ""))[0] != "")


@cache
def _way(bwrap: str) -> tuple[str, str] | None:
    """Return how bubblewrap works here: the paths of the user namespace and of the system call filter.

    Each is empty if unavailable; None if bubblewrap does not work at all.
    """
    program = system_call_filter()
    written = ""
    if program:
        place = Path(_scratch().name) / "system-calls"
        place.write_bytes(program)
        written = str(place)
    namespace = user_namespace()
    ways = [(namespace, written), ("", written), (namespace, ""), ("", "")]
    return next((way for way in dict.fromkeys(ways) if _works(bwrap, way)), None)


def _works(bwrap: str, way: tuple[str, str]) -> bool:
    """Return True if a command in the sandbox has its own namespaces and writes only in its folder."""
    try:
        with tempfile.TemporaryDirectory(prefix="daiku-") as folder:
            bounds = Bounds(roots=(Path(folder),))
            script = "echo > probe && ! touch /probe 2>&- && ! touch /proc/sys/vm/probe 2>&- && readlink "
            script += " ".join(f"/proc/self/ns/{name}" for name in _NAMESPACES)
            argv = [*_arguments(bwrap, way, bounds, Path(folder)), "/bin/sh", "-c", script]
            done = subprocess.run(
                argv,
                cwd=folder,
                env=_PROBE_ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PROBE_SECONDS,
                check=False,
            )
            found = done.stdout.decode("utf-8", "replace").split()
            return done.returncode == 0 and _isolates(found)
    except (OSError, subprocess.SubprocessError):
        return False


def _isolates(namespaces: list[str]) -> bool:
    """Return True if `namespaces`, as of /proc/self/ns, are all others than this process has."""
    own = [str(Path(f"/proc/self/ns/{name}").readlink()) for name in _NAMESPACES]
    kinds = [namespace.partition(":[")[0] for namespace in namespaces]
    return tuple(kinds) == _NAMESPACES and not set(own) & set(namespaces)


@cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    # One for the server's life: what one command leaves in /tmp and in the home the next one finds; it goes
    # when the server ends.
    return tempfile.TemporaryDirectory(prefix="daiku-tmp-")


_OWN: ContextVar[str] = ContextVar("scratch of this task", default="")


@contextmanager
def own_scratch() -> Generator[None]:
    """Give the commands of the current task, and of the tasks it starts, their own /tmp and home.

    Two evaluated runs must not find each other's files. Raises OSError.
    """
    with tempfile.TemporaryDirectory(prefix="daiku-tmp-", ignore_cleanup_errors=True) as folder:
        token = _OWN.set(folder)
        try:
            yield
        finally:
            _OWN.reset(token)


def sandbox_argv(argv: list[str], bounds: Bounds, cwd: Path) -> list[str]:
    """`argv` inside the sandbox. Raises OSError when there is no temporary folder."""
    found = bubblewrap()
    way = _way(found) or ("", "")
    network = session_network(bounds.session) if bounds.session and not bounds.network else ()
    return [*network, *_arguments(found, way, bounds, cwd, in_session=bool(network)), *argv]


def session_network(session: str) -> tuple[str, ...]:
    """Return the start of an argv that enters the session's network namespace, empty if there can be none."""
    found = bubblewrap()
    namespace, _ = _way(found) or ("", "")

    def hold(argv: list[str]) -> list[str]:
        options = [found, *(("--userns", str(_NAMESPACE)) if namespace else ()), "--unshare-net"]
        return _opening(namespace, "", [*options, "--die-with-parent", "--dev-bind", "/", "/", "--", *argv])

    return enter_network(session, hold) if found else ()


def scratch_folder() -> Path:
    """Return the folder that holds what commands leave in /tmp and in their home."""
    return Path(_OWN.get() or _scratch().name)


def nested_argv(argv: list[str], bounds: Bounds, cwd: Path) -> list[str]:
    """Return `argv` in a sandbox that itself starts in a user namespace, as the user who runs Daiku. Raises OSError."""
    found = bubblewrap()
    way = ("", (_way(found) or ("", ""))[1])
    user = ["--unshare-user", "--uid", str(os.geteuid()), "--gid", str(os.getegid())]
    return [*_arguments(found, way, bounds, cwd, user=user), *argv]


def _arguments(
    bwrap: str,
    way: tuple[str, str],
    bounds: Bounds,
    cwd: Path,
    *,
    in_session: bool = False,
    user: Sequence[str] = (),
) -> list[str]:
    namespace, calls = way
    options = [bwrap, *user, *(("--userns", str(_NAMESPACE)) if namespace else ())]
    options += view(bounds, scratch_folder())
    options += ["--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--chdir", str(cwd)]
    options += ["--seccomp", str(_FILTER)] if calls else []
    if not in_session and (not bounds.network or bounds.read_only):
        options.append("--unshare-net")
    if os.geteuid() == 0:
        options += ["--cap-drop", "ALL"]
        for capability in _KEPT_CAPABILITIES:
            options += ["--cap-add", capability]
    return _opening(namespace, calls, [*options, "--"])


def _opening(namespace: str, calls: str, options: list[str]) -> list[str]:
    """Return `options` behind a shell that opens the descriptors which bubblewrap reads from."""
    opened = ((_NAMESPACE, namespace), (_FILTER, calls))
    opens = " ".join(f"{number}<'{place}'" for number, place in opened if place)
    return ["/bin/sh", "-c", f'exec {opens}; exec "$@"', "sandbox", *options] if opens else options

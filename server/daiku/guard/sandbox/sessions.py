"""One network namespace per session: its commands reach one another on 127.0.0.1, and nothing else."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock

from daiku.workspace.programs import find_program

MOST_SESSIONS = 64
"""Sessions whose namespace is kept; of the oldest one only running commands keep it."""
_SECONDS = 10
_ENVIRONMENT = {"PATH": "/usr/bin:/bin"}
_HOLD = ("/bin/sh", "-c", "echo $$; read _")
Prefix = tuple[str, ...]
"""The start of an argv that enters a namespace."""

_entries: dict[str, tuple[Prefix, tuple[int, ...]]] = {}
_lock = Lock()


def enter_network(session: str, sandbox: Callable[[list[str]], list[str]]) -> Prefix:
    """Return the argv prefix that enters the session's namespace, empty if there can be none here.

    `sandbox` starts a command in new namespaces. Blocks for some milliseconds the first time.
    """
    with _lock:
        if session not in _entries:
            while len(_entries) >= MOST_SESSIONS:
                for number in _entries.pop(next(iter(_entries)))[1]:
                    os.close(number)
            _entries[session] = _create(sandbox)
        return _entries[session][0]


def _create(sandbox: Callable[[list[str]], list[str]]) -> tuple[Prefix, tuple[int, ...]]:
    """Create a namespace that open files of this process keep: it ends with Daiku, however Daiku ends."""
    nsenter = find_program("nsenter")
    opened: list[int] = []
    if nsenter:
        with suppress(OSError, subprocess.SubprocessError, ValueError):
            with subprocess.Popen(
                sandbox([*_HOLD]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env=_ENVIRONMENT,
            ) as child:  # fmt: skip
                assert child.stdout is not None
                with suppress(OSError, ValueError):
                    pid = int(child.stdout.readline())
                    kinds = ("net",) if os.geteuid() == 0 else ("net", "user")
                    flags = os.O_RDONLY | os.O_CLOEXEC
                    opened.extend(os.open(f"/proc/{pid}/ns/{kind}", flags) for kind in kinds)
                child.communicate(timeout=_SECONDS)
            net, *user = (f"/proc/{os.getpid()}/fd/{number}" for number in opened)
            options = (
                f"--net={net}",
                *(f"--user={place}" for place in user),
                *(["--preserve-credentials"] if user else ()),
            )
            prefix = (nsenter, *options, "--")
            if _enters(prefix, opened[0]):
                return prefix, tuple(opened)
    for number in opened:
        os.close(number)
    return (), ()


def _enters(prefix: Prefix, net: int) -> bool:
    """Return True if a command behind `prefix` is in the namespace `net`, which is not Daiku's."""
    wanted = str(Path(f"/proc/self/fd/{net}").readlink())
    done = subprocess.run(
        [*prefix, "/bin/sh", "-c", "readlink /proc/self/ns/net"],
        env=_ENVIRONMENT, capture_output=True, timeout=_SECONDS, check=False,
    )  # fmt: skip
    return done.stdout.decode().strip() == wanted != str(Path("/proc/self/ns/net").readlink())

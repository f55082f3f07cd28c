"""The kernel's limits of a sandboxed command, and one network namespace per session."""

from __future__ import annotations

import os
import platform
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock

from daiku.dataclass import dataclass
from daiku.workspace.programs import find_program

_UNSHARE = (
    "import ctypes, sys\n"
    "if ctypes.CDLL(None).unshare(0x10000000): sys.exit(1)\n"
    "print(flush=True)\nsys.stdin.read()\n"
)


@cache
def user_namespace() -> str:
    """Return the path of a user namespace that maps every user of this machine without any rights outside.

    Empty if the kernel does not create one. Only root can have it; for others bubblewrap creates its own with one
    user.
    """
    if os.geteuid() != 0 or sys.platform != "linux":
        return ""
    try:
        with subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _UNSHARE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
        ) as child:
            assert child.stdout is not None
            if child.stdout.readline() != b"\n":
                return ""
            for name in ("uid_map", "gid_map"):
                rows = [line.split() for line in Path("/proc/self", name).read_text().splitlines()]
                known = "".join(f"{inside} {inside} {count}\n" for inside, _, count in rows)
                Path(f"/proc/{child.pid}/{name}").write_text(known)
            # The open file keeps the namespace alive when the child ends.
            kept = os.open(f"/proc/{child.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
            child.communicate(timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"/proc/{os.getpid()}/fd/{kept}"


@dataclass(frozen=True, slots=True)
class _Calls:
    """Numbers of system calls on one kind of machine.

    `modes`: (number, index of the argument that is a file's mode, index of the flags that say whether it counts or
    None); `refused` do not exist here.
    """

    machine: int
    modes: tuple[tuple[int, int, int | None], ...]
    refused: tuple[int, ...]


# Refused: add_key, request_key, keyctl (the kernel's keyring is not in any namespace of ours), io_uring_setup
# and openat2 (they make files whose mode a filter cannot see; programs do without them).
_X86_64 = _Calls(
    0xC000003E,
    ((90, 1, None), (91, 1, None), (268, 2, None), (452, 2, None), (85, 1, None), (2, 2, 1), (257, 3, 2), (133, 1, None), (259, 2, None)),
    (248, 249, 250, 425, 437),
)  # fmt: skip
_I386 = _Calls(
    0x40000003,
    ((15, 1, None), (94, 1, None), (306, 2, None), (452, 2, None), (8, 1, None), (5, 2, 1), (295, 3, 2), (14, 1, None), (297, 2, None)),
    (286, 287, 288, 425, 437),
)  # fmt: skip
_AARCH64 = _Calls(
    0xC00000B7,
    ((52, 1, None), (53, 2, None), (452, 2, None), (56, 3, 2), (33, 2, None)),
    (217, 218, 219, 425, 437),
)
_ARM = _Calls(
    0x40000028,
    ((15, 1, None), (94, 1, None), (333, 2, None), (452, 2, None), (8, 1, None), (5, 2, 1), (322, 3, 2), (14, 1, None), (324, 2, None)),
    (309, 310, 311, 425, 437),
)  # fmt: skip
_MACHINES: dict[str, tuple[_Calls, ...]] = {"x86_64": (_X86_64, _I386), "aarch64": (_AARCH64, _ARM)}
_X32 = 0x40000000
_SET_USER_ID = 0o4000
_CREATES = 0o100 | 0o20000000
"""O_CREAT and O_TMPFILE: without them open() does not look at a mode."""
_LOAD, _JUMP_EQUAL, _JUMP_SET, _JUMP_FROM, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16


def system_call_filter() -> bytes:
    """Return a seccomp program (struct sock_filter[]) that forbids set-user-id bits and the keyring.

    Empty on machines whose system call numbers are not known here.
    """
    kinds = _MACHINES.get(platform.machine(), ())
    if not kinds or sys.byteorder != "little":
        return b""
    program = b"".join(_of(calls) for calls in kinds)
    return program + _step(_RETURN, _FAIL | _ENOSYS)  # of another kind of machine nothing is known


def _step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("<HBBI", code, yes, no, value)


def _of(calls: _Calls) -> bytes:
    """Return the part of the filter for one architecture; other architectures skip it."""
    body: list[bytes] = [_step(_LOAD, _NUMBER)]
    if calls is _X86_64:  # the x32 calls are other numbers for the same
        body += [_step(_JUMP_FROM, _X32, 0, 1), _step(_RETURN, _FAIL | _ENOSYS)]
    for number in calls.refused:
        body += [_step(_JUMP_EQUAL, number, 0, 1), _step(_RETURN, _FAIL | _ENOSYS)]
    for number, mode, flags in calls.modes:
        checks = [_step(_LOAD, _ARGUMENTS + 8 * mode), _step(_JUMP_SET, _SET_USER_ID, 0, 1)]
        tail = [_step(_RETURN, _FAIL | _EPERM), _step(_RETURN, _ALLOW)]
        if flags is not None:
            checks = [
                _step(_LOAD, _ARGUMENTS + 8 * flags),
                _step(_JUMP_SET, _CREATES, 0, 3),
                _step(_LOAD, _ARGUMENTS + 8 * mode),
                _step(_JUMP_SET, _SET_USER_ID, 0, 1),
            ]
        whole = [*checks, *tail]
        body += [_step(_JUMP_EQUAL, number, 0, len(whole)), *whole]
    body.append(_step(_RETURN, _ALLOW))
    return b"".join([_step(_LOAD, _MACHINE), _jump_over(calls.machine, len(body)), *body])


def _jump_over(machine: int, length: int) -> bytes:
    assert length < 256, "a conditional jump reaches 255 steps"
    return _step(_JUMP_EQUAL, machine, 0, length)


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

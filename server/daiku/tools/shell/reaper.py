"""Run a command as a child subreaper, and kill its descendants when it ends or when the server dies."""

# It starts with every command, so it imports little: `signal` and `pathlib` take longer than the rest.

from __future__ import annotations

import ctypes
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
else:
    import _signal as signal

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
ROUNDS = 200
"""Rounds of killing descendants. A killed process leaves its children to the next round."""
SIGNALLED = 128
"""Added to a signal's number to make the exit code."""


def _call_prctl(option: int, value: int) -> None:
    # macOS has no prctl: there only the process group is killed.
    try:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (OSError, AttributeError):
        return


def _list_children() -> list[int]:
    pids: list[int] = []
    try:
        for task in os.listdir("/proc/self/task"):  # noqa: PTH208  # see above
            with open(f"/proc/self/task/{task}/children", encoding="ascii") as children:  # noqa: PTH123  # see above
                pids += [int(pid) for pid in children.read().split()]
    except OSError:
        return pids
    return pids


def _kill_descendants() -> None:
    """Kill all descendants. A process that loses its parent becomes our child, for the next round."""
    for _ in range(ROUNDS):
        pids = _list_children()
        for pid in pids:
            _ignore_errors(os.kill, pid, signal.SIGKILL)
        for pid in pids:
            _ignore_errors(os.waitpid, pid, 0)
        if not pids and not _has_children():
            return


def _has_children() -> bool:
    """Return True if the kernel reports a child; /proc's list can omit children while others exit (proc(5))."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def _ignore_errors(call: Callable[[int, int], object], pid: int, number: int) -> None:
    try:
        call(pid, number)
    except OSError:
        return


def _handle_stop(_signal: int, _frame: object) -> None:
    _kill_descendants()
    os._exit(SIGNALLED + signal.SIGTERM)


def main() -> None:
    """Run `reaper.py PARENT COMMAND…` and exit with the command's exit code."""
    parent = int(sys.argv[1])
    _call_prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, _handle_stop)
    signal.signal(signal.SIGINT, _handle_stop)
    _call_prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it died before PR_SET_PDEATHSIG took effect
        os._exit(SIGNALLED + signal.SIGTERM)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606  # the command, as the guard allowed it
        finally:
            os._exit(127)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            break
    _kill_descendants()
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else SIGNALLED - code)


if __name__ == "__main__":
    main()

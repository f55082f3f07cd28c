"""Run a command as a child subreaper, and kill its descendants when it ends or when the server dies."""

# It is started with every command, so it imports as little as it can: `signal` and `pathlib` take longer than all
# the rest of it.

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
SIGNALLED = 128


def _prctl(option: int, value: int) -> None:
    # macOS has no prctl: there the process group is all that is ended.
    try:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (OSError, AttributeError):
        return


def _children() -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir("/proc/self/task"):  # noqa: PTH208  # see above
            with open(f"/proc/self/task/{task}/children", encoding="ascii") as children:  # noqa: PTH123  # see above
                found += [int(pid) for pid in children.read().split()]
    except OSError:
        return found
    return found


def _end_all() -> None:
    """Kill what is left; whoever loses its parent becomes our child and is met in the next round."""
    for _ in range(ROUNDS):
        left = _children()
        for pid in left:
            _quietly(os.kill, pid, signal.SIGKILL)
        for pid in left:
            _quietly(os.waitpid, pid, 0)
        if not left and not _has_children():
            return


def _has_children() -> bool:
    """Ask the kernel: the list in /proc may lack children while another one exits (proc(5))."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def _quietly(call: Callable[[int, int], object], pid: int, number: int) -> None:
    try:
        call(pid, number)
    except OSError:
        return


def _stop(_signal: int, _frame: object) -> None:
    _end_all()
    os._exit(SIGNALLED + signal.SIGTERM)


def main() -> None:
    """Run `reaper.py PARENT COMMAND…` and exit with the command's exit code."""
    parent = int(sys.argv[1])
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it died before we asked to be told
        os._exit(SIGNALLED + signal.SIGTERM)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606  # the command, as the guard let it through
        finally:
            os._exit(127)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            break
    _end_all()
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else SIGNALLED - code)


if __name__ == "__main__":
    main()

"""A paste of several lines into `daiku chat` is one message, in a real terminal."""

from __future__ import annotations

import os
import select
import sys
import time

import pytest

from tests.cases import for_each
from tests.conftest import ROOT

# Windows has no pseudoterminals.
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
PROGRAM = "from daiku.fronts.cli.commands.chat import _read_typed_message; print('got', ascii(_read_typed_message('> ')))"
PASTES = {
    "marked": ("xterm", b"\x1b[200~one\rtwo\rthree\x1b[201~\r"),
    "unmarked": ("dumb", b"one\rtwo\rthree\r"),
    "one line": ("xterm", b"one\r"),
}


def typed(terminal: str, data: bytes) -> str:
    """What the child has read, and everything that it showed, when `data` arrives at its prompt."""
    import pty  # not on Windows

    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update({"TERM": terminal, "PYTHONPATH": str(ROOT / "server"), "LC_ALL": "C.UTF-8"})
        os.execv(sys.executable, [sys.executable, "-c", PROGRAM])  # our own program
    shown, until, sent = b"", time.monotonic() + 30, False
    while b"got " not in shown or not shown.endswith(b"\n"):
        assert time.monotonic() < until, shown
        if select.select([fd], [], [], 0.1)[0]:
            try:
                shown += os.read(fd, 4096)
            except OSError:
                break
        if b"> " in shown and not sent:
            sent = os.write(fd, data) > 0
    os.waitpid(pid, 0)
    os.close(fd)
    return shown.decode().rpartition("got ")[2].strip()


@for_each("paste", PASTES)
def test_a_paste_of_several_lines_is_one_message(paste: str) -> None:
    expected = "'one'" if paste == "one line" else r"'one\ntwo\nthree'"
    assert typed(*PASTES[paste]) == expected

"""Keys and lines from a person while the event loop goes on; cancelling a wait leaves nothing behind."""

from __future__ import annotations

import asyncio
import codecs
import os
import sys
import threading
import unicodedata
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daiku.fronts.cli.display.term import Terminal

try:
    import termios
    import tty
except ImportError:  # Windows has no such terminals
    termios = tty = None


async def read_key() -> str:
    """Read one key in lower case; full-width letters of an input method count as plain ones.

    "" at the end of input. Inside `key_by_key`, which begins before the question is shown: a key
    that is typed at once must not wait for the end of a line.
    """
    if termios is None:  # no key without a line there: the first letter of a line will do
        return _plain((await read_line()) or "")[:1]
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = ""
    while not text:
        data = await _bytes(sys.stdin.fileno())
        if not data:
            return ""
        text = decoder.decode(data)
    return _plain(text)[:1] if not text.startswith("\x1b") else "\x1b"


async def read_line() -> str | None:
    """Read one line as the terminal edits it, without its end; None at the end of input.

    The terminal's own line editing is used, which every input method works with.
    """
    if termios is None:
        return await _in_thread(sys.stdin.readline)
    got = b""
    while not got.endswith(b"\n"):
        data = await _bytes(sys.stdin.fileno())
        if not data:
            return got.decode("utf-8", "replace") if got else None
        got += data
    return got.decode("utf-8", "replace").rstrip("\r\n")


@contextmanager
def restore_terminal() -> Generator[None]:
    """Restore the terminal settings on exit from the block."""
    if termios is None or not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin.fileno())
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)


@contextmanager
def key_by_key() -> Generator[None]:
    """Switch the terminal to single keys without echo for the duration of the block."""
    if termios is None or tty is None or not sys.stdin.isatty():
        yield
        return
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    tty.setcbreak(fd, termios.TCSADRAIN)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


async def confirm(people: Terminal, question: str) -> bool:
    """Ask a question that one key answers; True for `y`. The end of input is a no."""
    with key_by_key():
        people.write(people.paint(question, "bold") + " ")
        key = await read_key()
    people.write("\n")
    return key == "y"


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).lower()


async def _bytes(fd: int) -> bytes:
    """Wait for input of the terminal and return it. A file or /dev/null, which cannot be waited for, is read at once."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        if not ready.done():
            try:
                ready.set_result(os.read(fd, 4096))
            except OSError:
                ready.set_result(b"")

    try:
        loop.add_reader(fd, read)
    except OSError:
        read()
        return await ready
    try:
        return await ready
    finally:
        loop.remove_reader(fd)


async def _in_thread(read: Callable[[], str]) -> str | None:
    """Run `read` in a daemon thread: waiting for input must not keep the process from ending."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[str] = loop.create_future()

    def work() -> None:
        line = read()
        loop.call_soon_threadsafe(lambda: None if ready.done() else ready.set_result(line))

    threading.Thread(target=work, daemon=True).start()
    line = await ready
    return line.rstrip("\r\n") if line else None

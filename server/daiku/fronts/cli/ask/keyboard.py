"""Asynchronous input of keys and lines; cancelling a read leaves no reader behind."""

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
    """Read one key in lower case; full-width letters count as plain ones.

    Returns "" at the end of input. Enter `key_by_key` before the question is shown, so that an early key
    does not wait for the end of a line.
    """
    if termios is None:  # Windows: read a line and use its first letter
        return _normalize_key((await read_line()) or "")[:1]
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = ""
    while not text:
        data = await _read_bytes(sys.stdin.fileno())
        if not data:
            return ""
        text = decoder.decode(data)
    return _normalize_key(text)[:1] if not text.startswith("\x1b") else "\x1b"


async def read_line() -> str | None:
    """Read one line without its end; None at the end of input.

    The terminal's line editing is used, because every input method works with it.
    """
    if termios is None:
        return await _run_in_thread(sys.stdin.readline)
    received = b""
    while not received.endswith(b"\n"):
        data = await _read_bytes(sys.stdin.fileno())
        if not data:
            return received.decode("utf-8", "replace") if received else None
        received += data
    return received.decode("utf-8", "replace").rstrip("\r\n")


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
    """Ask a question that one key answers; return True for `y`, and False at the end of input."""
    with key_by_key():
        people.write(people.paint(question, "bold") + " ")
        key = await read_key()
    people.write("\n")
    return key == "y"


def _normalize_key(text: str) -> str:
    return unicodedata.normalize("NFKC", text).lower()


async def _read_bytes(fd: int) -> bytes:
    """Wait for terminal input and return it.

    A file or /dev/null, which cannot be waited for, is read immediately.
    """
    loop = asyncio.get_running_loop()
    received: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        if not received.done():
            try:
                received.set_result(os.read(fd, 4096))
            except OSError:
                received.set_result(b"")

    try:
        loop.add_reader(fd, read)
    except OSError:
        read()
        return await received
    try:
        return await received
    finally:
        loop.remove_reader(fd)


async def _run_in_thread(read: Callable[[], str]) -> str | None:
    """Run `read` in a daemon thread, so that waiting for input does not keep the process alive."""
    loop = asyncio.get_running_loop()
    received: asyncio.Future[str] = loop.create_future()

    def work() -> None:
        line = read()
        loop.call_soon_threadsafe(lambda: None if received.done() else received.set_result(line))

    threading.Thread(target=work, daemon=True).start()
    line = await received
    return line.rstrip("\r\n") if line else None

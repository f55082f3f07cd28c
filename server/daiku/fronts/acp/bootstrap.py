"""Entry point of `daiku acp`: reserve stdin and stdout for the protocol, then serve until the client leaves."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import signal
import sys
from collections.abc import Callable

from daiku.texts.terminal import localize
from daiku.texts.text import text

PARENT_SECONDS = 3.0
"""Poll interval in seconds of the check that the parent process is alive."""
USAGE = 2


def main(argv: list[str]) -> int:
    """Run `daiku acp` with these arguments and return the exit code."""
    model = ""
    match argv:
        case []:
            pass
        case ["--model", value] if value:
            model = value
        case _:
            return _complain(localize(text("acp.options")))
    if importlib.util.find_spec("acp") is None:
        return _complain(localize(text("acp.missing")))
    inlet, outlet = _take_stdio()
    asyncio.run(_serve(inlet, outlet, model))
    return 0


async def _serve(inlet: int, outlet: int, model: str) -> None:
    # Importing the library takes 400 ms, so only this command does it.
    from daiku.fronts.acp.agent import serve_client
    from daiku.fronts.acp.lines import Lines

    lines = Lines(inlet, outlet)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # Windows: the end of stdin ends it
            loop.add_signal_handler(number, lines.end)
    watching = asyncio.ensure_future(_watch(lines.end))
    try:
        await serve_client(lines, model)
    finally:
        watching.cancel()


async def _watch(on_parent_exit: Callable[[], None]) -> None:
    """Call `leave` when the parent process has ended; another process may hold its pipe open."""
    parent = os.getppid()
    while True:
        await asyncio.sleep(PARENT_SECONDS)
        if sys.platform != "win32" and os.getppid() != parent:
            on_parent_exit()
            return


def _take_stdio() -> tuple[int, int]:
    """Reserve stdin and stdout for the protocol; other code reads nothing and writes to stderr.

    Returns the file descriptors for reading and writing.
    """
    inlet, outlet = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    if sys.platform != "win32":
        for fd in (inlet, outlet):  # each is used by a blocking thread
            os.set_blocking(fd, True)
    return inlet, outlet


def _complain(message: str) -> int:
    sys.stderr.write(f"daiku: {message}\n")
    return USAGE

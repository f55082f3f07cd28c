"""Start of `daiku acp`: keep stdin and stdout for the protocol, say what is missing, serve until the client leaves."""

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
USAGE = 2


def main(argv: list[str]) -> int:
    """`daiku acp` with the arguments after it; the exit code."""
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
    # The library takes 400 ms to load, which no other command has to pay: it is loaded only here.
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


async def _watch(leave: Callable[[], None]) -> None:
    """Leave when the process that started us is gone: its pipe may be held open by another."""
    parent = os.getppid()
    while True:
        await asyncio.sleep(PARENT_SECONDS)
        if sys.platform != "win32" and os.getppid() != parent:
            leave()
            return


def _take_stdio() -> tuple[int, int]:
    """Keep stdin and stdout for the protocol: everybody else reads nothing and writes to stderr."""
    inlet, outlet = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    if sys.platform != "win32":
        for fd in (inlet, outlet):  # each has a thread that waits for it
            os.set_blocking(fd, True)
    return inlet, outlet


def _complain(message: str) -> int:
    sys.stderr.write(f"daiku: {message}\n")
    return USAGE

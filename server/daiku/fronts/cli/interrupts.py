"""Handlers of Ctrl-C and SIGTERM in the terminal."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

from daiku.fronts.cli.display.term import human_stream
from daiku.fronts.cli.main import CANCELLED
from daiku.texts.terminal import say

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def on_interrupt(handler: Callable[[], None]) -> Callable[[], None]:
    """Call `interrupted` in the running loop at each Ctrl-C and SIGTERM.

    Return a function that removes the handlers.
    """
    loop = asyncio.get_running_loop()
    try:
        for number in SIGNALS:
            loop.add_signal_handler(number, handler)
    except (NotImplementedError, RuntimeError):  # Windows, or not the main thread
        return lambda: None

    def restore() -> None:
        for number in SIGNALS:
            loop.remove_signal_handler(number)

    return restore


def stop_on_interrupt(stopped: asyncio.Event) -> Callable[[], None]:
    """Set `stopped` at the first Ctrl-C or SIGTERM and end the process at the second.

    Return a function that removes the handlers.
    """

    def handle() -> None:
        if stopped.is_set():
            os._exit(CANCELLED)
        human_stream().write(say("cancelling") + "\n")
        stopped.set()

    return on_interrupt(handle)

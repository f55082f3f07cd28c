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


def on_interrupt(interrupted: Callable[[], None]) -> Callable[[], None]:
    """Call `interrupted` in the running loop at each Ctrl-C and SIGTERM. Return what undoes this."""
    loop = asyncio.get_running_loop()
    try:
        for number in SIGNALS:
            loop.add_signal_handler(number, interrupted)
    except (NotImplementedError, RuntimeError):  # Windows, or not the main thread: KeyboardInterrupt does it
        return lambda: None

    def restore() -> None:
        for number in SIGNALS:
            loop.remove_signal_handler(number)

    return restore


def stop_on_interrupt(stopped: asyncio.Event) -> Callable[[], None]:
    """Set `stopped` at the first Ctrl-C or SIGTERM and end the process at the second. Return what undoes this."""

    def interrupted() -> None:
        if stopped.is_set():
            os._exit(CANCELLED)
        human_stream().write(say("cancelling") + "\n")
        stopped.set()

    return on_interrupt(interrupted)

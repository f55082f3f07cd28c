"""Ctrl-C and SIGTERM in the terminal: called instead of ending the process, until that is undone."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def on_interrupt(interrupted: Callable[[], None]) -> Callable[[], None]:
    """Call `interrupted` in the running loop at each Ctrl-C and SIGTERM. Answers what undoes this."""
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

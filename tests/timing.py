"""Processor time of a piece of work in this process, measured so that it says something of the work alone."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import process_time

GOES = 3
ENOUGH = 1.0
"""Seconds after which one more go tells nothing new."""


@contextmanager
def uncollected() -> Generator[None]:
    """Inside, the garbage collector waits: a full pass over what other tests left in the process is no part of the work."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def cpu_seconds(work: Callable[[], object]) -> float:
    """The least processor time that `work` took in a few goes, at least two: what else the machine and the process had to do
    only ever adds to it."""
    times: list[float] = []
    with uncollected():
        while len(times) < 2 or (len(times) < GOES and sum(times) < ENOUGH):
            began = process_time()
            work()
            times.append(process_time() - began)
    return min(times)

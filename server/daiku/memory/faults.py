"""A failing database as one sentence about the memory, not about conversations."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.store.sqlite import DatabaseFault, explain, fault_of
from daiku.texts.text import text


@contextmanager
def as_memory_fault(opening: str = "") -> Generator[None]:
    """Say of what fails inside that the memory cannot be used. `opening` names the file that is being opened: then a
    UsageError is raised."""
    try:
        yield
    except DatabaseFault as wrong:
        fault, cause = wrong.fault, wrong
    except OSError as wrong:
        fault, cause = fault_of(wrong), wrong
    else:
        return
    why, hint = explain(fault)
    if opening:
        message = text("store.unusable", path=opening, why=why)
        raise UsageError(Failure(kind="usage", message=message, hint=hint)) from cause
    raise DaikuError(Failure(kind="internal", message=text("memory.fault", why=why), hint=hint)) from cause

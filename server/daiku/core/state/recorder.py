"""The one place where a live run's state moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from daiku.core.state.fold import apply
from daiku.core.state.state import State
from daiku.domain.events import Event


class Recorder:
    """Each event goes to `write` (journal, then show), then to the state, then `after` is called where
    somebody wants to know."""

    __slots__ = ("_write", "after", "state")

    def __init__(self, state: State, write: Callable[[tuple[Event, ...]], Iterable[Event]]) -> None:
        self.state = state
        self.after: Callable[[], None] | None = None
        self._write = write

    def __call__(self, *events: Event) -> None:
        """Record `events` as one write; what was written (redacted) is what counts."""
        for event in self._write(events):
            self.state = apply(self.state, event)
        if self.after is not None:
            self.after()

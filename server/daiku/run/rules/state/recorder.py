"""Recorder of a run's events: written first, then folded into its state."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from daiku.domain.events import Event
from daiku.run.rules.state.fold import apply
from daiku.run.rules.state.state import State


class Recorder:
    """Sends each event to `write` (journal, then display), then folds it; then calls `after` with the state."""

    __slots__ = ("_after", "_write", "state")

    def __init__(
        self,
        state: State,
        write: Callable[[tuple[Event, ...]], Iterable[Event]],
        after: Callable[[State], None] | None = None,
    ) -> None:
        self.state = state
        self._write = write
        self._after = after

    def __call__(self, *events: Event) -> None:
        """Record `events` in one write; the written (redacted) events are folded."""
        for event in self._write(events):
            self.state = apply(self.state, event)
        if self._after is not None:
            self._after(self.state)

"""What a model said in a recorded run: its replies and its summaries, each with what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from daiku.domain.events import Event, MessageEvent
from daiku.domain.held import Compacted
from daiku.domain.messages import Usage


def summaries_of(events: Sequence[Event]) -> Iterator[tuple[str, Usage | None]]:
    """The summaries with what they cost; a reply's cost follows the reply, a summary's stands alone."""
    for place, event in enumerate(events):
        if isinstance(event, Compacted):
            paid, before = events[place - 1], events[max(place - 2, 0)]
            own = isinstance(paid, Usage) and not isinstance(before, MessageEvent)
            yield event.summary, Usage.model_validate(paid.model_dump()) if own else None


def replies_of(events: Sequence[Event]) -> Iterator[tuple[MessageEvent, Usage | None]]:
    """What the model said with what it cost; what broke off in the middle cost nothing that is known."""
    for event, following in pairwise([*events, None]):
        if isinstance(event, MessageEvent) and event.role == "assistant":
            yield event, following if isinstance(following, Usage) else None

"""The events of a session: named as on the wire."""

from __future__ import annotations

from daiku.domain import events
from daiku.domain.base import Wire
from daiku.domain.events import EVENTS, Event
from tests.cases import for_each

ALSO_VALUES = {"message", "tool_call", "plan", "checkpoint"}
"""Their nouns name values that exist without the event: the event's class says that it is one."""
FAILURE = "error"
"""The event is the value `Failure` itself: a class called Error reads as an exception."""


@for_each(("name", "event"), EVENTS.items())
def test_an_event_is_named_as_on_the_wire(name: str, event: type[Event]) -> None:
    noun = "".join(part.capitalize() for part in name.split("_"))
    expected = "Failure" if name == FAILURE else f"{noun}Event" if name in ALSO_VALUES else noun
    assert event.__name__ == expected


def test_every_event_that_is_written_is_in_the_table() -> None:
    written = [
        v for v in vars(events).values() if isinstance(v, type) and issubclass(v, Wire) and hasattr(v, "type")
    ]
    assert [event.__name__ for event in written if event not in EVENTS.values()] == []

"""The envelope of an event: what every chunk says of itself."""

from __future__ import annotations

import json
import re

from daiku.domain.chunks import Chunk, encode_event, iso_now
from daiku.domain.events import EVENTS, Delta, ToolCallEvent

EVENT = ToolCallEvent(id="c1", tool="files/read", args={"path": "a"})


def chunk(seq: int = 7) -> Chunk:
    return Chunk(seq, iso_now(), "s", "r", "coder", EVENT, encode_event(EVENT))


def test_a_chunk_says_when_who_what_and_in_which_place() -> None:
    """R1.68, R1.69, R1.70, R1.72: time, agent, type and number are in every chunk."""
    told = json.loads(chunk().json())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", told["time"])
    assert (told["agent"], told["type"], told["seq"]) == ("coder", "tool_call", 7)


def test_a_number_may_be_larger_than_javascripts() -> None:
    """C1.10, R1.72: the number is an unsigned one of 64 bits."""
    assert json.loads(chunk(2**64 - 1).json())["seq"] == 2**64 - 1


def test_the_data_of_a_chunk_is_structured() -> None:
    """R1.71: what an event brings is an object; what is not there is left out."""
    assert json.loads(chunk().json())["data"] == {"id": "c1", "tool": "files/read", "args": {"path": "a"}}
    assert json.loads(encode_event(Delta(text="a\n京"))) == {"text": "a\n京"}


def test_the_five_kinds_of_the_seed_are_there_and_others_besides() -> None:
    """C1.7, R1.70: delta, tool_call, tool_response, usage and error keep their names."""
    assert {"delta", "tool_call", "tool_response", "usage", "error"} <= set(EVENTS)

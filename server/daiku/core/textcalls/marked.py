"""A tool call found between markers, and parsing the JSON after an opening marker as calls."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from daiku.core.text.patterns import lazy
from daiku.core.textcalls.calljson import (
    JsonReply,
    read_value,
    values_from,
)
from daiku.core.textcalls.parsed_calls import OfferedTools, UnreadableCall, WrittenCall
from daiku.core.textcalls.problems import NO_TOOL, bad_arguments
from daiku.texts.text import NO_TEXT, Text


class MarkedCalls(NamedTuple):
    """Calls between marks, where they stand, and whether their closing mark was there."""

    start: int
    end: int
    calls: tuple[WrittenCall, ...]
    wrong: Text = NO_TEXT
    closed: bool = True


ReadCall: TypeAlias = Callable[[str, "re.Match[str]", OfferedTools], "MarkedCalls | None"]

_ENDS = lazy(
    r"(?:\s*(?:<\|(?:eom_id|eot_id|im_end|end|call|return|endoftext|/?tool_calls?|tool_call_end|END_ACTION"
    r"|action_end|tool_calls_section_end|end_of_text|tool_call_argument_end)\|>|</s>|<[｜|]end[▁_]of[▁_]sentence[｜|]>))*"
)
"""What templates put behind a call: it says nothing."""


def skip_closing_tokens(text: str, at: int) -> int:
    """Return the position after any closing tokens at `at`."""
    found = _ENDS.match(text, at)
    return found.end() if found else at


def json_calls(text: str, at: int, start: int) -> MarkedCalls | None:
    """Parse the JSON after an opening marker as calls."""
    found = values_from(text, at)
    if isinstance(found, UnreadableCall):
        return MarkedCalls(start, len(text), (), found.problem, closed=False)
    if not found.values:
        return None
    calls: list[WrittenCall] = []
    for value in found.values:
        said = read_value(value, own=False)
        if not isinstance(said, JsonReply):
            why = said.problem if isinstance(said, UnreadableCall) else NO_TOOL
            return MarkedCalls(start, found.end, (), why)
        calls += said.calls
    return MarkedCalls(start, found.end, tuple(calls))


def call_with_arguments(text: str, start: int, at: int, name: str) -> MarkedCalls:
    """A call whose name is known and whose arguments stand at `at`, in a block of code or not."""
    fence = re.compile(r"\s*```(?:json)?\s*").match(text, at)
    at = fence.end() if fence else at
    found = values_from(text, at)
    if isinstance(found, UnreadableCall):
        return MarkedCalls(start, len(text), (), found.problem, closed=False)
    args = found.values[0] if len(found.values) == 1 else None
    if not isinstance(args, dict):
        return MarkedCalls(start, max(found.end, at), (), bad_arguments(name))
    end = found.end
    if fence and (ended := re.compile(r"\s*```").match(text, end)):
        end = ended.end()
    return MarkedCalls(start, skip_closing_tokens(text, end), (WrittenCall(name, args),))

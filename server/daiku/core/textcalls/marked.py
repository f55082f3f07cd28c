"""A tool call found between markers, and parsing the JSON after an opening marker as calls."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from daiku.core.text.patterns import lazy
from daiku.core.textcalls.calljson import JsonReply, read_value, values_from
from daiku.core.textcalls.parsed_calls import OfferedTools, UnreadableCall, WrittenCall
from daiku.core.textcalls.problems import NO_TOOL, bad_arguments
from daiku.domain.base import JsonObject
from daiku.texts.text import NO_TEXT, Text


class MarkedCalls(NamedTuple):
    """Calls between marks, where they stand, and whether their closing mark was there."""

    start: int
    end: int
    calls: tuple[WrittenCall, ...]
    wrong: Text = NO_TEXT
    closed: bool = True
    named: bool = True
    """False if what stands there names no tool: it may be data."""


ReadCall: TypeAlias = Callable[[str, "re.Match[str]", OfferedTools], "MarkedCalls | None"]

_ENDS = lazy(
    r"(?:\s*(?:<\|(?:eom_id|eot_id|im_end|end|call|return|endoftext|/?tool_calls?|tool_call_end|END_ACTION"
    r"|action_end|tool_calls_section_end|end_of_text|tool_call_argument_end)\|>|</s>|<[｜|]end[▁_]of[▁_]sentence[｜|]>|<[｜|]tool[▁_]calls?[▁_]end[｜|]>))*"
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
        said = read_value(value, own=False, marked=True)
        if not isinstance(said, JsonReply):
            why = said.problem if isinstance(said, UnreadableCall) else NO_TOOL
            return MarkedCalls(start, found.end, (), why, named=isinstance(said, UnreadableCall))
        calls += said.calls
    return MarkedCalls(start, found.end, tuple(calls))


_REST_BLANK = lazy(r"\s*\Z")
_EMPTY = lazy(r"\s*(?:\{\s*\}|\[\s*\]|null\b|None\b|\"(?:\s*\{\s*\})?\s*\")")


class Arguments(NamedTuple):
    """The arguments of a call and the position after them."""

    args: JsonObject
    end: int


def read_arguments(text: str, at: int, name: str) -> Arguments | UnreadableCall:
    """Read the arguments at `at` of a call to `name`: one object, which may be empty."""
    if empty := _EMPTY.match(text, at):
        return Arguments({}, empty.end())
    found = values_from(text, at)
    if isinstance(found, UnreadableCall):
        return found
    args = found.values[0] if len(found.values) == 1 else None
    return Arguments(args, found.end) if isinstance(args, dict) else UnreadableCall(bad_arguments(name))


def call_with_arguments(text: str, start: int, at: int, name: str, offered: OfferedTools) -> MarkedCalls:
    """Parse the arguments at `at` of a call whose name is known, in a block of code or not.

    Missing arguments count as empty before a closing token or the next call. At the end of the text they do so only
    for a tool without parameters, because the reply may have been cut off.
    """
    fence = re.compile(r"\s*```(?:json)?(?=\s)\s*").match(text, at)
    at = fence.end() if fence else at
    closed = skip_closing_tokens(text, at)
    if closed > at or text.startswith("[TOOL_CALLS]", at) or (fence and text.startswith("```", at)):
        found = Arguments({}, at)
    elif _REST_BLANK.match(text, at) and offered.takes_nothing(name):
        found = Arguments({}, len(text))
    else:
        found = read_arguments(text, at, name)
    if isinstance(found, UnreadableCall):
        return MarkedCalls(start, len(text), (), found.problem, closed=False)
    end = found.end
    if fence and (ended := re.compile(r"\s*```").match(text, end)):
        end = ended.end()
    return MarkedCalls(start, skip_closing_tokens(text, end), (WrittenCall(name, found.args),))

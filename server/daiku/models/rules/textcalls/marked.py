"""Calls between marks, and reading JSON, Python or arguments that stand behind one."""

from __future__ import annotations

from typing import NamedTuple

from daiku.domain.base import JsonObject
from daiku.models.rules.textcalls.calljson import (
    JsonReply,
    python_calls,
    read_value,
    values_from,
    whole_values,
)
from daiku.models.rules.textcalls.parsed_calls import OfferedTools, UnreadableCall, WrittenCall
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import NO_TEXT, Text, text


class MarkedCalls(NamedTuple):
    """Calls between marks, and where they stand."""

    start: int
    end: int
    calls: tuple[WrittenCall, ...]
    wrong: Text = NO_TEXT
    named: bool = True
    """False if the marked text names no tool: it may be data."""
    token: bool = False
    """The mark is a special token, which nobody writes by chance."""


_ENDS = lazy(
    r"(?:\s*(?:<\|(?:eom_id|eot_id|im_end|end|call|return|endoftext|/?tool_calls?|tool_call_end|END_ACTION"
    r"|action_end|tool_calls_section_end|end_of_text|tool_call_argument_end)\|>|</s>|<[｜|]end[▁_]of[▁_]sentence[｜|]>|<[｜|]tool[▁_]calls?[▁_]end[｜|]>))*"
)
"""What templates put behind a call: it says nothing."""
_REST_BLANK = lazy(r"\s*\Z")
_EMPTY = lazy(r"\s*(?:\{\s*\}|\[\s*\]|null\b|None\b|\"(?:\s*\{\s*\})?\s*\")")
_FENCE = lazy(r"\s*```(?:json)?(?=\s)\s*")
_FENCE_END = lazy(r"\s*```")


def skip_closing_tokens(text: str, at: int) -> int:
    """Return the position after any closing tokens at `at`."""
    found = _ENDS.match(text, at)
    return found.end() if found else at


def json_calls(reply: str, at: int, start: int) -> MarkedCalls | None:
    """Parse the JSON after an opening mark as calls, in a block of code or not; None if there is none."""
    fence = _FENCE.match(reply, at)
    found = values_from(reply, fence.end() if fence else at)
    if isinstance(found, UnreadableCall):
        return MarkedCalls(start, len(reply), (), found.problem)
    if not found.values:
        return None
    calls: list[WrittenCall] = []
    for value in found.values:
        said = read_value(value, own=False, marked=True)
        if not isinstance(said, JsonReply):
            why = said.problem if isinstance(said, UnreadableCall) else text("calls.no_tool")
            return MarkedCalls(start, found.end, (), why, isinstance(said, UnreadableCall))
        calls += said.calls
    closing = _FENCE_END.match(reply, found.end) if fence else None
    if fence and closing is None:
        return None
    return MarkedCalls(
        start, skip_closing_tokens(reply, closing.end() if closing else found.end), tuple(calls)
    )


def other_calls(body: str) -> tuple[WrittenCall, ...]:
    """Return the calls that a text between marks makes as Python, or as JSON that needs repair."""
    if calls := python_calls(body):
        return calls
    values = whole_values(body)
    if values is None or isinstance(values, UnreadableCall):
        return ()
    said = [read_value(value, own=False, marked=True) for value in values.values]
    return tuple(call for each in said if isinstance(each, JsonReply) for call in each.calls)


class Arguments(NamedTuple):
    """The arguments of a call and the position after them."""

    args: JsonObject
    end: int


def read_arguments(reply: str, at: int, name: str) -> Arguments | UnreadableCall:
    """Read the arguments at `at` of a call to `name`: one object, which may be empty."""
    if empty := _EMPTY.match(reply, at):
        return Arguments({}, empty.end())
    found = values_from(reply, at)
    if isinstance(found, UnreadableCall):
        return found
    args = found.values[0] if len(found.values) == 1 else None
    if isinstance(args, dict):
        return Arguments(args, found.end)
    return UnreadableCall(text("calls.bad_arguments", name=name))


def arguments_of(reply: str, at: int, name: str, offered: OfferedTools) -> Arguments | UnreadableCall:
    """Read the arguments at `at` of a call whose name is known, in a block of code or not.

    Missing ones count as empty before a closing token or the next call; at the end, where the reply may be cut off,
    only for a tool without parameters.
    """
    fence = _FENCE.match(reply, at)
    at = fence.end() if fence else at
    closed = skip_closing_tokens(reply, at)
    if closed > at or reply.startswith("[TOOL_CALLS]", at) or (fence and reply.startswith("```", at)):
        found = Arguments({}, at)
    elif _REST_BLANK.match(reply, at) and offered.takes_nothing(name):
        found = Arguments({}, len(reply))
    else:
        found = read_arguments(reply, at, name)
    if isinstance(found, UnreadableCall):
        return found
    closing = _FENCE_END.match(reply, found.end) if fence else None
    return Arguments(found.args, skip_closing_tokens(reply, closing.end() if closing else found.end))

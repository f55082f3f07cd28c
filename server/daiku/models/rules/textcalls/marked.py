"""Parsers for calls between marks: JSON, Python, or arguments after a mark."""

from __future__ import annotations

from typing import NamedTuple

from daiku.domain.base import JsonObject
from daiku.models.rules.textcalls.calljson import (
    JsonReply,
    parse_complete,
    parse_python_calls,
    parse_values,
    read_value,
)
from daiku.models.rules.textcalls.parsed_calls import OfferedTools, UnreadableCall, WrittenCall
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import NO_TEXT, Text, text


class MarkedCalls(NamedTuple):
    """Calls between marks, and their position."""

    start: int
    end: int
    calls: tuple[WrittenCall, ...]
    problem: Text = NO_TEXT
    named: bool = True
    """False if the marked text names no tool, so that it may be data."""
    token: bool = False
    """True if the mark is a special token, which does not occur by chance."""


_ENDS = lazy(
    r"(?:\s*(?:<\|(?:eom_id|eot_id|im_end|end|call|return|endoftext|/?tool_calls?|tool_call_end|END_ACTION"
    r"|action_end|tool_calls_section_end|end_of_text|tool_call_argument_end)\|>|</s>|<[｜|]end[▁_]of[▁_]sentence[｜|]>|<[｜|]tool[▁_]calls?[▁_]end[｜|]>))*"
)
"""Closing tokens that templates write after a call."""
_REST_BLANK = lazy(r"\s*\Z")
_EMPTY = lazy(r"\s*(?:\{\s*\}|\[\s*\]|null\b|None\b|\"(?:\s*\{\s*\})?\s*\")")
_FENCE = lazy(r"\s*```(?:json)?(?=\s)\s*")
_FENCE_END = lazy(r"\s*```")


def skip_closing_tokens(text: str, at: int) -> int:
    """Return the position after any closing tokens at `at`."""
    match = _ENDS.match(text, at)
    return match.end() if match else at


def parse_json_calls(reply: str, at: int, start: int) -> MarkedCalls | None:
    """Parse the JSON after an opening mark as calls, optionally in a code block; None if there is none."""
    fence = _FENCE.match(reply, at)
    parsed = parse_values(reply, fence.end() if fence else at)
    if isinstance(parsed, UnreadableCall):
        return MarkedCalls(start, len(reply), (), parsed.problem)
    if not parsed.values:
        return None
    calls: list[WrittenCall] = []
    for value in parsed.values:
        value_reply = read_value(value, text_protocol=False, marked=True)
        if not isinstance(value_reply, JsonReply):
            reason = value_reply.problem if isinstance(value_reply, UnreadableCall) else text("calls.no_tool")
            return MarkedCalls(start, parsed.end, (), reason, isinstance(value_reply, UnreadableCall))
        calls += value_reply.calls
    closing = _FENCE_END.match(reply, parsed.end) if fence else None
    if fence and closing is None:
        return None
    return MarkedCalls(
        start, skip_closing_tokens(reply, closing.end() if closing else parsed.end), tuple(calls)
    )


def parse_other_calls(body: str) -> tuple[WrittenCall, ...]:
    """Parse a text between marks as Python calls, or as JSON that needs repair."""
    if calls := parse_python_calls(body):
        return calls
    values = parse_complete(body)
    if values is None or isinstance(values, UnreadableCall):
        return ()
    replies = [read_value(value, text_protocol=False, marked=True) for value in values.values]
    return tuple(
        call for value_reply in replies if isinstance(value_reply, JsonReply) for call in value_reply.calls
    )


class Arguments(NamedTuple):
    """Arguments of a call, and the position after them."""

    args: JsonObject
    end: int


def read_arguments(reply: str, at: int, name: str) -> Arguments | UnreadableCall:
    """Read the arguments at `at` of a call to `name`: one object, which may be empty."""
    if empty := _EMPTY.match(reply, at):
        return Arguments({}, empty.end())
    parsed = parse_values(reply, at)
    if isinstance(parsed, UnreadableCall):
        return parsed
    args = parsed.values[0] if len(parsed.values) == 1 else None
    if isinstance(args, dict):
        return Arguments(args, parsed.end)
    return UnreadableCall(text("calls.bad_arguments", name=name))


def read_named_arguments(reply: str, at: int, name: str, offered: OfferedTools) -> Arguments | UnreadableCall:
    """Read the arguments at `at` of a call whose name is known, optionally in a code block.

    Missing ones count as empty before a closing token or the next call; at the end, where the reply may be cut off,
    only for a tool without parameters.
    """
    fence = _FENCE.match(reply, at)
    at = fence.end() if fence else at
    after_tokens = skip_closing_tokens(reply, at)
    if after_tokens > at or reply.startswith("[TOOL_CALLS]", at) or (fence and reply.startswith("```", at)):
        arguments = Arguments({}, at)
    elif _REST_BLANK.match(reply, at) and offered.has_no_parameters(name):
        arguments = Arguments({}, len(reply))
    else:
        arguments = read_arguments(reply, at, name)
    if isinstance(arguments, UnreadableCall):
        return arguments
    closing = _FENCE_END.match(reply, arguments.end) if fence else None
    return Arguments(arguments.args, skip_closing_tokens(reply, closing.end() if closing else arguments.end))

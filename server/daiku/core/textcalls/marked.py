"""A call found between marks, and the JSON behind an opening mark read as calls."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from daiku.core.text.patterns import lazy
from daiku.core.textcalls.calljson import (
    Said,
    said_in,
    values_from,
)
from daiku.core.textcalls.problems import NO_TOOL
from daiku.core.textcalls.written import Offered, Written, Wrong


class Marked(NamedTuple):
    """Calls between marks, where they stand, and whether their closing mark was there."""

    start: int
    end: int
    calls: tuple[Written, ...]
    wrong: str = ""
    closed: bool = True


ReadCall: TypeAlias = Callable[[str, "re.Match[str]", Offered], "Marked | None"]

_ENDS = lazy(
    r"(?:\s*(?:<\|(?:eom_id|eot_id|im_end|end|call|return|endoftext|/?tool_calls?|tool_call_end|END_ACTION"
    r"|action_end|tool_calls_section_end|end_of_text|tool_call_argument_end)\|>|</s>|<[｜|]end[▁_]of[▁_]sentence[｜|]>))*"
)
"""What templates put behind a call: it says nothing."""


def after_ends(text: str, at: int) -> int:
    """The place behind the closing tokens that stand at `at`."""
    found = _ENDS.match(text, at)
    return found.end() if found else at


def json_calls(text: str, at: int, start: int) -> Marked | None:
    """JSON that follows an opening mark, as far as it goes."""
    found = values_from(text, at)
    if isinstance(found, Wrong):
        return Marked(start, len(text), (), found.problem, closed=False)
    if not found.values:
        return None
    calls: list[Written] = []
    for value in found.values:
        said = said_in(value, own=False)
        if not isinstance(said, Said):
            why = said.problem if isinstance(said, Wrong) else NO_TOOL
            return Marked(start, found.end, (), why)
        calls += said.calls
    return Marked(start, found.end, tuple(calls))


def call_with_arguments(text: str, start: int, at: int, name: str) -> Marked:
    """A call whose name is known and whose arguments stand at `at`, in a block of code or not."""
    fence = re.compile(r"\s*```(?:json)?\s*").match(text, at)
    at = fence.end() if fence else at
    found = values_from(text, at)
    if isinstance(found, Wrong):
        return Marked(start, len(text), (), found.problem, closed=False)
    args = found.values[0] if len(found.values) == 1 else None
    if not isinstance(args, dict):
        return Marked(start, max(found.end, at), (), f"the arguments of {name} are no JSON object")
    end = found.end
    if fence and (ended := re.compile(r"\s*```").match(text, end)):
        end = ended.end()
    return Marked(start, after_ends(text, end), (Written(name, args),))

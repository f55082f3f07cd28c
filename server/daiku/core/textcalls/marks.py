"""The table of every mark that open models put around calls, and how the call behind each is read."""

from __future__ import annotations

import re
from typing import NamedTuple

from daiku.core.textcalls.marked import MarkedCalls, ReadCall, call_with_arguments, json_calls
from daiku.core.textcalls.parsed_calls import PLAIN_TAGS, OfferedTools
from daiku.core.textcalls.tagcalls import (
    parse_bare_calls,
    parse_plain_tag,
    parse_tagged_calls,
    parse_tool_tag,
)
from daiku.core.textcalls.tokencalls import (
    parse_deepseek,
    parse_harmony,
    parse_kimi,
    parse_mistral,
    parse_token_call,
)


def _react(text: str, match: re.Match[str], offered: OfferedTools) -> MarkedCalls | None:
    """`Action: a tool`, `Action Input: {…}`; or `Action:` and a block with a list of calls."""
    fence = re.compile(r"[ \t]*```(?:json)?\s*").match(text, match.end())
    if fence:
        found = json_calls(text, fence.end(), match.start())
        ended = re.compile(r"\s*```").match(text, found.end) if found and not found.wrong else None
        return found._replace(end=ended.end()) if found and ended else None
    named = re.compile(
        r"[ \t]*`?([\w./-]+)`?[ \t]*\n+[ \t]*Action Input:(?=[ \t]*(?:```(?:json)?)?\s*(?:\{|null\b|None\b|\Z))"
    ).match(text, match.end())
    return named and call_with_arguments(text, match.start(), named.end(), named[1], offered)


class Format(NamedTuple):
    """How one family of marks begins. `token`: a special token, which nobody writes by chance; `line`:
    it counts at the start of a line only."""

    begins: str
    read: ReadCall
    token: bool = False
    line: bool = False


_CONTAINERS = r"<(?:tool_calls?|TOOLCALL|function_calls?|functioncalls?|(?:minimax|seed|mm):tool_call|[｜|]DSML[｜|]function_calls)>"
FORMATS: tuple[Format, ...] = (
    Format(_CONTAINERS, parse_tagged_calls),
    Format(r"<function(?:=|\s+name=)[\"']?[^>\"'\s]+[\"']?\s*>", parse_bare_calls),
    Format(r"<(?:[｜|]DSML[｜|])?invoke\s+name=[\"'][^\"'>]+[\"']\s*>", parse_bare_calls),
    Format(
        r"<\|python_tag\|>|<\|tool_call(?:_start)?\|>|<\|action_start\|>\s*<\|plugin\|>|<\|START_ACTION\|>",
        parse_token_call,
        token=True,
    ),
    Format(r"\[TOOL_CALLS\]", parse_mistral, token=True),
    Format(r"functools(?=\[\s*\{)", parse_token_call, line=True),
    Format(r"<[｜|]tool[▁_]calls?[▁_]begin[｜|]>", parse_deepseek, token=True),
    Format(r"<\|tool_calls_section_begin\|>|<\|tool_call_begin\|>", parse_kimi, token=True),
    Format(
        r"(?:<\|start\|>assistant[^<\n]{0,100})?<\|channel\|>(?:commentary|analysis)(?=[^<\n]{0,100}(?:<\|constrain\|>\w+)?\s*<\|message\|>)",
        parse_harmony,
        token=True,
    ),
    Format(r"Action:(?=[ \t]*(?:```|`?[\w./-]+`?[ \t]*\n))", _react, line=True),
    Format(rf"<(?:{'|'.join(PLAIN_TAGS)})>(?=\s*[\[{{])", parse_plain_tag, line=True),
    Format(r"<(?P<name>[a-z][\w./-]*)>(?=\s*[<{])", parse_tool_tag, line=True),
)
"""Every family of marks; the first that fits at a place is read."""

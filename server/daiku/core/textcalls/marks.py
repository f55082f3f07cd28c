"""The table of every mark that open models put around calls, and the reader of the calls behind one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from daiku.core.text.patterns import lazy
from daiku.core.textcalls.calljson import may_be_python_calls, python_calls
from daiku.core.textcalls.marked import MarkedCalls, arguments_of, json_calls
from daiku.core.textcalls.parsed_calls import PLAIN_TAGS, OfferedTools, UnreadableCall, WrittenCall, bare_name
from daiku.core.textcalls.tagcalls import read_bare_tags, read_tag
from daiku.texts.text import text

_CONTAINERS = r"<(?:tool_calls?|TOOLCALL|function_calls?|functioncalls?|(?:minimax|seed|mm):tool_call|[｜|]DSML[｜|]function_calls)>"
_HARMONY = r"(?:<\|start\|>assistant[^<\n]{0,100})?<\|channel\|>(?:commentary|analysis)"
_HARMONY_HEAD = r"(?:[^<]|<\|(?:start|channel|constrain)\|>){0,300}?"
_REACT = lazy(
    r"[ \t]*Action:[ \t]*`?(?P<name>[\w./-]+)`?[ \t]*\n+[ \t]*Action Input:"
    r"(?=[ \t]*(?:```(?:json)?)?\s*(?:\{|null\b|None\b|\Z))"
)
_TOKEN_END = lazy(r"<\|(?:tool_call_end|END_ACTION|/tool_call)\|>")

ReadTag: TypeAlias = Callable[[str, "re.Match[str]", OfferedTools], MarkedCalls | None]


class Format(NamedTuple):
    """One family of marks.

    `begins` matches the mark. `head` matches it, or the mark before each call, up to the arguments, with the tool as
    group `name`. `without_head`: where that does not match, calls are JSON or Python, what stands there is wrong, or it
    is only text. `tag`: the mark is a tag, which this reads. `token`: a special token, which nobody writes by chance.
    `line`: it counts at the start of a line only. `data`: it may hold data that names no tool.
    """

    begins: str
    head: re.Pattern[str] | None = None
    tag: ReadTag | None = None
    without_head: Literal["values", "wrong", "text"] = "values"
    token: bool = False
    line: bool = False
    data: bool = False


FORMATS: tuple[Format, ...] = (
    Format(_CONTAINERS, tag=read_tag),
    Format(r"<function(?:=|\s+name=)[\"']?[^>\"'\s]+[\"']?\s*>", tag=read_bare_tags),
    Format(r"<(?:[｜|]DSML[｜|])?invoke\s+name=[\"'][^\"'>]+[\"']\s*>", tag=read_bare_tags),
    Format(
        r"<\|python_tag\|>|<\|tool_call(?:_start)?\|>|<\|action_start\|>\s*<\|plugin\|>|<\|START_ACTION\|>",
        token=True,
    ),
    Format(
        r"\[TOOL_CALLS\]",
        lazy(
            r"\[TOOL_CALLS\]\s*(?P<name>[\w./-]+)\s*(?:\[CALL_ID\]\s*[\w-]+\s*)?(?:\[ARGS\])?"
            r"\s*(?=\{|null\b|\[TOOL_CALLS\]|</s>|\Z)"
        ),
        token=True,
    ),
    Format(r"functools(?=\[\s*\{)", line=True),
    Format(
        r"<[｜|]tool[▁_]calls?[▁_]begin[｜|]>",
        lazy(
            r"\s*<[｜|]tool[▁_]call[▁_]begin[｜|]>"
            r"(?:function<[｜|]tool[▁_]sep[｜|]>)?(?P<name>[^<\n]+?)"
            r"(?:<[｜|]tool[▁_]sep[｜|]>|\n|(?=<[｜|]tool[▁_]call[▁_]end[｜|]>))"
        ),
        token=True,
        without_head="wrong",
    ),
    Format(
        r"<\|tool_calls_section_begin\|>|<\|tool_call_begin\|>",
        lazy(
            r"\s*<\|tool_call_begin\|>\s*(?P<name>[^<\s]+)\s*"
            r"(?:<\|tool_call_argument_begin\|>|(?=<\|tool_call_end\|>))"
        ),
        token=True,
        without_head="wrong",
    ),
    Format(
        rf"{_HARMONY}(?=[^<\n]{{0,100}}(?:<\|constrain\|>\w+)?\s*<\|message\|>)",
        lazy(rf"(?={_HARMONY})(?={_HARMONY_HEAD}to=(?P<name>[^\s<]+)){_HARMONY_HEAD}<\|message\|>"),
        without_head="text",
        token=True,
    ),
    Format(r"Action:(?=[ \t]*(?:```|`?[\w./-]+`?[ \t]*\n))", _REACT, line=True, data=True),
    Format(rf"<(?:{'|'.join(PLAIN_TAGS)})>(?=\s*[\[{{])", tag=read_tag, line=True, data=True),
    Format(r"<(?P<name>[a-z][\w./-]*)>(?=\s*[<{])", tag=read_bare_tags, line=True),
)
"""Every family of marks; the first that fits at a place is read."""


def read_calls(reply: str, match: re.Match[str], form: Format, offered: OfferedTools) -> MarkedCalls | None:
    """Read the calls of a mark; None if there are none."""
    if form.tag is not None:
        found = form.tag(reply, match, offered)
    else:
        found = _read_headed(reply, match, form, offered)
        if found is None and form.without_head == "wrong":
            return MarkedCalls(match.start(), len(reply), (), text("calls.none_behind_mark"))
        if found is None and form.without_head == "values":
            found = _read_values(reply, match)
    return None if found is not None and form.data and not found.named else found


def _read_headed(reply: str, match: re.Match[str], form: Format, offered: OfferedTools) -> MarkedCalls | None:
    """Read calls with their names before their arguments; several in a section that only holds calls."""
    if form.head is None:
        return None
    start, calls = match.start(), list[WrittenCall]()
    opened = form.head.match(reply, start) or form.head.match(reply, match.end())
    at = start
    while opened:
        name = bare_name(opened["name"])
        found = arguments_of(reply, opened.end(), name, offered)
        if isinstance(found, UnreadableCall):
            return MarkedCalls(start, len(reply), (), found.problem)
        calls.append(WrittenCall(name, found.args))
        at = found.end
        opened = form.head.match(reply, at) if form.without_head == "wrong" else None
    return MarkedCalls(start, at, tuple(calls)) if calls else None


def _read_values(reply: str, match: re.Match[str]) -> MarkedCalls | None:
    """Read any number of calls as JSON, or as Python up to a closing token."""
    found = json_calls(reply, match.end(), match.start())
    if (found is None or found.wrong) and may_be_python_calls(reply, match.end()):
        end = _TOKEN_END.search(reply, match.end())
        if calls := python_calls(reply[match.end() : end.start() if end else len(reply)]):
            return MarkedCalls(match.start(), end.end() if end else len(reply), calls)
    return found

"""Table of the marks that open models write around calls, and readers for the calls after a mark."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from daiku.models.rules.textcalls.calljson import may_be_python_calls, parse_python_calls
from daiku.models.rules.textcalls.marked import (
    MarkedCalls,
    parse_json_calls,
    parse_other_calls,
    read_arguments,
    read_named_arguments,
)
from daiku.models.rules.textcalls.parsed_calls import (
    PLAIN_TAGS,
    OfferedTools,
    UnreadableCall,
    WrittenCall,
    parse_object,
    strip_decoration,
)
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import NO_TEXT, Text, text

_DSML = r"(?:[｜|]DSML[｜|])?"
_INVOCATION = lazy(rf"<{_DSML}(?P<kind>function|invoke)(?:=|\s+name=)[\"']?(?P<name>[^>\"'\s]+)[\"']?\s*>")
_PARAMETER = lazy(
    rf"<{_DSML}parameter(?:=|\s+name=)[\"']?(?P<name>[^>\"'\s]+)[\"']?(?:\s+string=\"(?P<text>\w+)\")?\s*>"
)
_PARAMETER_END = lazy(
    rf"\n?</{_DSML}parameter\s*>(?=\s*(?:<{_DSML}/?(?:parameter|function|invoke|[\w:]*tool_call|[｜|]DSML[｜|])|</|\Z))"
)
_PAIR = lazy(r"<arg_key>\s*(.*?)\s*</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)
_NAMED = lazy(r"\s*([\w./:-]+)\s*(\{.*\})\s*$", re.DOTALL)
_CHILD = lazy(r"\s*<([A-Za-z_]\w*)>")


class _Invocations(NamedTuple):
    """Consecutive calls, their end, and the problem of the next one."""

    calls: tuple[WrittenCall, ...]
    end: int
    problem: Text = NO_TEXT


def _read_tag(reply: str, match: re.Match[str], offered: OfferedTools) -> MarkedCalls | None:
    """Read the calls inside `<tool_call>…</tool_call>` and similar tags: JSON, invocations, a name, or Python."""
    start, at = match.span()
    tag = match[0].strip(" \t<>")
    closing = re.compile(rf"\s*</{re.escape(tag)}\s*>", re.IGNORECASE)
    marked = parse_json_calls(reply, at, start)
    if marked is None:
        calls, end, problem = _read_invocations(reply, at, offered)
        marked = MarkedCalls(start, end, calls, problem) if calls or problem else None
    if marked and not marked.problem:
        close_match = closing.match(reply, marked.end)
        return marked._replace(end=close_match.end()) if close_match else marked
    close_match = closing.search(reply, at)
    body = reply[at : close_match.start()] if close_match else reply[at:]
    end = close_match.end() if close_match else len(reply)
    is_list = body.lstrip().startswith(("{", "["))
    calls = parse_other_calls(body) if is_list else _read_named(body, offered) if close_match else ()
    if calls:
        return MarkedCalls(start, end, calls)
    if marked or is_list:
        return marked and marked._replace(end=end)
    problem = text("calls.none_in_tags") if close_match else text("calls.no_closing", tag=tag)
    return MarkedCalls(start, end, (), problem)


def _read_named(body: str, offered: OfferedTools) -> tuple[WrittenCall, ...]:
    """Read a name followed by its arguments, as pairs of tags or as JSON."""
    name = body.partition("<arg_key>")[0].strip()
    pairs = _PAIR.findall(body)
    if pairs or re.fullmatch(r"[\w./:-]+", body.strip()):
        return (WrittenCall(name, offered.parse_texts(name, dict(pairs), loose=True)),)
    match = _NAMED.match(body)
    args = parse_object(match[2]) if match else None
    return (WrittenCall(match[1], args),) if match and args is not None else ()


def _read_bare_tags(reply: str, match: re.Match[str], offered: OfferedTools) -> MarkedCalls | None:
    """Read `<function=…>`, `<invoke …>`, or `<a_tool>…</a_tool>` for a tool on offer, without a surrounding tag."""
    name = match["name"]
    if not name:
        calls, end, problem = _read_invocations(reply, match.start(), offered)
        return MarkedCalls(match.start(), end, calls, problem) if calls or problem else None
    if not offered.specs or offered.resolve(name) is None:
        return None
    invocations = _read_children(reply, match.end(), name, offered)
    return invocations and MarkedCalls(match.start(), invocations.end, invocations.calls, invocations.problem)


def _read_children(reply: str, at: int, name: str, offered: OfferedTools) -> _Invocations | None:
    """Read `<path>…</path></a_tool>` or `{…}</a_tool>`; None if it is not a call."""
    closing = re.compile(rf"\s*</{re.escape(name)}>")
    if reply.startswith("{", _skip_blanks(reply, at)):
        return _read_object(reply, at, name, closing, required=True)
    texts: dict[str, str] = {}
    while open_match := _CHILD.match(reply, at):
        close_match = re.compile(rf"\n?</{open_match[1]}>(?=\s*<)").search(reply, open_match.end())
        if close_match is None:
            return _Invocations((), len(reply), text("calls.tag_without_end", tag=open_match[1]))
        texts[open_match[1]] = reply[open_match.end() : close_match.start()].removeprefix("\n")
        at = close_match.end()
    end = closing.match(reply, at)
    return end and _Invocations((WrittenCall(name, offered.parse_texts(name, texts)),), end.end())


def _read_object(
    reply: str, at: int, name: str, closing: re.Pattern[str], *, required: bool = False
) -> _Invocations:
    """Read the arguments of one call as JSON, and its closing tag."""
    arguments = read_arguments(reply, at, name)
    if isinstance(arguments, UnreadableCall):
        return _Invocations((), len(reply), arguments.problem)
    end = closing.match(reply, arguments.end)
    if end is None and required:
        return _Invocations((), len(reply), text("calls.no_closing", tag=name))
    return _Invocations((WrittenCall(name, arguments.args),), end.end() if end else arguments.end)


def _read_invocations(reply: str, at: int, offered: OfferedTools) -> _Invocations:
    """Read every `<function=…>` or `<invoke name=…>` from `at` on."""
    calls: list[WrittenCall] = []
    while open_match := _INVOCATION.match(reply, _skip_blanks(reply, at)):
        invocation = _read_invocation(reply, open_match, offered)
        if invocation.problem:
            return _Invocations(tuple(calls), len(reply), invocation.problem)
        calls += invocation.calls
        at = invocation.end
    return _Invocations(tuple(calls), at)


def _read_invocation(reply: str, open_match: re.Match[str], offered: OfferedTools) -> _Invocations:
    name, kind, at = open_match["name"], open_match["kind"], open_match.end()
    closing = re.compile(rf"\s*</{_DSML}{kind}\s*>")
    if reply.startswith("{", _skip_blanks(reply, at)):
        return _read_object(reply, at, name, closing)
    texts: dict[str, str] = {}
    raw_names: set[str] = set()
    ends, opens, closes = (_LazySearch(pattern, reply) for pattern in (_PARAMETER_END, _PARAMETER, closing))
    while parameter := _PARAMETER.match(reply, _skip_blanks(reply, at)):
        value_end = _find_value_end(reply, parameter.end(), ends, opens, closes)
        if value_end is None:
            return _Invocations((), len(reply), text("calls.without_end", name=parameter["name"]))
        until, at = value_end
        texts[parameter["name"]] = reply[parameter.end() : until].removeprefix("\n")
        if parameter["text"] == "false":
            raw_names.add(parameter["name"])
    close_match = closing.match(reply, at)
    if close_match is None:
        return _Invocations((), len(reply), text("calls.no_closing", tag=kind))
    args = offered.parse_texts(name, texts)
    args.update(offered.parse_texts(name, {key: texts[key] for key in raw_names}, loose=True))
    return _Invocations((WrittenCall(name, args),), close_match.end())


def _skip_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


class _LazySearch:
    """Search for the next match of a pattern from increasing positions; a distant match is searched only once."""

    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        self._pattern, self._text = pattern, text
        self._match: re.Match[str] | None = None
        self._has_searched = False

    def __call__(self, at: int) -> re.Match[str] | None:
        if not self._has_searched or (self._match and self._match.start() < at):
            self._match, self._has_searched = self._pattern.search(self._text, at), True
        return self._match


def _find_value_end(
    text: str, at: int, ends: _LazySearch, opens: _LazySearch, closes: _LazySearch
) -> tuple[int, int] | None:
    """Return the end of a parameter's text and the start of what follows, at its closing tag or else the next tag."""
    close_match, next_open, last_close = ends(at), opens(at), closes(at)
    if (close_match and (not last_close or close_match.start() < last_close.start())) or (
        close_match and next_open and close_match.end() <= next_open.start()
    ):
        return close_match.start(), close_match.end()
    if next_open and (not last_close or next_open.start() < last_close.start()):
        end = next_open.start()
        return end - text.endswith("\n", 0, end), end
    return (last_close.start(), last_close.start()) if last_close else None


_CONTAINERS = r"<(?:tool_calls?|TOOLCALL|function_calls?|functioncalls?|(?:minimax|seed|mm):tool_call|[｜|]DSML[｜|]function_calls)>"
_HARMONY = r"(?:<\|start\|>assistant[^<\n]{0,100})?<\|channel\|>(?:commentary|analysis)"
_HARMONY_HEAD = r"(?:[^<]|<\|(?:start|channel|constrain)\|>){0,300}?"
_REACT = lazy(
    r"[ \t]*Action:[ \t]*`?(?P<name>[\w./-]+)`?[ \t]*\n+[ \t]*Action Input:"
    r"(?=[ \t]*(?:```(?:json)?)?\s*(?:\{|null\b|None\b|\Z))"
)
_TOKEN_END = lazy(r"<\|(?:tool_call_end|END_ACTION|/tool_call)\|>")

ReadTag: TypeAlias = Callable[[str, "re.Match[str]", OfferedTools], MarkedCalls | None]


class MarkFormat(NamedTuple):
    """One family of marks.

    `begins` matches the mark, `head` everything up to the arguments of a call, with the tool as group `name`.
    `without_head`: otherwise there are JSON or Python calls, an error, or text. `tag`: the reader of a tag. `token`:
    a special token, which does not occur by chance. `line`: only at the start of a line. `data`: may be data.
    """

    begins: str
    head: re.Pattern[str] | None = None
    tag: ReadTag | None = None
    without_head: Literal["values", "wrong", "text"] = "values"
    token: bool = False
    line: bool = False
    data: bool = False


FORMATS: tuple[MarkFormat, ...] = (
    MarkFormat(_CONTAINERS, tag=_read_tag),
    MarkFormat(r"<function(?:=|\s+name=)[\"']?[^>\"'\s]+[\"']?\s*>", tag=_read_bare_tags),
    MarkFormat(r"<(?:[｜|]DSML[｜|])?invoke\s+name=[\"'][^\"'>]+[\"']\s*>", tag=_read_bare_tags),
    MarkFormat(
        r"<\|python_tag\|>|<\|tool_call(?:_start)?\|>|<\|action_start\|>\s*<\|plugin\|>|<\|START_ACTION\|>",
        token=True,
    ),
    MarkFormat(
        r"\[TOOL_CALLS\]",
        lazy(
            r"\[TOOL_CALLS\]\s*(?P<name>[\w./-]+)\s*(?:\[CALL_ID\]\s*[\w-]+\s*)?(?:\[ARGS\])?"
            r"\s*(?=\{|null\b|\[TOOL_CALLS\]|</s>|\Z)"
        ),
        token=True,
    ),
    MarkFormat(r"functools(?=\[\s*\{)", line=True),
    MarkFormat(
        r"<[｜|]tool[▁_]calls?[▁_]begin[｜|]>",
        lazy(
            r"\s*<[｜|]tool[▁_]call[▁_]begin[｜|]>"
            r"(?:function<[｜|]tool[▁_]sep[｜|]>)?(?P<name>[^<\n]+?)"
            r"(?:<[｜|]tool[▁_]sep[｜|]>|\n|(?=<[｜|]tool[▁_]call[▁_]end[｜|]>))"
        ),
        token=True,
        without_head="wrong",
    ),
    MarkFormat(
        r"<\|tool_calls_section_begin\|>|<\|tool_call_begin\|>",
        lazy(
            r"\s*<\|tool_call_begin\|>\s*(?P<name>[^<\s]+)\s*"
            r"(?:<\|tool_call_argument_begin\|>|(?=<\|tool_call_end\|>))"
        ),
        token=True,
        without_head="wrong",
    ),
    MarkFormat(
        rf"{_HARMONY}(?=[^<\n]{{0,100}}(?:<\|constrain\|>\w+)?\s*<\|message\|>)",
        lazy(rf"(?={_HARMONY})(?={_HARMONY_HEAD}to=(?P<name>[^\s<]+)){_HARMONY_HEAD}<\|message\|>"),
        without_head="text",
        token=True,
    ),
    MarkFormat(r"Action:(?=[ \t]*(?:```|`?[\w./-]+`?[ \t]*\n))", _REACT, line=True, data=True),
    MarkFormat(rf"<(?:{'|'.join(PLAIN_TAGS)})>(?=\s*[\[{{])", tag=_read_tag, line=True, data=True),
    MarkFormat(r"<(?P<name>[a-z][\w./-]*)>(?=\s*[<{])", tag=_read_bare_tags, line=True),
)
"""All families of marks; the first match at a position is used."""


def read_calls(
    reply: str, match: re.Match[str], mark_format: MarkFormat, offered: OfferedTools
) -> MarkedCalls | None:
    """Read the calls of a mark; None if there are none."""
    if mark_format.tag is not None:
        calls = mark_format.tag(reply, match, offered)
    else:
        calls = _read_headed(reply, match, mark_format, offered)
        if calls is None and mark_format.without_head == "wrong":
            return MarkedCalls(match.start(), len(reply), (), text("calls.none_behind_mark"))
        if calls is None and mark_format.without_head == "values":
            calls = _read_values(reply, match)
    return None if calls is not None and mark_format.data and not calls.named else calls


def _read_headed(
    reply: str, match: re.Match[str], mark_format: MarkFormat, offered: OfferedTools
) -> MarkedCalls | None:
    """Read calls with their names before their arguments; several in a section that contains only calls."""
    if mark_format.head is None:
        return None
    start, calls = match.start(), list[WrittenCall]()
    head_match = mark_format.head.match(reply, start) or mark_format.head.match(reply, match.end())
    at = start
    while head_match:
        name = strip_decoration(head_match["name"])
        arguments = read_named_arguments(reply, head_match.end(), name, offered)
        if isinstance(arguments, UnreadableCall):
            return MarkedCalls(start, len(reply), (), arguments.problem)
        calls.append(WrittenCall(name, arguments.args))
        at = arguments.end
        head_match = mark_format.head.match(reply, at) if mark_format.without_head == "wrong" else None
    return MarkedCalls(start, at, tuple(calls)) if calls else None


def _read_values(reply: str, match: re.Match[str]) -> MarkedCalls | None:
    """Read any number of calls as JSON, or as Python up to a closing token."""
    marked = parse_json_calls(reply, match.end(), match.start())
    if (marked is None or marked.problem) and may_be_python_calls(reply, match.end()):
        end = _TOKEN_END.search(reply, match.end())
        if calls := parse_python_calls(reply[match.end() : end.start() if end else len(reply)]):
            return MarkedCalls(match.start(), end.end() if end else len(reply), calls)
    return marked

"""The table of every mark that open models put around calls, and the reader of the calls behind one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from daiku.models.rules.textcalls.calljson import may_be_python_calls, python_calls
from daiku.models.rules.textcalls.marked import (
    MarkedCalls,
    arguments_of,
    json_calls,
    other_calls,
    read_arguments,
)
from daiku.models.rules.textcalls.parsed_calls import (
    PLAIN_TAGS,
    OfferedTools,
    UnreadableCall,
    WrittenCall,
    bare_name,
    whole_object,
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
    """Calls one after the other, their end, and what is wrong with the next one."""

    calls: tuple[WrittenCall, ...]
    end: int
    wrong: Text = NO_TEXT


def _read_tag(reply: str, match: re.Match[str], offered: OfferedTools) -> MarkedCalls | None:
    """Read the calls inside `<tool_call>…</tool_call>` and similar tags: JSON, invocations, a name, or Python."""
    start, at = match.span()
    tag = match[0].strip(" \t<>")
    closing = re.compile(rf"\s*</{re.escape(tag)}\s*>", re.IGNORECASE)
    found = json_calls(reply, at, start)
    if found is None:
        calls, end, wrong = _read_invocations(reply, at, offered)
        found = MarkedCalls(start, end, calls, wrong) if calls or wrong else None
    if found and not found.wrong:
        ended = closing.match(reply, found.end)
        return found._replace(end=ended.end()) if ended else found
    ended = closing.search(reply, at)
    body = reply[at : ended.start()] if ended else reply[at:]
    end = ended.end() if ended else len(reply)
    is_list = body.lstrip().startswith(("{", "["))
    calls = other_calls(body) if is_list else _read_named(body, offered) if ended else ()
    if calls:
        return MarkedCalls(start, end, calls)
    if found or is_list:
        return found and found._replace(end=end)
    wrong = text("calls.none_in_tags") if ended else text("calls.no_closing", tag=tag)
    return MarkedCalls(start, end, (), wrong)


def _read_named(body: str, offered: OfferedTools) -> tuple[WrittenCall, ...]:
    """Read a name and then its arguments: as pairs of tags, or as JSON."""
    name = body.partition("<arg_key>")[0].strip()
    pairs = _PAIR.findall(body)
    if pairs or re.fullmatch(r"[\w./:-]+", body.strip()):
        return (WrittenCall(name, offered.parse_texts(name, dict(pairs), loose=True)),)
    found = _NAMED.match(body)
    args = whole_object(found[2]) if found else None
    return (WrittenCall(found[1], args),) if found and args is not None else ()


def _read_bare_tags(reply: str, match: re.Match[str], offered: OfferedTools) -> MarkedCalls | None:
    """Read `<function=…>`, `<invoke …>` or, for a tool on offer, `<a_tool>…</a_tool>` with no tag around."""
    name = match["name"]
    if not name:
        calls, end, wrong = _read_invocations(reply, match.start(), offered)
        return MarkedCalls(match.start(), end, calls, wrong) if calls or wrong else None
    if not offered.specs or offered.resolve(name) is None:
        return None
    found = _read_children(reply, match.end(), name, offered)
    return found and MarkedCalls(match.start(), found.end, found.calls, found.wrong)


def _read_children(reply: str, at: int, name: str, offered: OfferedTools) -> _Invocations | None:
    """Read `<path>…</path></a_tool>` or `{…}</a_tool>`; None if it is no call."""
    closing = re.compile(rf"\s*</{re.escape(name)}>")
    if reply.startswith("{", _skip_blanks(reply, at)):
        return _read_object(reply, at, name, closing, required=True)
    texts: dict[str, str] = {}
    while opened := _CHILD.match(reply, at):
        ended = re.compile(rf"\n?</{opened[1]}>(?=\s*<)").search(reply, opened.end())
        if ended is None:
            return _Invocations((), len(reply), text("calls.tag_without_end", tag=opened[1]))
        texts[opened[1]] = reply[opened.end() : ended.start()].removeprefix("\n")
        at = ended.end()
    end = closing.match(reply, at)
    return end and _Invocations((WrittenCall(name, offered.parse_texts(name, texts)),), end.end())


def _read_object(
    reply: str, at: int, name: str, closing: re.Pattern[str], *, required: bool = False
) -> _Invocations:
    """Read the arguments of one call as JSON, and its closing tag."""
    found = read_arguments(reply, at, name)
    if isinstance(found, UnreadableCall):
        return _Invocations((), len(reply), found.problem)
    end = closing.match(reply, found.end)
    if end is None and required:
        return _Invocations((), len(reply), text("calls.no_closing", tag=name))
    return _Invocations((WrittenCall(name, found.args),), end.end() if end else found.end)


def _read_invocations(reply: str, at: int, offered: OfferedTools) -> _Invocations:
    """Read every `<function=…>` or `<invoke name=…>` from `at` on."""
    calls: list[WrittenCall] = []
    while opened := _INVOCATION.match(reply, _skip_blanks(reply, at)):
        found = _read_invocation(reply, opened, offered)
        if found.wrong:
            return _Invocations(tuple(calls), len(reply), found.wrong)
        calls += found.calls
        at = found.end
    return _Invocations(tuple(calls), at)


def _read_invocation(reply: str, opened: re.Match[str], offered: OfferedTools) -> _Invocations:
    name, kind, at = opened["name"], opened["kind"], opened.end()
    closing = re.compile(rf"\s*</{_DSML}{kind}\s*>")
    if reply.startswith("{", _skip_blanks(reply, at)):
        return _read_object(reply, at, name, closing)
    texts: dict[str, str] = {}
    raw: set[str] = set()
    ends, opens, closes = (_Ahead(each, reply) for each in (_PARAMETER_END, _PARAMETER, closing))
    while parameter := _PARAMETER.match(reply, _skip_blanks(reply, at)):
        value_end = _value_end(reply, parameter.end(), ends, opens, closes)
        if value_end is None:
            return _Invocations((), len(reply), text("calls.without_end", name=parameter["name"]))
        until, at = value_end
        texts[parameter["name"]] = reply[parameter.end() : until].removeprefix("\n")
        if parameter["text"] == "false":
            raw.add(parameter["name"])
    ended = closing.match(reply, at)
    if ended is None:
        return _Invocations((), len(reply), text("calls.no_closing", tag=kind))
    typed = offered.parse_texts(name, texts)
    typed.update(offered.parse_texts(name, {key: texts[key] for key in raw}, loose=True))
    return _Invocations((WrittenCall(name, typed),), ended.end())


def _skip_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


class _Ahead:
    """Where a pattern comes next, asked from ever later places: what is far away is looked for once."""

    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        self._pattern, self._text = pattern, text
        self._found: re.Match[str] | None = None
        self._looked = False

    def __call__(self, at: int) -> re.Match[str] | None:
        if not self._looked or (self._found and self._found.start() < at):
            self._found, self._looked = self._pattern.search(self._text, at), True
        return self._found


def _value_end(text: str, at: int, ends: _Ahead, opens: _Ahead, closes: _Ahead) -> tuple[int, int] | None:
    """Where a parameter's text ends and what follows begins: at its closing tag, else at the next tag."""
    ended, following, last = ends(at), opens(at), closes(at)
    if (ended and (not last or ended.start() < last.start())) or (
        ended and following and ended.end() <= following.start()
    ):
        return ended.start(), ended.end()
    if following and (not last or following.start() < last.start()):
        end = following.start()
        return end - text.endswith("\n", 0, end), end
    return (last.start(), last.start()) if last else None


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

    `begins` matches the mark, `head` all up to the arguments of a call, with the tool as group `name`.
    `without_head`: else there are JSON or Python calls, an error, or text. `tag`: the reader of a tag. `token`: a
    special token, which nobody writes by chance. `line`: only at the start of a line. `data`: may be data.
    """

    begins: str
    head: re.Pattern[str] | None = None
    tag: ReadTag | None = None
    without_head: Literal["values", "wrong", "text"] = "values"
    token: bool = False
    line: bool = False
    data: bool = False


FORMATS: tuple[Format, ...] = (
    Format(_CONTAINERS, tag=_read_tag),
    Format(r"<function(?:=|\s+name=)[\"']?[^>\"'\s]+[\"']?\s*>", tag=_read_bare_tags),
    Format(r"<(?:[｜|]DSML[｜|])?invoke\s+name=[\"'][^\"'>]+[\"']\s*>", tag=_read_bare_tags),
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
    Format(rf"<(?:{'|'.join(PLAIN_TAGS)})>(?=\s*[\[{{])", tag=_read_tag, line=True, data=True),
    Format(r"<(?P<name>[a-z][\w./-]*)>(?=\s*[<{])", tag=_read_bare_tags, line=True),
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

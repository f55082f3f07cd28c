"""Calls between tags such as `<tool_call>`, `<function=…>` and `<invoke …>`."""

from __future__ import annotations

import re

from daiku.core.text.patterns import lazy
from daiku.core.textcalls.calljson import JsonReply, python_calls, read_value, whole_values
from daiku.core.textcalls.marked import MarkedCalls, json_calls, read_arguments
from daiku.core.textcalls.parsed_calls import OfferedTools, UnreadableCall, WrittenCall, whole_object
from daiku.core.textcalls.problems import NONE_IN_TAGS, no_closing_tag, tag_without_end, without_end
from daiku.texts.text import NO_TEXT, Text

_FUNCTION = lazy(r"<function(?:=|\s+name=)[\"']?([^>\"'\s]+)[\"']?\s*>")
_INVOKE = lazy(r"<(?P<mark>[｜|]DSML[｜|])?invoke\s+name=[\"']([^\"'>]+)[\"']\s*>")
_PARAMETER = lazy(
    r"<(?:[｜|]DSML[｜|])?parameter(?:=|\s+name=)[\"']?(?P<name>[^>\"'\s]+)[\"']?(?:\s+string=\"(?P<text>\w+)\")?\s*>"
)
_PARAMETER_END = lazy(
    r"\n?</(?:[｜|]DSML[｜|])?parameter\s*>(?=\s*(?:<(?:[｜|]DSML[｜|])?/?(?:parameter|function|invoke|[\w:]*tool_call|[｜|]DSML[｜|])|</|\Z))"
)
_ARG = lazy(r"<arg_key>\s*(.*?)\s*</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)


def parse_tagged_calls(text: str, match: re.Match[str], offered: OfferedTools) -> MarkedCalls | None:
    """Parse calls inside `<tool_call>…</tool_call>` and similar tags."""
    start, at = match.span()
    tag = match[0].strip(" \t<>")
    closing = re.compile(rf"\s*</{re.escape(tag)}\s*>", re.IGNORECASE)
    inner = text[at:].lstrip()[:1]
    if inner in ("{", "["):
        found = json_calls(text, at, start)
        if found is not None and not found.wrong:
            end = closing.match(text, found.end)
            return found._replace(end=end.end() if end else found.end, closed=end is not None)
        end = closing.search(text, at)
        body = text[at : end.start()] if end else text[at:]
        calls = python_calls(body) or _repair_calls(body)
        if calls:
            return MarkedCalls(start, end.end() if end else len(text), calls, closed=end is not None)
        return found and found._replace(end=end.end() if end else len(text), closed=end is not None)
    calls, upto, wrong = _read_invocations(text, at, offered)
    if calls or wrong:
        end = closing.match(text, upto)
        return MarkedCalls(start, end.end() if end else upto, calls, wrong, end is not None)
    end = closing.search(text, at)
    body = text[at : end.start()] if end else text[at:]
    if end is None:
        return MarkedCalls(start, len(text), (), no_closing_tag(tag), closed=False)
    found_here = _read_named(body, offered)
    if found_here is None:
        return MarkedCalls(start, end.end(), (), NONE_IN_TAGS)
    return MarkedCalls(start, end.end(), found_here)


def _repair_calls(body: str) -> tuple[WrittenCall, ...]:
    values = whole_values(body)
    if values is None or isinstance(values, UnreadableCall):
        return ()
    said = [read_value(value, own=False, marked=True) for value in values.values]
    return tuple(call for each in said if isinstance(each, JsonReply) for call in each.calls)


def _read_named(body: str, offered: OfferedTools) -> tuple[WrittenCall, ...] | None:
    """`name` and then its arguments: as pairs of tags, or as JSON."""
    pairs = _ARG.findall(body)
    name, _, rest = body.strip().partition("\n")
    if pairs or (body.strip() and not rest and re.fullmatch(r"[\w./:-]+", name)):
        name = re.split(r"<arg_key>", body.strip(), maxsplit=1)[0].strip()
        return (WrittenCall(name, offered.parse_texts(name, dict(pairs), loose=True)),)
    found = re.match(r"\s*([\w./:-]+)\s*(\{.*\})\s*$", body, re.DOTALL)
    args = whole_object(found[2]) if found else None
    return (WrittenCall(found[1], args),) if found and args is not None else None


def _read_invocations(text: str, at: int, offered: OfferedTools) -> tuple[tuple[WrittenCall, ...], int, Text]:
    """Every `<function=…>` or `<invoke name=…>` from `at` on: the calls, their end, what is wrong."""
    calls: list[WrittenCall] = []
    end = at
    while True:
        at = _blanks(text, end)
        opened = _FUNCTION.match(text, at) or _INVOKE.match(text, at)
        if opened is None:
            return tuple(calls), end, NO_TEXT
        found = _one(text, opened, offered)
        if isinstance(found, Text):
            return tuple(calls), len(text), found
        call, end = found
        calls.append(call)


def _one(text: str, opened: re.Match[str], offered: OfferedTools) -> tuple[WrittenCall, int] | Text:
    """The call of one opening tag and where it ends, or what is wrong with it."""
    name = opened[opened.lastindex or 1]
    kind = "function" if opened[0].startswith("<function") else "invoke"
    closing = re.compile(rf"\s*</(?:[｜|]DSML[｜|])?{kind}\s*>")
    at = opened.end()
    if text.startswith("{", _blanks(text, at)):
        found = read_arguments(text, at, name)
        if isinstance(found, UnreadableCall):
            return found.problem
        ended = closing.match(text, found.end)
        return WrittenCall(name, found.args), ended.end() if ended else found.end
    texts: dict[str, str] = {}
    raw: set[str] = set()
    ends, opens, closes = (_Ahead(each, text) for each in (_PARAMETER_END, _PARAMETER, closing))
    while parameter := _PARAMETER.match(text, _blanks(text, at)):
        value_end = _value_end(text, parameter.end(), ends, opens, closes)
        if value_end is None:
            return without_end(parameter["name"])
        until, at = value_end
        texts[parameter["name"]] = text[parameter.end() : until].removeprefix("\n")
        if parameter["text"] == "false":
            raw.add(parameter["name"])
    ended = closing.match(text, at)
    if ended is None:
        return no_closing_tag(kind)
    typed = offered.parse_texts(name, texts)
    typed.update(offered.parse_texts(name, {key: texts[key] for key in raw}, loose=True))
    return WrittenCall(name, typed), ended.end()


def _blanks(text: str, at: int) -> int:
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


def parse_bare_calls(text: str, match: re.Match[str], offered: OfferedTools) -> MarkedCalls | None:
    """`<function=…>` or `<invoke …>` with no tag around."""
    calls, end, wrong = _read_invocations(text, match.start(), offered)
    return MarkedCalls(match.start(), end, calls, wrong) if calls or wrong else None


def parse_tool_tag(text: str, match: re.Match[str], offered: OfferedTools) -> MarkedCalls | None:
    """`<a_tool><path>…</path></a_tool>`: only for tools on offer and their parameters."""
    name = match["name"]
    if not offered.specs or offered.resolve(name) is None:
        return None
    closing = re.compile(rf"\s*</{re.escape(name)}>")
    at, texts = match.end(), dict[str, str]()
    if text.startswith("{", _blanks(text, at)):
        return _with_object(text, match, closing)
    while opened := re.compile(r"\s*<([A-Za-z_]\w*)>").match(text, at):
        ended = re.compile(rf"\n?</{opened[1]}>(?=\s*<)").search(text, opened.end())
        if ended is None:
            return MarkedCalls(match.start(), len(text), (), tag_without_end(opened[1]), closed=False)
        texts[opened[1]] = text[opened.end() : ended.start()].removeprefix("\n")
        at = ended.end()
    end = closing.match(text, at)
    if end is None:
        return None
    return MarkedCalls(match.start(), end.end(), (WrittenCall(name, offered.parse_texts(name, texts)),))


def _with_object(text: str, match: re.Match[str], closing: re.Pattern[str]) -> MarkedCalls:
    """Parse `<a_tool>{…}</a_tool>`."""
    found = read_arguments(text, match.end(), match["name"])
    if isinstance(found, UnreadableCall):
        return MarkedCalls(match.start(), len(text), (), found.problem, closed=False)
    end = closing.match(text, found.end)
    if end is None:
        return MarkedCalls(match.start(), len(text), (), no_closing_tag(match["name"]), closed=False)
    return MarkedCalls(match.start(), end.end(), (WrittenCall(match["name"], found.args),))


def parse_plain_tag(text: str, match: re.Match[str], offered: OfferedTools) -> MarkedCalls | None:
    """Parse calls inside `<tools>…</tools>` and other tags that may hold data as well; None for data."""
    found = parse_tagged_calls(text, match, offered)
    return found if found is not None and found.named else None

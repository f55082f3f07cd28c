"""Calls between the marks that open models were taught: tags, special tokens, ReAct lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from daiku.core.calls.calljson import Said, begins_as_python, python_calls, said_in, values_from, whole_values
from daiku.core.calls.written import Offered, Written, Wrong, bare_name, whole_object
from daiku.core.text.patterns import lazy


class Marked(NamedTuple):
    """Calls between marks, where they stand, and whether their closing mark was there."""

    start: int
    end: int
    calls: tuple[Written, ...]
    wrong: str = ""
    closed: bool = True


Read: TypeAlias = Callable[[str, "re.Match[str]", Offered], "Marked | None"]

_ENDS = lazy(
    r"(?:\s*(?:<\|(?:eom_id|eot_id|im_end|end|call|return|endoftext|/?tool_calls?|tool_call_end|END_ACTION"
    r"|action_end|tool_calls_section_end|end_of_text|tool_call_argument_end)\|>|</s>|<[｜|]end[▁_]of[▁_]sentence[｜|]>))*"
)
"""What templates put behind a call: it says nothing."""


def after_ends(text: str, at: int) -> int:
    """The place behind the closing tokens that stand at `at`."""
    found = _ENDS.match(text, at)
    return found.end() if found else at


def _json_from(text: str, at: int, start: int) -> Marked | None:
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
            why = said.problem if isinstance(said, Wrong) else "the JSON names no tool and its arguments"
            return Marked(start, found.end, (), why)
        calls += said.calls
    return Marked(start, found.end, tuple(calls))


# -- tags around anything -----------------------------------------------------------------------------

_FUNCTION = lazy(r"<function(?:=|\s+name=)[\"']?([^>\"'\s]+)[\"']?\s*>")
_INVOKE = lazy(r"<(?P<mark>[｜|]DSML[｜|])?invoke\s+name=[\"']([^\"'>]+)[\"']\s*>")
_PARAMETER = lazy(
    r"<(?:[｜|]DSML[｜|])?parameter(?:=|\s+name=)[\"']?(?P<name>[^>\"'\s]+)[\"']?(?:\s+string=\"(?P<text>\w+)\")?\s*>"
)
_PARAMETER_END = lazy(
    r"\n?</(?:[｜|]DSML[｜|])?parameter\s*>(?=\s*(?:<(?:[｜|]DSML[｜|])?/?(?:parameter|function|invoke|[\w:]*tool_call|[｜|]DSML[｜|])|</|\Z))"
)
_UNTIL_NEXT = lazy(r"\n?(?=<(?:[｜|]DSML[｜|])?parameter(?:=|\s+name=))|\n?\Z")
_ARG = lazy(r"<arg_key>\s*(.*?)\s*</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)


def _container(text: str, match: re.Match[str], offered: Offered) -> Marked | None:
    """`<tool_call>…</tool_call>` and its kin, whatever stands between."""
    start, at = match.span()
    closing = re.compile(rf"\s*</{re.escape(match['tag'])}\s*>", re.IGNORECASE)
    inner = text[at:].lstrip()[:1]
    if inner in ("{", "["):
        found = _json_from(text, at, start)
        if found is not None and not found.wrong:
            end = closing.match(text, found.end)
            return found._replace(end=end.end() if end else found.end, closed=end is not None)
        end = closing.search(text, at)
        body = text[at : end.start()] if end else text[at:]
        calls = python_calls(body) or _repaired(body)
        if calls:
            return Marked(start, end.end() if end else len(text), calls, closed=end is not None)
        return found and found._replace(end=end.end() if end else len(text), closed=end is not None)
    calls, upto, wrong = _invoked(text, at, offered)
    if calls or wrong:
        end = closing.match(text, upto)
        return Marked(start, end.end() if end else upto, calls, wrong, end is not None)
    end = closing.search(text, at)
    body = text[at : end.start()] if end else text[at:]
    if end is None:
        return Marked(start, len(text), (), f"</{match['tag']}> is missing", closed=False)
    found_here = _named(body, offered)
    if found_here is None:
        return Marked(start, end.end(), (), "there is no call between the tags")
    return Marked(start, end.end(), found_here)


def _repaired(body: str) -> tuple[Written, ...]:
    values = whole_values(body)
    if values is None or isinstance(values, Wrong):
        return ()
    said = [said_in(value, own=False) for value in values.values]
    return tuple(call for each in said if isinstance(each, Said) for call in each.calls)


def _named(body: str, offered: Offered) -> tuple[Written, ...] | None:
    """`name` and then its arguments: as pairs of tags, or as JSON."""
    pairs = _ARG.findall(body)
    name, _, rest = body.strip().partition("\n")
    if pairs or (body.strip() and not rest and re.fullmatch(r"[\w./:-]+", name)):
        name = re.split(r"<arg_key>", body.strip(), maxsplit=1)[0].strip()
        return (Written(name, offered.typed(name, dict(pairs), loose=True)),)
    found = re.match(r"\s*([\w./:-]+)\s*(\{.*\})\s*$", body, re.DOTALL)
    args = whole_object(found[2]) if found else None
    return (Written(found[1], args),) if found and args is not None else None


def _invoked(text: str, at: int, offered: Offered) -> tuple[tuple[Written, ...], int, str]:
    """Every `<function=…>` or `<invoke name=…>` from `at` on: the calls, their end, what is wrong."""
    calls: list[Written] = []
    end = at
    while True:
        at = _blanks(text, end)
        opened = _FUNCTION.match(text, at) or _INVOKE.match(text, at)
        if opened is None:
            return tuple(calls), end, ""
        found = _one(text, opened, offered)
        if isinstance(found, str):
            return tuple(calls), len(text), found
        call, end = found
        calls.append(call)


def _one(text: str, opened: re.Match[str], offered: Offered) -> tuple[Written, int] | str:
    """The call of one opening tag and where it ends, or what is wrong with it."""
    name = opened[opened.lastindex or 1]
    kind = "function" if opened[0].startswith("<function") else "invoke"
    closing = re.compile(rf"\s*</(?:[｜|]DSML[｜|])?{kind}\s*>")
    at = opened.end()
    if text.startswith("{", _blanks(text, at)):
        values = values_from(text, at)
        if isinstance(values, Wrong):
            return values.problem
        args = values.values[0] if len(values.values) == 1 else None
        ended = closing.match(text, values.end)
        if not isinstance(args, dict):
            return "the arguments are no JSON object"
        return Written(name, args), ended.end() if ended else values.end
    texts: dict[str, str] = {}
    raw: set[str] = set()
    ends, opens, closes = (_Ahead(each, text) for each in (_PARAMETER_END, _PARAMETER, closing))
    while parameter := _PARAMETER.match(text, _blanks(text, at)):
        value_end = _value_end(text, parameter.end(), ends, opens, closes)
        if value_end is None:
            return f"the parameter {parameter['name']} has no end"
        until, at = value_end
        texts[parameter["name"]] = text[parameter.end() : until].removeprefix("\n")
        if parameter["text"] == "false":
            raw.add(parameter["name"])
    ended = closing.match(text, at)
    if ended is None:
        return f"</{kind}> is missing"
    typed = offered.typed(name, texts)
    typed.update(offered.typed(name, {key: texts[key] for key in raw}, loose=True))
    return Written(name, typed), ended.end()


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
        return end - text[:end].endswith("\n"), end
    return (last.start(), last.start()) if last else None


def _bare(text: str, match: re.Match[str], offered: Offered) -> Marked | None:
    """`<function=…>` or `<invoke …>` with no tag around."""
    calls, end, wrong = _invoked(text, match.start(), offered)
    return Marked(match.start(), end, calls, wrong) if calls or wrong else None


def _tool_tag(text: str, match: re.Match[str], offered: Offered) -> Marked | None:
    """`<a_tool><path>…</path></a_tool>`: only for tools on offer and their parameters."""
    name = match["name"]
    if not offered.specs or offered.resolve(name) is None:
        return None
    closing = re.compile(rf"\s*</{re.escape(name)}>")
    at, texts = match.end(), dict[str, str]()
    while opened := re.compile(r"\s*<([A-Za-z_]\w*)>").match(text, at):
        ended = re.compile(rf"\n?</{opened[1]}>(?=\s*<)").search(text, opened.end())
        if ended is None:
            return Marked(match.start(), len(text), (), f"<{opened[1]}> has no end", closed=False)
        texts[opened[1]] = text[opened.end() : ended.start()].removeprefix("\n")
        at = ended.end()
    end = closing.match(text, at)
    if end is None:
        return None
    return Marked(match.start(), end.end(), (Written(name, offered.typed(name, texts)),))


# -- special tokens -------------------------------------------------------------------------------------


_TOKEN_END = lazy(r"<\|(?:tool_call_end|END_ACTION|/tool_call)\|>")


def _token(text: str, match: re.Match[str], _: Offered) -> Marked | None:
    """A token with JSON behind it: values of any number."""
    found = _json_from(text, match.end(), match.start())
    if (found is None or found.wrong) and begins_as_python(text, match.end()):
        end = _TOKEN_END.search(text, match.end())
        if calls := python_calls(text[match.end() : end.start() if end else len(text)]):
            return Marked(match.start(), end.end() if end else len(text), calls)
    if found is None or found.wrong:
        return found
    return found._replace(end=after_ends(text, found.end))


_MISTRAL = lazy(r"\s*([\w./-]+)\s*(?:\[CALL_ID\]\s*[\w-]+\s*)?(?:\[ARGS\])?\s*(?=\{)")


def _mistral(text: str, match: re.Match[str], offered: Offered) -> Marked | None:
    """`[TOOL_CALLS]` with a list of calls, or with a name and its arguments, again and again."""
    named = _MISTRAL.match(text, match.end())
    if named is None:
        return _token(text, match, offered)
    return _with_arguments(text, match.start(), named.end(), named[1])


def _with_arguments(text: str, start: int, at: int, name: str) -> Marked:
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


_DEEPSEEK_BEGIN = lazy(
    r"\s*<[｜|]tool[▁_]call[▁_]begin[｜|]>(?:function<[｜|]tool[▁_]sep[｜|]>)?([^<\n]+?)(?:<[｜|]tool[▁_]sep[｜|]>|\n)"
)
_DEEPSEEK_END = lazy(r"\s*<[｜|]tool[▁_]calls?[▁_]end[｜|]>")


def _deepseek(text: str, match: re.Match[str], _: Offered) -> Marked | None:
    at = match.end() if "calls" in match[0] else match.start()
    return _section(text, match.start(), at, _DEEPSEEK_BEGIN, _DEEPSEEK_END)


_KIMI_BEGIN = lazy(r"\s*<\|tool_call_begin\|>\s*([^<\s]+)\s*<\|tool_call_argument_begin\|>")
_KIMI_END = lazy(r"\s*<\|(?:tool_call_end|tool_calls_section_end)\|>")


def _kimi(text: str, match: re.Match[str], _: Offered) -> Marked | None:
    at = match.end() if "section" in match[0] else match.start()
    found = _section(text, match.start(), at, _KIMI_BEGIN, _KIMI_END)
    calls = tuple(call._replace(name=bare_name(call.name)) for call in found.calls) if found else ()
    return found and found._replace(calls=calls)


def _section(text: str, start: int, at: int, begin: re.Pattern[str], end: re.Pattern[str]) -> Marked | None:
    """Calls one after the other, each with a mark before its name and one before its arguments."""
    calls: list[Written] = []
    while opened := begin.match(text, at):
        found = _with_arguments(text, start, opened.end(), opened[1].strip())
        if found.wrong:
            return found
        calls += found.calls
        at = found.end
        while ended := end.match(text, at):
            at = ended.end()
    if not calls:
        return Marked(start, len(text), (), "there is no call behind the mark", closed=False)
    return Marked(start, at, tuple(calls))


_HARMONY_TO = lazy(r"to=(?:functions\.)?([^\s<]+)")


def _harmony(text: str, match: re.Match[str], _: Offered) -> Marked | None:
    """A message of harmony to a function."""
    at = text.find("<|message|>", match.start(), match.start() + 300)
    to = _HARMONY_TO.search(text, match.start(), at) if at >= 0 else None
    if to is None:
        return None
    return _with_arguments(text, match.start(), at + len("<|message|>"), to[1])


# -- lines --------------------------------------------------------------------------------------------


def _react(text: str, match: re.Match[str], _: Offered) -> Marked | None:
    """`Action: a tool`, `Action Input: {…}`; or `Action:` and a block with a list of calls."""
    fence = re.compile(r"[ \t]*```(?:json)?\s*").match(text, match.end())
    if fence:
        found = _json_from(text, fence.end(), match.start())
        ended = re.compile(r"\s*```").match(text, found.end) if found and not found.wrong else None
        return found._replace(end=ended.end()) if found and ended else None
    named = re.compile(
        r"[ \t]*`?([\w./-]+)`?[ \t]*\n+[ \t]*Action Input:(?=[ \t]*(?:```(?:json)?)?\s*\{)"
    ).match(text, match.end())
    return named and _with_arguments(text, match.start(), named.end(), named[1])


class Format(NamedTuple):
    """How one family of marks begins. `token`: a special token, which nobody writes by chance; `line`:
    it counts at the start of a line only."""

    begins: str
    read: Read
    token: bool = False
    line: bool = False


_CONTAINERS = r"<(?P<tag>tool_calls?|TOOLCALL|function_calls?|functioncalls?|(?:minimax|seed|mm):tool_call|[｜|]DSML[｜|]function_calls)>"
FORMATS: tuple[Format, ...] = (
    Format(_CONTAINERS, _container),
    Format(r"<function(?:=|\s+name=)[\"']?[^>\"'\s]+[\"']?\s*>", _bare),
    Format(r"<(?:[｜|]DSML[｜|])?invoke\s+name=[\"'][^\"'>]+[\"']\s*>", _bare),
    Format(
        r"<\|python_tag\|>|<\|tool_call(?:_start)?\|>|<\|action_start\|>\s*<\|plugin\|>|<\|START_ACTION\|>",
        _token,
        token=True,
    ),
    Format(r"\[TOOL_CALLS\]", _mistral, token=True),
    Format(r"functools(?=\[\s*\{)", _token, line=True),
    Format(r"<[｜|]tool[▁_]calls?[▁_]begin[｜|]>", _deepseek, token=True),
    Format(r"<\|tool_calls_section_begin\|>|<\|tool_call_begin\|>", _kimi, token=True),
    Format(
        r"(?:<\|start\|>assistant[^<\n]{0,100})?<\|channel\|>(?:commentary|analysis)(?=[^<\n]{0,100}(?:<\|constrain\|>\w+)?\s*<\|message\|>)",
        _harmony,
        token=True,
    ),
    Format(r"Action:(?=[ \t]*(?:```|`?[\w./-]+`?[ \t]*\n))", _react, line=True),
    Format(r"<(?P<name>[a-z][\w./-]*)>(?=\s*<)", _tool_tag, line=True),
)
"""Every family of marks; the first that fits at a place is read."""

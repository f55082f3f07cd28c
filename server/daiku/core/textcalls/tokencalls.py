"""Calls behind the special tokens of open models: Mistral, DeepSeek, Kimi, Harmony and their kin."""

from __future__ import annotations

import re

from daiku.core.text.patterns import lazy
from daiku.core.textcalls.calljson import may_be_python_calls, python_calls
from daiku.core.textcalls.marked import MarkedCalls, call_with_arguments, json_calls, skip_closing_tokens
from daiku.core.textcalls.parsed_calls import OfferedTools, WrittenCall, bare_name
from daiku.core.textcalls.problems import NONE_BEHIND_MARK

_TOKEN_END = lazy(r"<\|(?:tool_call_end|END_ACTION|/tool_call)\|>")


def parse_token_call(text: str, match: re.Match[str], _: OfferedTools) -> MarkedCalls | None:
    """Parse calls after a special token: any number of JSON values."""
    found = json_calls(text, match.end(), match.start())
    if (found is None or found.wrong) and may_be_python_calls(text, match.end()):
        end = _TOKEN_END.search(text, match.end())
        if calls := python_calls(text[match.end() : end.start() if end else len(text)]):
            return MarkedCalls(match.start(), end.end() if end else len(text), calls)
    if found is None or found.wrong:
        return found
    return found._replace(end=skip_closing_tokens(text, found.end))


_MISTRAL = lazy(
    r"\s*([\w./-]+)\s*(?:\[CALL_ID\]\s*[\w-]+\s*)?(?:\[ARGS\])?\s*(?=\{|null\b|\[TOOL_CALLS\]|</s>|\Z)"
)


def parse_mistral(text: str, match: re.Match[str], offered: OfferedTools) -> MarkedCalls | None:
    """Parse calls after `[TOOL_CALLS]`: a JSON list of calls, or a name with its arguments."""
    named = _MISTRAL.match(text, match.end())
    if named is None:
        return parse_token_call(text, match, offered)
    return call_with_arguments(text, match.start(), named.end(), named[1], offered)


_DEEPSEEK_BEGIN = lazy(
    r"\s*<[｜|]tool[▁_]call[▁_]begin[｜|]>(?:function<[｜|]tool[▁_]sep[｜|]>)?([^<\n]+?)"
    r"(?:<[｜|]tool[▁_]sep[｜|]>|\n|(?=<[｜|]tool[▁_]call[▁_]end[｜|]>))"
)
_DEEPSEEK_END = lazy(r"\s*<[｜|]tool[▁_]calls?[▁_]end[｜|]>")


def parse_deepseek(text: str, match: re.Match[str], offered: OfferedTools) -> MarkedCalls | None:
    at = match.end() if "calls" in match[0] else match.start()
    return _section(text, match.start(), at, _DEEPSEEK_BEGIN, _DEEPSEEK_END, offered)


_KIMI_BEGIN = lazy(
    r"\s*<\|tool_call_begin\|>\s*([^<\s]+)\s*(?:<\|tool_call_argument_begin\|>|(?=<\|tool_call_end\|>))"
)
_KIMI_END = lazy(r"\s*<\|(?:tool_call_end|tool_calls_section_end)\|>")


def parse_kimi(text: str, match: re.Match[str], offered: OfferedTools) -> MarkedCalls | None:
    at = match.end() if "section" in match[0] else match.start()
    return _section(text, match.start(), at, _KIMI_BEGIN, _KIMI_END, offered)


def _section(
    text: str, start: int, at: int, begin: re.Pattern[str], end: re.Pattern[str], offered: OfferedTools
) -> MarkedCalls | None:
    """Calls one after the other, each with a mark before its name and one before its arguments."""
    calls: list[WrittenCall] = []
    while opened := begin.match(text, at):
        found = call_with_arguments(text, start, opened.end(), bare_name(opened[1]), offered)
        if found.wrong:
            return found
        calls += found.calls
        at = found.end
        while ended := end.match(text, at):
            at = ended.end()
    if not calls:
        return MarkedCalls(start, len(text), (), NONE_BEHIND_MARK, closed=False)
    return MarkedCalls(start, at, tuple(calls))


_HARMONY_TO = lazy(r"to=(?:functions\.)?([^\s<]+)")


def parse_harmony(text: str, match: re.Match[str], offered: OfferedTools) -> MarkedCalls | None:
    """Parse a Harmony message that is addressed to a function."""
    at = text.find("<|message|>", match.start(), match.start() + 300)
    to = _HARMONY_TO.search(text, match.start(), at) if at >= 0 else None
    if to is None:
        return None
    return call_with_arguments(text, match.start(), at + len("<|message|>"), to[1], offered)

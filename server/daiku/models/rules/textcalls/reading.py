"""Reader for the tool calls in a reply's text: those at its end, without quoted ones and without invented results."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from daiku.dataclass import dataclass, field
from daiku.models.rules.textcalls.calljson import (
    JsonReply,
    parse_complete,
    parse_python_calls,
    parse_values,
    read_value,
)
from daiku.models.rules.textcalls.marked import MarkedCalls, skip_closing_tokens
from daiku.models.rules.textcalls.marks import FORMATS, read_calls
from daiku.models.rules.textcalls.parsed_calls import OfferedTools, UnreadableCall, WrittenCall
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import NO_TEXT, Text, text


class _CodeBlock(NamedTuple):
    """Code block with its fences."""

    start: int
    end: int
    info: str
    text: str
    closed: bool


@dataclass(slots=True)
class _ScannedReply:
    """Structure of a reply: code blocks, marked calls, results, and quoted ranges."""

    blocks: list[_CodeBlock] = field(default_factory=list[_CodeBlock])
    marked: list[MarkedCalls] = field(default_factory=list[MarkedCalls])
    results: list[int] = field(default_factory=list[int])
    """Positions of results that only a tool can return."""
    quoted: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def quotes(self, at: int) -> bool:
        """Return True if the position is quoted: in code, a quotation, a comment, or a call."""
        index = bisect_right(self.quoted, (at, 1 << 62)) - 1
        return index >= 0 and self.quoted[index][0] <= at < self.quoted[index][1]


_RESULTS = (
    r"(?:^[ \t]*(?:previous_output\b|previous_command:|Observation:|Tool [Rr]esult:|```tool_output\b))"
    r"|<tool_(?:response|result|output)s?\b|<function_(?:results?|response)\b|\[TOOL_RESULTS\]"
    r"|<\|/?(?:tool_responses?|tool_results?|observation|START_TOOL_RESULT|ipython)\|>"
    r"|<\|start\|>(?:functions|tool|user)\b|<\|im_start\|>(?:tool|user)\b"
    r"|<\|start_header_id\|>(?:ipython|tool|user)\b|<[｜|]tool[▁_]outputs?[▁_]begin[｜|]>"
)
_INDENT = r"^[ \t]*"
_NEXT = lazy(
    # alternatives that match anywhere begin with one of these characters, so other positions are skipped fast
    "(?=[<\\[`]|^)(?:"
    + "|".join(
        (
            rf"(?P<result>{_RESULTS})",
            r"(?P<fence>^[ \t]*(?P<run>`{3,}|~{3,})(?P<info>[^\n]*)(?:\n|\Z))",
            r"(?P<quote>^[ \t]*>[^\n]*)",
            r"(?P<comment><!--)",
            r"(?P<tick>`+)",
            *(
                f"(?P<f{number}>{_INDENT if each.line else ''}(?:{each.begins}))"
                for number, each in enumerate(FORMATS)
            ),
        )
    )
    + ")",
    re.MULTILINE,
)


def _scan_reply(reply: str, offered: OfferedTools) -> _ScannedReply:
    """Find everything in `reply` that is not plain prose, in one pass, without nested matches."""
    scan = _ScannedReply()
    position = 0
    while match := _NEXT.search(reply, position):
        position = max(_record_match(reply, match, scan, offered), match.start() + 1)
    return scan


def _record_match(reply: str, match: re.Match[str], scan: _ScannedReply, offered: OfferedTools) -> int:
    """Record what starts at `match`; return the position to continue from."""
    start = match.start()
    if match["result"]:
        scan.results.append(start)
        return match.end()
    if match["fence"] and ("`" not in match["info"] or match["run"][0] == "~"):
        block = _read_block(reply, match)
        scan.blocks.append(block)
        end = block.end
    elif match["quote"]:
        end = match.end()
    elif match["comment"]:
        closing = reply.find("-->", match.end())
        end = closing + 3 if closing >= 0 else len(reply)
    elif match["tick"] or match["fence"]:
        ticks = match["tick"] or match["run"]
        begin = match.end() if match["tick"] else match.start("run") + len(ticks)
        inner = re.compile(rf"(?:(?!\n[ \t]*\n)[\s\S])*?(?<!`){ticks}(?!`)").match(reply, begin)
        if inner is None:
            return begin
        end = inner.end()
    else:
        mark_format = next(
            candidate for number, candidate in enumerate(FORMATS) if match[f"f{number}"] is not None
        )
        calls = read_calls(reply, match, mark_format, offered)
        if calls is None:
            return match.end()
        begin = start + len(match[0]) - len(match[0].lstrip())
        scan.marked.append(calls._replace(start=begin, token=mark_format.token))
        end = calls.end
    scan.quoted.append((start, end))
    return end


def _read_block(reply: str, match: re.Match[str]) -> _CodeBlock:
    run = match["run"]
    closing = re.compile(rf"^[ \t]*{re.escape(run[0])}{{{len(run)},}}[ \t]*$", re.MULTILINE)
    end = closing.search(reply, match.end())
    text = reply[match.end() : end.start() if end else len(reply)]
    info = (match["info"].split() or [""])[0].lower()
    return _CodeBlock(match.start(), end.end() if end else len(reply), info, text, end is not None)


_CUT_OFF = text("calls.cut_off")
_MAY_BE_EXAMPLE = text("calls.text_between")
"""Calls with other text between or after them may be an example, so none is executed."""


@dataclass(frozen=True, slots=True)
class ReplyCalls:
    """Text and calls of a reply. `dropped`: invented results followed. `words_only`: nothing looks like a call."""

    text: str
    calls: tuple[WrittenCall, ...] = ()
    dropped: bool = False
    words_only: bool = False


class _CallSpan(NamedTuple):
    """Part of a reply that looks like calls."""

    start: int
    end: int
    reply_part: JsonReply
    problem: Text = NO_TEXT
    marked: bool = False
    alone: bool = True
    """True if only the end of a sentence precedes it in its line."""
    token: bool = False


@dataclass(frozen=True, slots=True)
class ReplyReader:
    """Reader for replies.

    `text_protocol`: the model knows the text protocols. `cut`: the reply was cut off. `again`: the model was asked
    again.
    """

    offered: OfferedTools
    text_protocol: bool
    cut: bool = False
    again: bool = False

    def __call__(self, reply: str) -> ReplyCalls | UnreadableCall:
        """Return the text and the calls of `reply`, which must not include thinking."""
        if (complete := self._read_complete(reply)) is not None:
            return complete
        scan = _scan_reply(reply, self.offered)
        for start in scan.results:
            head = reply[:start]
            earlier = self._read_complete(head) or self._read_calls_at_end(
                head, _scan_reply(head, self.offered)
            )
            if isinstance(earlier, ReplyCalls) and earlier.calls:
                return ReplyCalls(earlier.text, earlier.calls, dropped=True)
            break
        return self._read_calls_at_end(reply, scan)

    # -- the whole reply ------------------------------------------------------------------------

    def _read_complete(self, reply: str) -> ReplyCalls | UnreadableCall | None:
        """Return the calls if the reply contains nothing else; None otherwise."""
        reply_part = self._read_values(reply.strip().removeprefix("\ufeff"))
        if reply_part is None:
            return None
        if isinstance(reply_part, UnreadableCall):
            return UnreadableCall(_CUT_OFF) if self.cut else reply_part
        if not self.text_protocol and not self.offered.has_all(reply_part.calls):
            return None
        return ReplyCalls(reply_part.comment.strip() if self.text_protocol else "", reply_part.calls)

    def _read_values(self, source: str) -> JsonReply | UnreadableCall | None:
        """Return the calls in a text of values; UnreadableCall if they are intended as calls but cannot be parsed."""
        values = None if self.cut and _may_continue(source) else parse_complete(source)
        if values is None:
            python_calls = parse_python_calls(source)
            if python_calls is not None and self.offered.specs and self.offered.has_all(python_calls):
                return JsonReply(python_calls)
            if self.cut and self._begins_like_calls(source):
                return UnreadableCall(_CUT_OFF)
            return None
        if isinstance(values, UnreadableCall):
            return values if self._begins_like_calls(source) else None
        results = [read_value(value, text_protocol=self.text_protocol) for value in values.values]
        replies = [result for result in results if isinstance(result, JsonReply)]
        problem = next((result for result in results if isinstance(result, UnreadableCall)), None)
        if problem is not None:
            return problem if self.text_protocol or replies else None
        if not replies:
            return None
        if len(replies) < len(results):
            return UnreadableCall(text("calls.some_values"))
        calls = tuple(call for result in replies for call in result.calls)
        # Ignore a statement that all is done next to calls.
        commenting = [result for result in replies if result.calls] if calls else replies
        return JsonReply(
            calls,
            "\n".join(result.comment for result in commenting if result.comment),
            any(result.text_protocol for result in replies),
        )

    def _begins_like_calls(self, source: str) -> bool:
        """Return True if unparsable JSON begins like calls."""
        return (_OWN_KEYS if self.text_protocol else _CALL_KEYS).match(source.strip()) is not None

    # -- places in the reply --------------------------------------------------------------------

    def _read_calls_at_end(self, reply: str, scan: _ScannedReply) -> ReplyCalls | UnreadableCall:
        spans = self._find_spans(reply, scan)
        if not spans:
            if self.text_protocol and not reply.strip():
                return UnreadableCall(text("roles.no_json"))
            is_doubtful = not self.again and self._looks_like_calls(reply, scan)
            return UnreadableCall(_MAY_BE_EXAMPLE) if is_doubtful else ReplyCalls(reply, words_only=True)
        is_at_end = self._is_empty(reply[spans[-1].end :])
        first_index = len(spans) - 1 if is_at_end else len(spans)
        while (
            is_at_end
            and first_index
            and self._is_empty(reply[spans[first_index - 1].end : spans[first_index].start])
        ):
            first_index -= 1
        run, earlier = spans[first_index:], [span for span in spans[:first_index] if span.alone]
        if not run or not (run[0].alone or run[0].token) or earlier:
            insists = self.again and run and all(span.marked and span.alone for span in (*earlier, *run))
            if not insists:
                is_doubtful = not self.again and (earlier or run)
                return UnreadableCall(_MAY_BE_EXAMPLE) if is_doubtful else ReplyCalls(reply, words_only=True)
        if problem := next((span.problem for span in (*earlier, *run) if span.problem), NO_TEXT):
            return UnreadableCall(_CUT_OFF if self.cut else problem)
        if self.cut:
            return UnreadableCall(_CUT_OFF)
        return _join_calls(reply, [*earlier, *run])

    def _find_spans(self, reply: str, scan: _ScannedReply) -> list[_CallSpan]:
        spans: list[_CallSpan] = []
        for mark in scan.marked:
            reply_part = JsonReply(mark.calls)
            are_known = self.offered.has_all(mark.calls) and bool(mark.calls)
            if are_known or self.text_protocol or (mark.problem and not mark.calls):
                follows = bool(spans) and self._is_empty(reply[spans[-1].end : mark.start])
                alone = follows or _is_alone(reply, mark.start)
                spans.append(
                    _CallSpan(mark.start, mark.end, reply_part, mark.problem, True, alone, mark.token)
                )
        for block in scan.blocks:
            reply_part = self._read_code_block(block)
            if isinstance(reply_part, JsonReply) and (
                reply_part.text_protocol or self.offered.has_all(reply_part.calls)
            ):
                spans.append(_CallSpan(block.start, block.end, reply_part))
            elif isinstance(reply_part, UnreadableCall) and self._is_empty(reply[block.end :]):
                spans.append(_CallSpan(block.start, block.end, JsonReply(()), reply_part.problem))
        return sorted(spans)

    def _read_code_block(self, block: _CodeBlock) -> JsonReply | UnreadableCall | None:
        if block.info == "tool_code":
            calls = parse_python_calls(block.text)
            return JsonReply(calls) if calls else None
        if block.info not in _JSON_BLOCKS:
            return None
        reply_part = self._read_values(block.text)
        return (
            reply_part
            if block.closed or not isinstance(reply_part, JsonReply)
            else (UnreadableCall(_CUT_OFF) if self.cut else reply_part)
        )

    def _is_empty(self, source: str) -> bool:
        """Return True if the text is only blanks, closing tokens, or the statement that all is done."""
        rest = source[skip_closing_tokens(source, 0) :].strip(" \t\r\n;,")
        if not rest or not self.text_protocol:
            return not rest
        values = parse_complete(rest)
        if values is None or isinstance(values, UnreadableCall):
            return False
        results = [read_value(value, text_protocol=True) for value in values.values]
        return all(
            isinstance(result, JsonReply) and result.text_protocol and not result.calls for result in results
        )

    def _looks_like_calls(self, reply: str, scan: _ScannedReply) -> bool:
        """Return True if unquoted JSON in lines of its own has the form of tool calls."""
        position = 0
        while match := _LINE_OF_JSON.search(reply, position):
            position = match.end() + 1
            if scan.quotes(match.start()):
                continue
            values = parse_values(reply, match.start())
            if isinstance(values, UnreadableCall) or not values.values:
                continue
            reply_part = read_value(values.values[0], text_protocol=self.text_protocol)
            if (
                isinstance(reply_part, JsonReply)
                and reply_part.calls
                and (reply_part.text_protocol or self.offered.has_all(reply_part.calls))
            ):
                return True
            position = max(position, values.end)
        return False


def _join_calls(reply: str, spans: list[_CallSpan]) -> ReplyCalls:
    """Return the calls in order, and the text around them."""
    parts: list[str] = []
    at = 0
    for span in spans:
        parts += [reply[at : span.start].strip(), span.reply_part.comment.strip()]
        at = span.end
    calls = tuple(call for span in spans for call in span.reply_part.calls)
    return ReplyCalls("\n".join(part for part in parts if part.strip(" ;,")), calls)


def _is_alone(reply: str, at: int) -> bool:
    """Return True if only the end of a sentence precedes a position in its line."""
    before = reply[reply.rfind("\n", 0, at) + 1 : at].rstrip(" \t")
    return not before or before[-1] in ".!?…。！？"


def _may_continue(source: str) -> bool:
    """Return True if a reply that was cut off may have continued, as it is not a single value."""
    values = parse_values(source)
    return isinstance(values, UnreadableCall) or len(values.values) != 1


_JSON_BLOCKS = {
    *("", "json", "json5", "jsonc", "jsonl"),
    *("tool_call", "tool_calls", "tool_use", "text", "action"),
}
_LINE_OF_JSON = lazy(r"^[ \t]*(?=[{\[]\s*[{\"'])", re.MULTILINE)
_OWN_KEYS = lazy(
    r"[{\[][\s{\[]*[\"']?(?:comment|reply|actions|action_list|ActionList|tool_calls|command|commnd|done|operation|tool|tool_name|name|id|type|function)\b"
)
_CALL_KEYS = lazy(
    r"[{\[][\s{\[]*[\"'](?:(?:tool|tool_name|name)[\"']\s*:\s*[\"'][^\"']*[\"']\s*,\s*[\"'](?:arguments|parameters|args)|tool_calls[\"']\s*:\s*\[)"
)

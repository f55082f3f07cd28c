"""Which calls a reply makes in its text: those at its end, none that it quotes, and none behind an invented result."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from daiku.dataclass import dataclass, field
from daiku.models.rules.textcalls.calljson import (
    JsonReply,
    python_calls,
    read_value,
    values_from,
    whole_values,
)
from daiku.models.rules.textcalls.marked import MarkedCalls, skip_closing_tokens
from daiku.models.rules.textcalls.marks import FORMATS, read_calls
from daiku.models.rules.textcalls.parsed_calls import OfferedTools, UnreadableCall, WrittenCall
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import NO_TEXT, Text, text


class _CodeBlock(NamedTuple):
    """A block of code with its fences."""

    start: int
    end: int
    info: str
    text: str
    closed: bool


@dataclass(slots=True)
class _ScannedReply:
    """What stands where in a reply."""

    blocks: list[_CodeBlock] = field(default_factory=list[_CodeBlock])
    marked: list[MarkedCalls] = field(default_factory=list[MarkedCalls])
    results: list[int] = field(default_factory=list[int])
    """Where results of tools begin that only a tool can give."""
    quoted: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def quotes(self, at: int) -> bool:
        """True where the place is quoted: in code, in a quotation, in a comment, or in a call."""
        place = bisect_right(self.quoted, (at, 1 << 62)) - 1
        return place >= 0 and self.quoted[place][0] <= at < self.quoted[place][1]


_RESULTS = (
    r"(?:^[ \t]*(?:previous_output\b|previous_command:|Observation:|Tool [Rr]esult:|```tool_output\b))"
    r"|<tool_(?:response|result|output)s?\b|<function_(?:results?|response)\b|\[TOOL_RESULTS\]"
    r"|<\|/?(?:tool_responses?|tool_results?|observation|START_TOOL_RESULT|ipython)\|>"
    r"|<\|start\|>(?:functions|tool|user)\b|<\|im_start\|>(?:tool|user)\b"
    r"|<\|start_header_id\|>(?:ipython|tool|user)\b|<[｜|]tool[▁_]outputs?[▁_]begin[｜|]>"
)
_INDENT = r"^[ \t]*"
_NEXT = lazy(
    # what can begin anywhere begins with one of a few letters: at all other places nothing is tried
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
    """Everything in `reply` that is no plain prose, in one walk: what is inside of one is not looked at."""
    found = _ScannedReply()
    at = 0
    while match := _NEXT.search(reply, at):
        at = max(_note_match(reply, match, found, offered), match.start() + 1)
    return found


def _note_match(reply: str, match: re.Match[str], found: _ScannedReply, offered: OfferedTools) -> int:
    """Note what begins at `match`; the place to go on from."""
    start = match.start()
    if match["result"]:
        found.results.append(start)
        return match.end()
    if match["fence"] and ("`" not in match["info"] or match["run"][0] == "~"):
        block = _block(reply, match)
        found.blocks.append(block)
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
        form = next(each for number, each in enumerate(FORMATS) if match[f"f{number}"] is not None)
        calls = read_calls(reply, match, form, offered)
        if calls is None:
            return match.end()
        begin = start + len(match[0]) - len(match[0].lstrip())
        found.marked.append(calls._replace(start=begin, token=form.token))
        end = calls.end
    found.quoted.append((start, end))
    return end


def _block(reply: str, match: re.Match[str]) -> _CodeBlock:
    run = match["run"]
    closing = re.compile(rf"^[ \t]*{re.escape(run[0])}{{{len(run)},}}[ \t]*$", re.MULTILINE)
    end = closing.search(reply, match.end())
    text = reply[match.end() : end.start() if end else len(reply)]
    info = (match["info"].split() or [""])[0].lower()
    return _CodeBlock(match.start(), end.end() if end else len(reply), info, text, end is not None)


_CUT = text("calls.cut_off")
_MAY_BE_EXAMPLE = text("calls.text_between")
"""Calls may be an example where other text stands between or behind them: nothing of it is carried out."""


@dataclass(frozen=True, slots=True)
class ReplyCalls:
    """Text and calls of a reply. `dropped`: invented results followed. `words_only`: nothing has the form of a call."""

    text: str
    calls: tuple[WrittenCall, ...] = ()
    dropped: bool = False
    words_only: bool = False


class _Act(NamedTuple):
    """One place of a reply that is made like calls."""

    start: int
    end: int
    said: JsonReply
    wrong: Text = NO_TEXT
    marked: bool = False
    alone: bool = True
    """Nothing but the end of a sentence stands before it in its line."""
    token: bool = False


@dataclass(frozen=True, slots=True)
class ReplyReader:
    """Reads replies. `own`: the model knows the text protocols. `cut`: cut off. `again`: asked for again."""

    offered: OfferedTools
    own: bool
    cut: bool = False
    again: bool = False

    def __call__(self, reply: str) -> ReplyCalls | UnreadableCall:
        """What `reply`, without its thoughts, says and calls."""
        if (whole := self._whole(reply)) is not None:
            return whole
        found = _scan_reply(reply, self.offered)
        for at in found.results:
            head = reply[:at]
            before = self._whole(head) or self._calls_at_end(head, _scan_reply(head, self.offered))
            if isinstance(before, ReplyCalls) and before.calls:
                return ReplyCalls(before.text, before.calls, dropped=True)
            break
        return self._calls_at_end(reply, found)

    # -- the whole reply ------------------------------------------------------------------------

    def _whole(self, reply: str) -> ReplyCalls | UnreadableCall | None:
        """Calls where nothing else stands in the reply; None where it is something else."""
        said = self._read_values(reply.strip().removeprefix("\ufeff"))
        if said is None:
            return None
        if isinstance(said, UnreadableCall):
            return UnreadableCall(_CUT) if self.cut else said
        if not self.own and not self.offered.knows(said.calls):
            return None
        return ReplyCalls(said.comment.strip() if self.own else "", said.calls)

    def _read_values(self, written: str) -> JsonReply | UnreadableCall | None:
        """What a text of values says; Wrong where it is meant as calls and cannot be read."""
        values = None if self.cut and _unclosed(written) else whole_values(written)
        if values is None:
            python = python_calls(written)
            if python is not None and self.offered.specs and self.offered.knows(python):
                return JsonReply(python)
            if self.cut and self._begins_like_calls(written):
                return UnreadableCall(_CUT)
            return None
        if isinstance(values, UnreadableCall):
            return values if self._begins_like_calls(written) else None
        found = [read_value(value, own=self.own) for value in values.values]
        told = [each for each in found if isinstance(each, JsonReply)]
        wrong = next((each for each in found if isinstance(each, UnreadableCall)), None)
        if wrong is not None:
            return wrong if self.own or told else None
        if not told:
            return None
        if len(told) < len(found):
            return UnreadableCall(text("calls.some_values"))
        calls = tuple(call for each in told for call in each.calls)
        closing = [each for each in told if each.calls] if calls else told  # the end comes later
        return JsonReply(
            calls, "\n".join(each.comment for each in closing if each.comment), any(each.own for each in told)
        )

    def _begins_like_calls(self, written: str) -> bool:
        """True where JSON that cannot be read begins like calls."""
        return (_OWN_KEYS if self.own else _CALL_KEYS).match(written.strip()) is not None

    # -- places in the reply --------------------------------------------------------------------

    def _calls_at_end(self, reply: str, found: _ScannedReply) -> ReplyCalls | UnreadableCall:
        acts = self._acts(reply, found)
        if not acts:
            if self.own and not reply.strip():
                return UnreadableCall(text("roles.no_json"))
            doubtful = not self.again and self._looks_like_calls(reply, found)
            return UnreadableCall(_MAY_BE_EXAMPLE) if doubtful else ReplyCalls(reply, words_only=True)
        ends = self._nothing(reply[acts[-1].end :])
        first = len(acts) - 1 if ends else len(acts)
        while ends and first and self._nothing(reply[acts[first - 1].end : acts[first].start]):
            first -= 1
        run, earlier = acts[first:], [act for act in acts[:first] if act.alone]
        if not run or not (run[0].alone or run[0].token) or earlier:
            insists = self.again and run and all(act.marked and act.alone for act in (*earlier, *run))
            if not insists:
                doubtful = not self.again and (earlier or run)
                return UnreadableCall(_MAY_BE_EXAMPLE) if doubtful else ReplyCalls(reply, words_only=True)
        if wrong := next((act.wrong for act in (*earlier, *run) if act.wrong), NO_TEXT):
            return UnreadableCall(_CUT if self.cut else wrong)
        if self.cut:
            return UnreadableCall(_CUT)
        return _join_calls(reply, [*earlier, *run])

    def _acts(self, reply: str, found: _ScannedReply) -> list[_Act]:
        acts: list[_Act] = []
        for mark in found.marked:
            said = JsonReply(mark.calls)
            known = self.offered.knows(mark.calls) and bool(mark.calls)
            if known or self.own or (mark.wrong and not mark.calls):
                follows = bool(acts) and self._nothing(reply[acts[-1].end : mark.start])
                alone = follows or _is_alone(reply, mark.start)
                acts.append(_Act(mark.start, mark.end, said, mark.wrong, True, alone, mark.token))
        for block in found.blocks:
            said = self._in_block(block)
            if isinstance(said, JsonReply) and (said.own or self.offered.knows(said.calls)):
                acts.append(_Act(block.start, block.end, said))
            elif isinstance(said, UnreadableCall) and self._nothing(reply[block.end :]):
                acts.append(_Act(block.start, block.end, JsonReply(()), said.problem))
        return sorted(acts)

    def _in_block(self, block: _CodeBlock) -> JsonReply | UnreadableCall | None:
        if block.info == "tool_code":
            calls = python_calls(block.text)
            return JsonReply(calls) if calls else None
        if block.info not in _JSON_BLOCKS:
            return None
        said = self._read_values(block.text)
        return (
            said
            if block.closed or not isinstance(said, JsonReply)
            else (UnreadableCall(_CUT) if self.cut else said)
        )

    def _nothing(self, written: str) -> bool:
        """Return True if `written` is only blanks, closing tokens, or the statement that all is done."""
        rest = written[skip_closing_tokens(written, 0) :].strip(" \t\r\n;,")
        if not rest or not self.own:
            return not rest
        values = whole_values(rest)
        if values is None or isinstance(values, UnreadableCall):
            return False
        said = [read_value(value, own=True) for value in values.values]
        return all(isinstance(each, JsonReply) and each.own and not each.calls for each in said)

    def _looks_like_calls(self, reply: str, found: _ScannedReply) -> bool:
        """True where JSON that stands in lines of its own, not quoted, is made like calls of tools."""
        at = 0
        while match := _LINE_OF_JSON.search(reply, at):
            at = match.end() + 1
            if found.quotes(match.start()):
                continue
            values = values_from(reply, match.start())
            if isinstance(values, UnreadableCall) or not values.values:
                continue
            said = read_value(values.values[0], own=self.own)
            if isinstance(said, JsonReply) and said.calls and (said.own or self.offered.knows(said.calls)):
                return True
            at = max(at, values.end)
        return False


def _join_calls(reply: str, acts: list[_Act]) -> ReplyCalls:
    """The calls in their order, and what is said around them."""
    parts: list[str] = []
    at = 0
    for act in acts:
        parts += [reply[at : act.start].strip(), act.said.comment.strip()]
        at = act.end
    calls = tuple(call for act in acts for call in act.said.calls)
    return ReplyCalls("\n".join(part for part in parts if part.strip(" ;,")), calls)


def _is_alone(reply: str, at: int) -> bool:
    """True where nothing but the end of a sentence stands before a place in its line."""
    before = reply[reply.rfind("\n", 0, at) + 1 : at].rstrip(" \t")
    return not before or before[-1] in ".!?…。！？"


def _unclosed(written: str) -> bool:
    """True where a reply that was cut off may have gone on: it is not one value."""
    values = values_from(written)
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

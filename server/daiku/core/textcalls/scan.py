"""Scan a reply once from start to end for code blocks, quotations, marked calls and invented results."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from daiku.core.text.patterns import lazy
from daiku.core.textcalls.marked import MarkedCalls
from daiku.core.textcalls.marks import FORMATS, read_calls
from daiku.core.textcalls.parsed_calls import OfferedTools
from daiku.dataclass import dataclass, field


class CodeBlock(NamedTuple):
    """A block of code with its fences."""

    start: int
    end: int
    info: str
    text: str
    closed: bool


@dataclass(slots=True)
class ScannedReply:
    """What stands where in a reply."""

    blocks: list[CodeBlock] = field(default_factory=list[CodeBlock])
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


def scan_reply(reply: str, offered: OfferedTools) -> ScannedReply:
    """Everything in `reply` that is no plain prose, in one walk: what is inside of one is not looked at."""
    found = ScannedReply()
    at = 0
    while match := _NEXT.search(reply, at):
        at = max(_note_match(reply, match, found, offered), match.start() + 1)
    return found


def _note_match(reply: str, match: re.Match[str], found: ScannedReply, offered: OfferedTools) -> int:
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


def _block(reply: str, match: re.Match[str]) -> CodeBlock:
    run = match["run"]
    closing = re.compile(rf"^[ \t]*{re.escape(run[0])}{{{len(run)},}}[ \t]*$", re.MULTILINE)
    end = closing.search(reply, match.end())
    text = reply[match.end() : end.start() if end else len(reply)]
    info = (match["info"].split() or [""])[0].lower()
    return CodeBlock(match.start(), end.end() if end else len(reply), info, text, end is not None)

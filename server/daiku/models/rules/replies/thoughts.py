"""Separation of thinking and answer in a streamed or complete reply."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from daiku.texts.rules.patterns import lazy

_TAGS = ("think", "thinking", "thought", "reasoning", "seed:think", "antthinking")
PAIRS: dict[str, str] = {
    **{f"<{tag}>": f"</{tag}>" for tag in _TAGS},
    "[think]": "[/think]",
    "<|start_thinking|>": "<|end_thinking|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|inner_prefix|>": "<|inner_suffix|>",
    "<|channel>thought": "<channel|>",
    "◁think▷": "◁/think▷",
}
"""Opening and closing marks of thinking in the templates of open models, in lower case."""
_CLOSERS = tuple(PAIRS.values())
_ANSWERS = ("<|start_response|>", "<|begin_of_solution|>")
_ANSWER_ENDS = ("<|end_response|>", "<|end_of_solution|>", "<|end|>", "<|return|>")
"""End marks of an answer, which are dropped. An end mark counts only after a start mark."""
_HARMONY = ("<|start|>assistant", "<|channel|>")
_MARKS = (*PAIRS, *_ANSWERS, *_CLOSERS, *_HARMONY)


def _join_pattern(marks: Iterable[str]) -> str:
    return "|".join(map(re.escape, marks))


_TO_MESSAGE = r"(?:(?!<\|message\|>)[\s\S]){0,170}"
_MARK = lazy(
    rf"(?P<open>{_join_pattern(PAIRS)})|(?P<answer>{_join_pattern(_ANSWERS)})|(?P<end>{_join_pattern(_ANSWER_ENDS)})"
    rf"|(?P<close>{_join_pattern(_CLOSERS)})|(?P<channel>(?:<\|start\|>assistant{_TO_MESSAGE}?)?<\|channel\|>\s*"
    rf"(?P<name>analysis|final|commentary){_TO_MESSAGE}<\|message\|>)",
    re.IGNORECASE,
)
"""Marks that count at the start of a line. Of harmony's channels, analysis is thinking and the others are the answer."""
_CHANNEL_SO_FAR = lazy(rf"(?:<\|start\|>assistant|<\|channel\|>){_TO_MESSAGE}\Z", re.IGNORECASE)
_CHANNEL_END = lazy(r"<\|(?:end|start|channel|return|call)\|>")
_ANSWER_END = lazy(_join_pattern(_ANSWER_ENDS), re.IGNORECASE)
_CLOSER = {opener: lazy(re.escape(closer), re.IGNORECASE) for opener, closer in PAIRS.items()}
_CLOSES_LINE = lazy(rf"(?:{_join_pattern(_CLOSERS)})(?=[ \t\r]*$)", re.IGNORECASE)
_ANY_MARK = lazy(_join_pattern(_MARKS), re.IGNORECASE)
_LAST_MARK = lazy(r"[<\[◁][^<\[◁\n]{0,30}$")
_MAY_START_IN_LINE = lazy(r"[<\[◁](?:(?<!\[)|(?=/|$))")
"""Possible start of a mark within a line of an answer; at the start of a line there are more."""
_SPECIAL = lazy(r"[<\[`~◁]")
_FENCE = lazy(r"(?P<run>`{3,}|~{3,})(?:(?<=`)[^`\n]{0,200}(?:\n|\Z)|(?<=~))")
_FENCE_SO_FAR = lazy(r"(?:`{1,200}|~{1,200}|`{3,200}[^`\n]{0,200})\Z")
_ARGUMENTS = lazy(r"<(/?)(?:[a-z]+:)?(?:tool_call|function_calls|function|invoke|parameter|arg_value)\b")
"""Tags of tool calls; the arguments between them may be the text of a file, for example."""


class ThoughtPiece(NamedTuple):
    """Part of a reply. `void`: all of the answer before it, `text`, turned out to be thinking."""

    kind: Literal["answer", "thought", "void"]
    text: str


class SplitReply(NamedTuple):
    """A complete reply, split into answer and thinking."""

    answer: str
    thought: str


class ThoughtSplitter:
    """Incremental splitter of a streamed reply; the output does not depend on how the reply is split into pieces.

    Thinking starts at the start of the reply or of a line, outside code and arguments of calls, and may run to the
    end. A closing mark that was never opened turns everything before it into thinking.
    """

    def __init__(self) -> None:
        self._held = ""
        self._answered: list[str] = []
        self._fresh = True  # the answer is blank so far
        self._blank = True  # the current line is blank so far
        self._fence = ""  # opening fence of the current code block
        self._line: list[str] = []  # the current line from its first tag on
        self._arguments = False  # True between tags of a call
        self._drop = False  # True after a mark that starts an answer
        self._closing: re.Pattern[str] | None = None
        self._before = ""
        self._gap = ""
        self._thoughts = 0

    @property
    def can_pass_through(self) -> bool:
        """True if text without line breaks and possible marks can be passed on as answer."""
        return not (self._fresh or self._held or self._closing or self._blank)

    def _accept_plain(self, text: str) -> bool:
        """Accept `text` if all of it is answer, by a cheap check; return False if it must be processed."""
        if self._fresh or self._held or self._closing:
            return False
        is_within_line = not self._blank and "\n" not in text
        if (_MAY_START_IN_LINE if is_within_line else _SPECIAL).search(text):
            return False
        self._answered.append(text)
        self._advance(text)
        return True

    def feed(self, text: str) -> Sequence[ThoughtPiece]:
        """Process the next text and return the pieces that are decided now."""
        if self._accept_plain(text):
            return (ThoughtPiece("answer", text),)
        self._held += text
        return self._process(last=False)

    def close(self) -> Sequence[ThoughtPiece]:
        """Return the pieces that were undecided at the end of the reply."""
        return self._process(last=True)

    def _process(self, *, last: bool) -> list[ThoughtPiece]:
        out: list[ThoughtPiece] = []
        while self._held and (
            self._process_thought(out, last) if self._closing else self._process_answer(out, last)
        ):
            pass
        return out

    # -- thoughts -------------------------------------------------------------------------------

    def _open_thought(self, closing: re.Pattern[str]) -> None:
        self._closing, self._before = closing, ""
        self._gap = "\n\n" if self._thoughts else ""
        self._thoughts += 1

    def _process_thought(self, out: list[ThoughtPiece], last: bool) -> bool:
        assert self._closing is not None
        match = self._closing.search(self._held)
        while match and self._is_quoted(match):
            match = self._closing.search(self._held, match.end())
        needs_more = match is not None and match.end() == len(self._held) and self._follows_backtick(match)
        if match and (last or not needs_more):
            self._emit_thought(out, self._held[: match.start()].rstrip())
            harmony = self._closing is _CHANNEL_END and match[0] in ("<|start|>", "<|channel|>")
            self._held = self._held[match.start() if harmony else match.end() :]
            self._closing, self._blank = None, True
            return True
        end = len(self._held) if last else self._find_undecided(match)
        end = len(self._held[:end].rstrip())  # blanks before the end of a thought are dropped
        self._emit_thought(out, self._held[:end])
        self._held = "" if last else self._held[end:]
        return False

    def _follows_backtick(self, mark: re.Match[str]) -> bool:
        return (self._held[: mark.start()] or self._before)[-1:] == "`"

    def _is_quoted(self, mark: re.Match[str]) -> bool:
        return self._follows_backtick(mark) and self._held[mark.end() : mark.end() + 1] == "`"

    def _find_undecided(self, match: re.Match[str] | None) -> int:
        match = match or _LAST_MARK.search(self._held)
        return match.start() if match else len(self._held)

    def _emit_thought(self, out: list[ThoughtPiece], text: str) -> None:
        if not self._before:
            text = text.lstrip()
        if text:
            out.append(ThoughtPiece("thought", text if self._before else self._gap + text))
            self._before = text[-1]

    # -- the answer -----------------------------------------------------------------------------

    def _process_answer(self, out: list[ThoughtPiece], last: bool) -> bool:
        if not self._blank:
            return self._process_line(out, last)
        rest = self._held.lstrip(None if self._fresh else " \t")
        blanks = len(self._held) - len(rest)
        if blanks and (not self._fresh or (last and not rest)):
            self._emit(out, blanks)
            blanks = 0
        if not rest:
            return False
        if self._fence:
            return self._process_code_line(out, last)
        if not self._arguments:
            handled = self._process_mark(out, rest, last)
            if handled is not None:
                return handled
        if not last and _FENCE_SO_FAR.match(rest):
            return False
        fence = _FENCE.match(rest)
        self._fence = fence["run"] if fence else ""
        self._emit(out, blanks + (fence.end() if fence else 1))
        return True

    def _process_mark(self, out: list[ThoughtPiece], rest: str, last: bool) -> bool | None:
        """Process the mark at the start of the line. Return False to wait for more text, None if there is no mark."""
        if rest[0] not in "<[◁":
            return None
        match = _MARK.match(rest)
        if match is None:
            start = rest[:40].lower()
            marks = (*_MARKS, *(_ANSWER_ENDS if self._drop else ()))
            needs_more = any(mark.startswith(start) for mark in marks) or _CHANNEL_SO_FAR.match(rest)
            return False if needs_more and not last else None
        if match["close"]:
            return self._process_unopened(out, rest, match["close"], last)
        is_answer = match["answer"] or (match["end"] and self._drop)
        if match["open"]:
            self._open_thought(_CLOSER[match["open"].lower()])
        elif match["channel"] and match["name"].lower() == "analysis":
            self._open_thought(_CHANNEL_END)
        elif is_answer or (match["channel"] and "to=" not in match["channel"]):
            self._drop = True
        else:
            return None
        self._held = rest[match.end() :]
        return True

    def _process_unopened(self, out: list[ThoughtPiece], rest: str, closer: str, last: bool) -> bool | None:
        """Process a closing mark at the start of a line that was never opened."""
        following = rest[len(closer) :].lstrip(" \t")
        if self._thoughts and not self._fresh:  # then it counts only if it is alone in its line
            if not following and not last:
                return False
            if following and not following.startswith(("\n", "\r")):
                return None
        self._held = rest[len(closer) :]
        self._void_answer(out)
        return True

    def _void_answer(self, out: list[ThoughtPiece]) -> None:
        if answered := "".join(self._answered).strip():
            out.append(ThoughtPiece("void", ("\n\n" if self._thoughts else "") + answered))
        self._answered.clear()
        self._thoughts += 1
        self._fresh = self._blank = True

    def _process_code_line(self, out: list[ThoughtPiece], last: bool) -> bool:
        """Process the start of a line of code. The only mark that counts there is the closing fence."""
        line, newline, _ = self._held.partition("\n")
        run = line.rstrip()
        if not run.strip(self._fence[0]):
            if not newline and not last:
                return False
            if len(run) >= len(self._fence):
                self._fence = ""
        self._emit(out, len(line) or 1)
        return True

    def _process_line(self, out: list[ThoughtPiece], last: bool) -> bool:
        """Process the rest of a line: drop the end mark of an answer, and handle the end of unopened thinking."""
        line, newline, _ = self._held.partition("\n")
        length = len(line) + len(newline)
        if self._fence or self._arguments or not _SPECIAL.search(line):
            self._emit(out, length)
            return True
        if self._drop and (end := _ANSWER_END.search(line)):
            self._emit(out, end.start())
            self._held, self._blank = self._held[len(end[0]) :], True
            return True
        if not self._thoughts and newline and (match := _CLOSES_LINE.search(line)):
            self._emit(out, match.start())
            self._held = self._held[len(match[0]) :]
            self._void_answer(out)
            return True
        if not newline and not last and (match := _LAST_MARK.search(line)):
            tail = match[0].rstrip().lower()
            if any(mark.startswith(tail) for mark in (*_CLOSERS, *(_ANSWER_ENDS if self._drop else ()))):
                self._emit(out, match.start())
                return False
        self._emit(out, length)
        return True

    def _emit(self, out: list[ThoughtPiece], count: int) -> None:
        text, self._held = self._held[:count], self._held[count:]
        if self._fresh and self._thoughts:
            text = text.lstrip()
        if not text:
            return
        self._fresh = self._fresh and not text.strip()
        self._answered.append(text)
        self._advance(text)
        if out and out[-1].kind == "answer":
            out[-1] = ThoughtPiece("answer", out[-1].text + text)
        else:
            out.append(ThoughtPiece("answer", text))

    def _advance(self, text: str) -> None:
        """Update the position in the answer: the line, and whether it is between tags of a call."""
        first, *more = text.split("\n")
        for number, part in enumerate((first, *more)):
            if number:
                if not self._fence:
                    for tag in _ARGUMENTS.finditer("".join(self._line)):
                        self._arguments = not tag[1]
                self._line.clear()
                self._blank = True
            self._blank = self._blank and not part.strip()
            if self._line or "<" in part:
                self._line.append(part)


def may_hold_thoughts(reply: str) -> bool:
    """Return False if the complete reply certainly contains no mark."""
    return _ANY_MARK.search(reply) is not None


def split_thoughts(reply: str) -> SplitReply:
    """Return the answer and the thinking of a complete reply."""
    splitter = ThoughtSplitter()
    answer: list[str] = []
    thought: list[str] = []
    parts = (
        reply[position : position + _PIECE_CHARACTERS] for position in range(0, len(reply), _PIECE_CHARACTERS)
    )
    for piece in (*(piece for part in parts for piece in splitter.feed(part)), *splitter.close()):
        match piece.kind:
            case "answer":
                answer.append(piece.text)
            case "thought":
                thought.append(piece.text)
            case "void":
                answer.clear()
                thought.append(piece.text)
    return SplitReply("".join(answer), "".join(thought))


_PIECE_CHARACTERS = 2000
"""Characters per piece, limited because the held text is copied for each line."""

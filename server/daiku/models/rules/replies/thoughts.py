"""What a model only thinks, told apart from what it answers, as the text streams or in the whole."""

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
"""How thoughts open and close in the templates of open models, in lower case."""
_CLOSERS = tuple(PAIRS.values())
_ANSWERS = ("<|start_response|>", "<|begin_of_solution|>")
_ANSWER_ENDS = ("<|end_response|>", "<|end_of_solution|>", "<|end|>", "<|return|>")
"""Marks around an answer: they say nothing. An end counts only behind a beginning."""
_HARMONY = ("<|start|>assistant", "<|channel|>")
_MARKS = (*PAIRS, *_ANSWERS, *_CLOSERS, *_HARMONY)


def _any_of(marks: Iterable[str]) -> str:
    return "|".join(map(re.escape, marks))


_TO_MESSAGE = r"(?:(?!<\|message\|>)[\s\S]){0,170}"
_MARK = lazy(
    rf"(?P<open>{_any_of(PAIRS)})|(?P<answer>{_any_of(_ANSWERS)})|(?P<end>{_any_of(_ANSWER_ENDS)})"
    rf"|(?P<close>{_any_of(_CLOSERS)})|(?P<channel>(?:<\|start\|>assistant{_TO_MESSAGE}?)?<\|channel\|>\s*"
    rf"(?P<name>analysis|final|commentary){_TO_MESSAGE}<\|message\|>)",
    re.IGNORECASE,
)
"""A mark that counts at the start of a line; of harmony's channels analysis is thought, the others are the answer."""
_CHANNEL_SO_FAR = lazy(rf"(?:<\|start\|>assistant|<\|channel\|>){_TO_MESSAGE}\Z", re.IGNORECASE)
_CHANNEL_END = lazy(r"<\|(?:end|start|channel|return|call)\|>")
_ANSWER_END = lazy(_any_of(_ANSWER_ENDS), re.IGNORECASE)
_CLOSER = {opener: lazy(re.escape(closer), re.IGNORECASE) for opener, closer in PAIRS.items()}
_CLOSES_LINE = lazy(rf"(?:{_any_of(_CLOSERS)})(?=[ \t\r]*$)", re.IGNORECASE)
_ANY_MARK = lazy(_any_of(_MARKS), re.IGNORECASE)
_LAST_MARK = lazy(r"[<\[◁][^<\[◁\n]{0,30}$")
_IN_LINE = lazy(r"[<\[◁](?:(?<!\[)|(?=/|$))")
"""What may begin a mark within a line of an answer; at the start of one there are more."""
_SPECIAL = lazy(r"[<\[`~◁]")
_FENCE = lazy(r"(?P<run>`{3,}|~{3,})(?:(?<=`)[^`\n]{0,200}(?:\n|\Z)|(?<=~))")
_FENCE_SO_FAR = lazy(r"(?:`{1,200}|~{1,200}|`{3,200}[^`\n]{0,200})\Z")
_ARGUMENTS = lazy(r"<(/?)(?:[a-z]+:)?(?:tool_call|function_calls|function|invoke|parameter|arg_value)\b")
"""Tags of calls: between them stand arguments, the text of a file for example."""


class ThoughtPiece(NamedTuple):
    """A part of a reply. `void`: all of the answer that came before, `text`, was a thought after all."""

    kind: Literal["answer", "thought", "void"]
    text: str


class Split(NamedTuple):
    """A whole reply: what it answers and what was only thought."""

    answer: str
    thought: str


class ThoughtSplitter:
    """Splits a streamed reply; the output does not depend on how the reply is split.

    A thought opens at the start of the reply or of a line, outside code and arguments of calls, and may run to the
    end. A closing mark that was never opened makes a thought of all that came before.
    """

    def __init__(self) -> None:
        self._held = ""
        self._said: list[str] = []
        self._fresh = True  # nothing but blanks was answered
        self._blank = True  # nothing but blanks stands in this line
        self._fence = ""  # what opened the block of code
        self._line: list[str] = []  # from its first tag on
        self._arguments = False  # between tags of a call
        self._drop = False  # behind a mark that begins an answer
        self._closing: re.Pattern[str] | None = None
        self._before = ""
        self._gap = ""
        self._thoughts = 0

    @property
    def is_calm(self) -> bool:
        """Return True if text without line breaks and possible marks can be passed on as answer."""
        return not (self._fresh or self._held or self._closing or self._blank)

    def _plain(self, text: str) -> bool:
        """Take `text` where all of it is answer, at nearly no cost; False where it has to be looked at."""
        if self._fresh or self._held or self._closing:
            return False
        within = not self._blank and "\n" not in text
        if (_IN_LINE if within else _SPECIAL).search(text):
            return False
        self._said.append(text)
        self._advance(text)
        return True

    def feed(self, text: str) -> Sequence[ThoughtPiece]:
        """Process the next text and return the pieces that are certain now."""
        if self._plain(text):
            return (ThoughtPiece("answer", text),)
        self._held += text
        return self._pieces(last=False)

    def close(self) -> Sequence[ThoughtPiece]:
        """Return the pieces that were still undecided at the end of the reply."""
        return self._pieces(last=True)

    def _pieces(self, *, last: bool) -> list[ThoughtPiece]:
        out: list[ThoughtPiece] = []
        while self._held and (self._thought(out, last) if self._closing else self._answer(out, last)):
            pass
        return out

    # -- thoughts -------------------------------------------------------------------------------

    def _open(self, closing: re.Pattern[str]) -> None:
        self._closing, self._before = closing, ""
        self._gap = "\n\n" if self._thoughts else ""
        self._thoughts += 1

    def _thought(self, out: list[ThoughtPiece], last: bool) -> bool:
        assert self._closing is not None
        found = self._closing.search(self._held)
        while found and self._is_quoted(found):
            found = self._closing.search(self._held, found.end())
        waits = found is not None and found.end() == len(self._held) and self._behind_tick(found)
        if found and (last or not waits):
            self._think(out, self._held[: found.start()].rstrip())
            harmony = self._closing is _CHANNEL_END and found[0] in ("<|start|>", "<|channel|>")
            self._held = self._held[found.start() if harmony else found.end() :]
            self._closing, self._blank = None, True
            return True
        upto = len(self._held) if last else self._undecided(found)
        upto = len(self._held[:upto].rstrip())  # blanks before the end of a thought say nothing
        self._think(out, self._held[:upto])
        self._held = "" if last else self._held[upto:]
        return False

    def _behind_tick(self, mark: re.Match[str]) -> bool:
        return (self._held[: mark.start()] or self._before)[-1:] == "`"

    def _is_quoted(self, mark: re.Match[str]) -> bool:
        return self._behind_tick(mark) and self._held[mark.end() : mark.end() + 1] == "`"

    def _undecided(self, found: re.Match[str] | None) -> int:
        found = found or _LAST_MARK.search(self._held)
        return found.start() if found else len(self._held)

    def _think(self, out: list[ThoughtPiece], text: str) -> None:
        if not self._before:
            text = text.lstrip()
        if text:
            out.append(ThoughtPiece("thought", text if self._before else self._gap + text))
            self._before = text[-1]

    # -- the answer -----------------------------------------------------------------------------

    def _answer(self, out: list[ThoughtPiece], last: bool) -> bool:
        if not self._blank:
            return self._in_line(out, last)
        rest = self._held.lstrip(None if self._fresh else " \t")
        blanks = len(self._held) - len(rest)
        if blanks and (not self._fresh or (last and not rest)):
            self._emit(out, blanks)
            blanks = 0
        if not rest:
            return False
        if self._fence:
            return self._in_block(out, last)
        if not self._arguments:
            acted = self._mark(out, rest, last)
            if acted is not None:
                return acted
        if not last and _FENCE_SO_FAR.match(rest):
            return False
        fence = _FENCE.match(rest)
        self._fence = fence["run"] if fence else ""
        self._emit(out, blanks + (fence.end() if fence else 1))
        return True

    def _mark(self, out: list[ThoughtPiece], rest: str, last: bool) -> bool | None:
        """Act on the mark that begins the line: False to wait for more of it, None where there is none."""
        if rest[0] not in "<[◁":
            return None
        found = _MARK.match(rest)
        if found is None:
            low = rest[:40].lower()
            marks = (*_MARKS, *(_ANSWER_ENDS if self._drop else ()))
            waits = any(mark.startswith(low) for mark in marks) or _CHANNEL_SO_FAR.match(rest)
            return False if waits and not last else None
        if found["close"]:
            return self._unopened(out, rest, found["close"], last)
        is_answer = found["answer"] or (found["end"] and self._drop)
        if found["open"]:
            self._open(_CLOSER[found["open"].lower()])
        elif found["channel"] and found["name"].lower() == "analysis":
            self._open(_CHANNEL_END)
        elif is_answer or (found["channel"] and "to=" not in found["channel"]):
            self._drop = True
        else:
            return None
        self._held = rest[found.end() :]
        return True

    def _unopened(self, out: list[ThoughtPiece], rest: str, closer: str, last: bool) -> bool | None:
        """A closing mark at the start of a line that nothing opened."""
        behind = rest[len(closer) :].lstrip(" \t")
        if self._thoughts and not self._fresh:  # then it counts alone in its line only
            if not behind and not last:
                return False
            if behind and not behind.startswith(("\n", "\r")):
                return None
        self._held = rest[len(closer) :]
        self._void(out)
        return True

    def _void(self, out: list[ThoughtPiece]) -> None:
        if said := "".join(self._said).strip():
            out.append(ThoughtPiece("void", ("\n\n" if self._thoughts else "") + said))
        self._said.clear()
        self._thoughts += 1
        self._fresh = self._blank = True

    def _in_block(self, out: list[ThoughtPiece], last: bool) -> bool:
        """Process the start of a line of code: the only mark that counts there closes the block."""
        line, newline, _ = self._held.partition("\n")
        run = line.rstrip()
        if not run.strip(self._fence[0]):
            if not newline and not last:
                return False
            if len(run) >= len(self._fence):
                self._fence = ""
        self._emit(out, len(line) or 1)
        return True

    def _in_line(self, out: list[ThoughtPiece], last: bool) -> bool:
        """Process the rest of a line: the end of an answer is dropped, that of an unopened thought counts."""
        line, newline, _ = self._held.partition("\n")
        length = len(line) + len(newline)
        if self._fence or self._arguments or not _SPECIAL.search(line):
            self._emit(out, length)
            return True
        if self._drop and (end := _ANSWER_END.search(line)):
            self._emit(out, end.start())
            self._held, self._blank = self._held[len(end[0]) :], True
            return True
        if not self._thoughts and newline and (found := _CLOSES_LINE.search(line)):
            self._emit(out, found.start())
            self._held = self._held[len(found[0]) :]
            self._void(out)
            return True
        if not newline and not last and (found := _LAST_MARK.search(line)):
            tail = found[0].rstrip().lower()
            if any(mark.startswith(tail) for mark in (*_CLOSERS, *(_ANSWER_ENDS if self._drop else ()))):
                self._emit(out, found.start())
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
        self._said.append(text)
        self._advance(text)
        if out and out[-1].kind == "answer":
            out[-1] = ThoughtPiece("answer", out[-1].text + text)
        else:
            out.append(ThoughtPiece("answer", text))

    def _advance(self, text: str) -> None:
        """Follow the position in the answer: the line, and whether it is between tags of a call."""
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
    """False where a look at the whole reply can tell that there is no mark in it."""
    return _ANY_MARK.search(reply) is not None


def split_thoughts(reply: str) -> Split:
    """The answer and the thoughts of a whole reply; a reply without thoughts is its own answer."""
    splitter = ThoughtSplitter()
    answer: list[str] = []
    thought: list[str] = []
    parts = (reply[at : at + _PART] for at in range(0, len(reply), _PART))
    for piece in (*(piece for part in parts for piece in splitter.feed(part)), *splitter.close()):
        match piece.kind:
            case "answer":
                answer.append(piece.text)
            case "thought":
                thought.append(piece.text)
            case "void":
                answer.clear()
                thought.append(piece.text)
    return Split("".join(answer), "".join(thought))


_PART = 2000
"""Characters fed at once: what is held back is copied for each line."""

"""What a model only thinks, told apart from what it answers, as the text streams or in the whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from daiku.core.replies.answerposition import FENCE, FENCE_SO_FAR, AnswerPosition
from daiku.core.replies.thoughtmarks import (
    ANSWERS,
    ANY_MARK,
    CHANNEL_ENDS,
    CLOSER_PATTERNS,
    CLOSERS,
    CLOSES_LINE,
    FIRST_OF_MARKS,
    HARMONY,
    HARMONY_ENDS,
    IN_LINE,
    LAST_MARK,
    LONGEST_HEAD,
    MESSAGE,
    PAIRS,
)
from daiku.core.text.patterns import lazy

_SPECIAL = lazy(r"[<\[`~◁]")


class ThoughtPiece(NamedTuple):
    """A part of a reply. `void`: all of the answer that came before, `text`, was a thought after all."""

    kind: Literal["answer", "thought", "void"]
    text: str


class Split(NamedTuple):
    """A whole reply: what it answers and what was only thought."""

    answer: str
    thought: str


class ThoughtSplitter:
    """Feed it a reply in any pieces; what comes out together is the same however it was cut.

    A thought opens at the start of the reply or of a line, outside blocks of code and the arguments of
    calls; anywhere else its marks are text. One that is not closed goes on to the end. A closing mark
    that was never opened (the template opened it) makes a thought of all that came before.
    """

    __slots__ = (
        "_at",
        "_before",
        "_closing",
        "_drop",
        "_fresh",
        "_gap",
        "_head",
        "_held",
        "_said",
        "_thoughts",
    )

    def __init__(self) -> None:
        self._held = ""
        self._said: list[str] = []
        self._fresh = True  # nothing but blanks was answered
        self._at = AnswerPosition()
        self._drop: tuple[str, ...] = ()
        self._closing: re.Pattern[str] | None = None
        self._head = False  # the head of a channel is still to come
        self._before = ""
        self._gap = ""
        self._thoughts = 0

    @property
    def is_calm(self) -> bool:
        """Return whether text without line breaks and possible markers can be passed on as answer text
        unprocessed."""
        return not (self._fresh or self._held or self._closing or self._at.blank or self._at.info)

    def _plain(self, text: str) -> bool:
        """Take `text` where all of it is answer, at nearly no cost; False where it has to be looked at."""
        if self._fresh or self._held or self._closing:
            return False
        within = not self._at.blank and not self._at.info and "\n" not in text
        if (IN_LINE if within else _SPECIAL).search(text):
            return False
        self._said.append(text)
        if "\n" in text:
            self._at.after_lines(text)
        elif self._at.blank or self._at.line:
            self._at.within_line(text)
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

    def _open(self, closing: re.Pattern[str], *, head: bool = False) -> None:
        self._closing, self._head, self._before = closing, head, ""
        self._gap = "\n\n" if self._thoughts else ""
        self._thoughts += 1

    def _thought(self, out: list[ThoughtPiece], last: bool) -> bool:
        assert self._closing is not None
        if self._head:
            at = self._held.find(MESSAGE)
            if at < 0 and not last and len(self._held) <= LONGEST_HEAD:
                return False
            self._held = self._held[at + len(MESSAGE) :] if at >= 0 else self._held
            self._head = False
            return True
        found = self._closing.search(self._held)
        while found and self._is_quoted(found):
            found = self._closing.search(self._held, found.end())
        waits = found is not None and found.end() == len(self._held) and self._behind_tick(found)
        if found and (last or not waits):
            self._think(out, self._held[: found.start()].rstrip())
            harmony = self._closing is CHANNEL_ENDS and found[0] in ("<|start|>", "<|channel|>")
            self._held = self._held[found.start() if harmony else found.end() :]
            self._closing, self._at.blank = None, True
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
        found = found or LAST_MARK.search(self._held)
        return found.start() if found else len(self._held)

    def _think(self, out: list[ThoughtPiece], text: str) -> None:
        if not self._before:
            text = text.lstrip()
        if text:
            out.append(ThoughtPiece("thought", text if self._before else self._gap + text))
            self._before = text[-1]

    # -- the answer -----------------------------------------------------------------------------

    def _answer(self, out: list[ThoughtPiece], last: bool) -> bool:
        if not self._at.blank:
            return self._in_line(out, last)
        rest = self._held.lstrip(None if self._fresh else " \t")
        blanks = len(self._held) - len(rest)
        if blanks and (not self._fresh or (last and not rest)):
            self._emit(out, blanks)
            blanks = 0
        if not rest:
            return False
        if self._at.fence:
            return self._in_block(out, last)
        if not self._at.arguments:
            acted = self._mark(out, rest, last)
            if acted is not None:
                return acted
        run = FENCE_SO_FAR.match(rest)
        if run and run.end() == len(rest) and not last:
            return False
        fence = FENCE.match(rest)
        self._emit(out, blanks + (fence.end() if fence else 1))
        if fence:
            self._at.fence, self._at.info = fence[0], True
        return True

    def _mark(self, out: list[ThoughtPiece], rest: str, last: bool) -> bool | None:
        """Act on the mark that begins the line: False to wait for more of it, None where there is none."""
        low = rest[:40].lower()
        if not self._drop and low[0] not in FIRST_OF_MARKS:
            return None
        for opener, closer in PAIRS.items():
            if low.startswith(opener):
                self._held = rest[len(opener) :]
                self._open(CLOSER_PATTERNS[closer])
                return True
        for opener, ends in ANSWERS.items():
            if low.startswith(opener):
                self._held, self._drop = rest[len(opener) :], ends
                return True
        for end in self._drop:
            if low.startswith(end):
                self._held = rest[len(end) :]
                return True
        for closer in CLOSERS:
            if low.startswith(closer):
                return self._unopened(out, rest, closer, last)
        if low.startswith(HARMONY):
            return self._channel(rest, last)
        marks = (*PAIRS, *ANSWERS, *CLOSERS, *HARMONY, *self._drop)
        return False if not last and any(mark.startswith(low) for mark in marks) else None

    def _channel(self, rest: str, last: bool) -> bool | None:
        """A channel of harmony: analysis is thought, the final one and a preamble are the answer."""
        at = rest.find(MESSAGE, 0, LONGEST_HEAD)
        if at < 0:
            return None if last or len(rest) > LONGEST_HEAD else False
        head = rest[:at].partition("<|channel|>")[2].strip()
        if head.startswith("analysis"):
            self._held = rest
            self._open(CHANNEL_ENDS, head=True)
            return True
        if not head.startswith(("final", "commentary")) or "to=" in rest[:at]:
            return None
        self._held, self._drop = rest[at + len(MESSAGE) :], HARMONY_ENDS
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
        self._fresh = self._at.blank = True

    def _in_block(self, out: list[ThoughtPiece], last: bool) -> bool:
        """The start of a line of code: the only mark that counts there closes the block."""
        run = FENCE_SO_FAR.match(self._held)
        if run and run[0][0] == self._at.fence[0]:
            line, newline, _ = self._held.partition("\n")
            bare = not line[run.end() :].strip()
            if bare and not newline and not last:
                return False
            if bare and run.end() >= len(self._at.fence):
                self._at.fence = ""
                self._emit(out, len(line))
                return True
        self._emit(out, 1)
        return True

    def _in_line(self, out: list[ThoughtPiece], last: bool) -> bool:
        """The rest of a line: what ends an answer is dropped, what ends an unopened thought counts."""
        line, newline, _ = self._held.partition("\n")
        length = len(line) + len(newline)
        if self._at.info and self._at.fence[:1] == "`" and (tick := line.find("`")) >= 0:
            self._emit(out, tick + 1)  # code in the line, not a block: its rest is prose
            return bool(self._held)
        if self._at.fence or self._at.arguments or not _SPECIAL.search(line):
            self._emit(out, length)
            return bool(self._held)
        for end in self._drop:
            if (at := line.lower().find(end)) >= 0:
                self._emit(out, at)
                self._held, self._at.blank = self._held[len(end) :], True
                return bool(self._held)
        if not self._thoughts and newline and (found := CLOSES_LINE.search(line)):
            self._emit(out, found.start())
            self._held = self._held[found.end() - found.start() :]
            self._void(out)
            return True
        if not newline and not last and (found := LAST_MARK.search(line)):
            tail = found[0].rstrip().lower()
            if any(mark.startswith(tail) for mark in (*self._drop, *CLOSERS)):
                self._emit(out, found.start())
                return False
        self._emit(out, length)
        return bool(self._held)

    def _emit(self, out: list[ThoughtPiece], count: int) -> None:
        text, self._held = self._held[:count], self._held[count:]
        if not text:
            return
        if self._fresh and self._thoughts:
            text = text.lstrip()
        if self._fresh and text.strip():
            self._fresh = False
        if text:
            self._said.append(text)
            if "\n" in text:
                self._at.after_lines(text)
            else:
                self._at.within_line(text)
            if out and out[-1].kind == "answer":
                out[-1] = ThoughtPiece("answer", out[-1].text + text)
            else:
                out.append(ThoughtPiece("answer", text))


def may_hold_thoughts(reply: str) -> bool:
    """False where a look at the whole reply can tell that there is no mark in it."""
    return ANY_MARK.search(reply) is not None


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

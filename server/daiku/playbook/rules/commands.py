"""The commands that a lesson advises, and the commands that a run tried."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from daiku.domain.chunks import Chunk
from daiku.domain.events import ToolCallEvent, ToolResponse
from daiku.playbook.rules.replaced import find_replaced_commands
from daiku.team.rules.proof.evidence import CANNOT_RUN, find_exit_code, normalize_command
from daiku.team.rules.proof.failures import is_missing
from daiku.texts.rules.patterns import lazy

MOST_NAMED = 32
"""Maximum number of code spans that are read from one lesson."""
_NAMED = lazy(
    r"```[a-z]*\n(?P<block>.*?)```|(?P<ticks>`+)(?P<span>[^`\n]+?)(?P=ticks)|^ {0,4}\$ (?P<line>[^\n]+)$",
    re.DOTALL | re.MULTILINE,
)
_WARNED_BEFORE = lazy(
    r"(?:instead\s+of|rather\s+than|in\s+place\s+of|\bnot|\bnever|\bavoid|\bwithout|\bno\s+longer|n't|n’t)"
    r"(?:\s+(?:just|only|ever|use|using|run|running|call|calling|do|the|a|plain|bare|with)){0,3}\s*[\"'“(]?\s*$",
    re.IGNORECASE,
)
_WARNED_AFTER = lazy(
    r"\s*[\"'”)]?\s*(?:\(?[^.;,。、`]{0,24}?\)?\s*)?(?:(?:always\s+|only\s+)?(?:fails?\b|failed\b|breaks?\b|hangs?\b)"
    r"|(?:does|do|did|will|is|was|can)\s*(?:not|n't|n’t)\b|(?:is|was)\s+(?:wrong|broken|outdated|obsolete|missing)\b"
    r"|no\s+longer\b|(?:ではなく|でなく|じゃなく|の代わり|は使わ|を使わ|は失敗|が失敗|は動か|は動き|は実行し(?:ない|ません)))",
    re.IGNORECASE,
)
_FOUND_SOMETHING = lazy(
    r"\b[1-9]\d*\s+(?:tests?\s+|specs?\s+|examples?\s+|assertions?\s+)?(?:failed|failing|failures?|errors?|problems?|warnings?)\b"
    r"|\b(?:failed|failures|errors|problems)\s*[:=]\s*[1-9]|^FAILED\s|^--- FAIL|\bAssertionError\b|\berror(?:\[E\d+\]|\sTS\d+)"
    r"|^[^\s:]+:\d+(?::\d+)?:?\s+(?:error|warning)\b|\btest result: FAILED\b",
    re.IGNORECASE | re.MULTILINE,
)
"""Output of a check that ran and found something: its command is right."""
_HOLE = lazy(r"^(?:<.*|\{.*|\[.*|\.{3}|…|\$\{.*)$")
_PROGRAM = lazy(r"^(?:\.{0,2}/)?[A-Za-z][\w.+/-]*$")
_BETWEEN = frozenset({"&&", "||", "|", ";", "&", "(", "{"})
_WRAPPERS = frozenset(
    ["time", "sudo", "env", "nice", "exec", "command", "timeout", "nohup", "uv", "run", "npx", "poetry", "pdm", "hatch", "bundle"]
)  # fmt: skip
_SETTING = lazy(r"\w+=|-|\d+[smh]?$")


class TriedCommand(NamedTuple):
    """A command that ended. `seq` is the number of the chunk with its result."""

    command: str
    exit_code: int
    seq: int
    output: str = ""

    @property
    def passed(self) -> bool:
        return self.exit_code == 0

    @property
    def is_right(self) -> bool:
        """Return True if the command could run and found something."""
        return self.exit_code not in CANNOT_RUN and _FOUND_SOMETHING.search(self.output) is not None

    @property
    def is_missing(self) -> bool:
        """Return True if there is no such program, or no such part of it."""
        return is_missing(self.exit_code, self.output)


def find_advised_commands(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the words of each command that a lesson advises to run; those that it warns of are left out."""
    commands: list[tuple[str, ...]] = []
    for span in list(_NAMED.finditer(text))[:MOST_NAMED]:
        if _is_warned_of(text, span.start(), span.end()):
            continue
        inside = span["block"] or span["span"] or span["line"] or ""
        lines = (normalize_command(line.strip().removeprefix("$ ")) for line in inside.splitlines())
        commands += [words for line in lines if (words := _parse_words(line))]
    return tuple(dict.fromkeys(commands))


def looks_like_a_command(words: Sequence[str]) -> bool:
    """Return True for a program with arguments; False for a name or an expression."""
    return (
        len(words) > 1 and not any(mark in word for word in words for mark in "(){}=;") and words[0].islower()
    )


def find_tried_commands(chunks: Iterable[Chunk]) -> tuple[TriedCommand, ...]:
    """Return the commands that ended, those of nested runs included, in the order of their ends."""
    calls: dict[str, str] = {}
    tried: list[TriedCommand] = []
    for chunk in chunks:
        match chunk.event:
            case ToolCallEvent(tool="shell/run", id=call, args=args) if not args.get("background"):
                calls[call] = str(args.get("command", ""))
            case ToolResponse(outcome="done" | "failed", id=call, data=data) as response if call in calls:
                code = find_exit_code(data)
                if code is not None:
                    output = (data or {}).get("output")
                    printed = output if isinstance(output, str) else str(response.result)
                    tried.append(TriedCommand(calls[call], code, chunk.seq, printed))
            case _:
                pass
    return tuple(tried)


def runs_command(line: str, words: Sequence[str]) -> bool:
    """Return True if a command line runs the command that begins with these words, also behind wrappers and settings."""
    parts = normalize_command(line).replace(";", " ; ").split()
    begins = True
    for at, part in enumerate(parts):
        if begins and tuple(parts[at : at + len(words)]) == tuple(words):
            return True
        begins = part in _BETWEEN or (begins and (part in _WRAPPERS or _SETTING.match(part) is not None))
    return False


def find_replacements(chunks: Sequence[Chunk], runs: Sequence[TriedCommand]) -> Mapping[int, TriedCommand]:
    """Return the command that passed in place of each failed one, by the `seq` of the failure.

    These are the commands that a lesson by rule would name. A command that passed at some time, or that is a
    check that found something, was not replaced.
    """
    by_seq = {each.seq: each for each in runs}
    passed_once = {normalize_command(each.command) for each in runs if each.passed}
    passed_instead: dict[int, TriedCommand] = {}
    for lesson in find_replaced_commands(chunks):
        if lesson.why != "command_replaced":
            continue
        *failed, passed = (by_seq.get(place.seq) for place in lesson.evidence)
        for each in failed:
            if each is None or passed is None or each.is_right:
                continue
            if normalize_command(each.command) not in passed_once:
                passed_instead[each.seq] = passed
    return passed_instead


def _is_warned_of(text: str, start: int, end: int) -> bool:
    return _WARNED_BEFORE.search(text[max(0, start - 48) : start]) is not None or (
        _WARNED_AFTER.match(text[end : end + 64]) is not None
    )


def _parse_words(line: str) -> tuple[str, ...]:
    """Return the words of a command up to its first placeholder; empty if it cannot be a command."""
    words: list[str] = []
    for word in line.split(" "):
        if _HOLE.match(word):
            break
        words.append(word)
    return tuple(words) if words and _PROGRAM.match(words[0]) else ()

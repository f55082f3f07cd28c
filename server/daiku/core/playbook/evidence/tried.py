"""The commands that a run tried: which passed, and which passed in another's place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from daiku.core.playbook.lessons.replaced import replaced_commands
from daiku.core.proof.evidence import CANNOT_RUN, exit_code_of, plain_command
from daiku.core.proof.failures import is_missing
from daiku.core.text.patterns import lazy
from daiku.domain.chunks import Chunk
from daiku.domain.events import Edit, ToolCallEvent, ToolResponse

_FOUND_SOMETHING = lazy(
    r"\b[1-9]\d*\s+(?:tests?\s+|specs?\s+|examples?\s+|assertions?\s+)?(?:failed|failing|failures?|errors?|problems?|warnings?)\b"
    r"|\b(?:failed|failures|errors|problems)\s*[:=]\s*[1-9]|^FAILED\s|^--- FAIL|\bAssertionError\b|\berror(?:\[E\d+\]|\sTS\d+)"
    r"|^[^\s:]+:\d+(?::\d+)?:?\s+(?:error|warning)\b|\btest result: FAILED\b",
    re.IGNORECASE | re.MULTILINE,
)
"""What a check prints that could be run and found something: the command is right, the work was not yet."""
LEAST_WORD = 3
_PARTS = lazy(r"[A-Za-z][A-Za-z0-9]+")
_COMMON = frozenset(
    {"run", "exec", "npx", "uv", "poetry", "python", "python3", "node", "bash", "sudo", "env"}
)
"""Words that commands share which have nothing to do with one another."""


class Tried(NamedTuple):
    """A command that was run to its end. `edits`: so many had been made before it."""

    command: str
    exit_code: int
    seq: int
    call_id: str
    output: str = ""
    edits: int = 0

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @property
    def cannot_run(self) -> bool:
        """Whether there is no such command: a shell, or the program that it is a part of, says so."""
        return is_missing(self.exit_code, self.output)


def tried_of(chunks: Iterable[Chunk]) -> tuple[Tried, ...]:
    """The commands that these chunks tell of, nested runs' too, in the order in which they ended. What runs in the
    background, was refused, or was cut off is none: nothing is known of its end."""
    called: dict[str, ToolCallEvent] = {}
    found: list[Tried] = []
    edits = 0
    for chunk in chunks:
        match chunk.event:
            case ToolCallEvent(tool="shell/run") as call if not call.args.get("background"):
                called[call.id] = call
            case ToolResponse(outcome="done" | "failed") as said if said.id in called:
                code = exit_code_of(said.data)
                if code is not None:
                    output = (said.data or {}).get("output")
                    text = output if isinstance(output, str) else str(said.result)
                    command = str(called[said.id].args.get("command", ""))
                    found.append(Tried(command, code, chunk.seq, said.id, text, edits))
            case Edit():
                edits += 1
            case _:
                pass
    return tuple(found)


def follows(command: str, words: Sequence[str]) -> bool:
    """Whether a command line is, or contains, the command that these words begin; what only runs another program and
    settings may stand before it."""
    said = plain_command(command).replace(";", " ; ").split()
    size, begins = len(words), True
    for at, word in enumerate(said):
        if begins and tuple(said[at : at + size]) == tuple(words):
            return True
        begins = word in _BETWEEN or (begins and (word in _WRAPPERS or _SETTING.match(word) is not None))
    return False


_BETWEEN = frozenset({"&&", "||", "|", ";", "&", "(", "{"})
_WRAPPERS = frozenset(
    ["time", "sudo", "env", "nice", "exec", "command", "timeout", "nohup", "uv", "run", "npx", "poetry", "pdm", "hatch", "bundle"]
)  # fmt: skip
_SETTING = lazy(r"\w+=|-|\d+[smh]?$")


def replaced(chunks: Sequence[Chunk], tried: Sequence[Tried]) -> Mapping[int, Tried]:
    """The commands that passed in the place of failed ones, by the number of the failure: those that a lesson by rule
    would be about, and what passed next where a shell could not run the failed one at all. Never in the place of one
    that passed at some time, nor of one that failed because it found something."""
    by_seq = {each.seq: each for each in tried}
    found = {each.seq: other for each in tried if (other := _next_that_passed(each, tried)) is not None}
    for lesson in replaced_commands(chunks):
        if lesson.why == "command_replaced":
            *failed, passed = (by_seq.get(place.seq) for place in lesson.evidence)
            found |= {each.seq: passed for each in failed if each is not None and passed is not None}
    worked = {plain_command(each.command) for each in tried if each.ok}
    return {
        seq: other
        for seq, other in found.items()
        if plain_command(by_seq[seq].command) not in worked and not _did_its_work(by_seq[seq])
    }


def _did_its_work(failed: Tried) -> bool:
    return failed.exit_code not in CANNOT_RUN and _FOUND_SOMETHING.search(failed.output) is not None


def _next_that_passed(failed: Tried, tried: Sequence[Tried]) -> Tried | None:
    """What passed next, where the failed command could not be run, or was for the same by a telling word and no edit
    came between."""
    lacking = failed.exit_code in CANNOT_RUN
    for each in tried:
        if failed.ok or each.seq <= failed.seq or not each.ok or not _acts(each.command):
            continue
        if lacking or (each.edits == failed.edits and _related(failed.command, each.command)):
            return each
    return None


def _acts(command: str) -> bool:
    """Whether its passing says something: it does not only look, and its exit code is that of its work."""
    from daiku.core.proof.failures import CONSTANT, INFORMS, hides_exit_code, is_lookup  # when used

    words = command.split()
    informs = any(word in INFORMS for word in words[1:])
    return not (
        informs or not words or words[0] in CONSTANT or is_lookup(command) or hides_exit_code(command)
    )


def _related(failed: str, later: str) -> bool:
    """Whether two commands are for the same: the same work in other words, or a telling word of both."""
    from daiku.core.proof.failures import same_work  # when used

    return same_work(failed, later) or not _telling(failed).isdisjoint(_telling(later))


def _telling(command: str) -> frozenset[str]:
    words = (part.casefold() for part in _PARTS.findall(command))
    return frozenset(word for word in words if len(word) >= LEAST_WORD and word not in _COMMON)

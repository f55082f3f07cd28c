"""Commands that failed, with the one that passed in their place or that made them pass: lessons about how to run what."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from daiku.dataclass import dataclass
from daiku.domain.chunks import Chunk
from daiku.domain.events import Edit, Restored, Review, ToolCallEvent, ToolResponse
from daiku.domain.playbook import LearntFrom
from daiku.playbook.rules.lessons.intents import (
    Intent,
    asks_for_less,
    differ_in_folder,
    differs_in_form,
    intent_of,
    same_intent,
)
from daiku.playbook.rules.lessons.proposal import Proposal, Taught
from daiku.team.rules.proof.check_strength import is_test_command, tests_ran
from daiku.team.rules.proof.evidence import CANNOT_RUN, exit_code_of, plain_command
from daiku.team.rules.proof.failures import CONSTANT, INFORMS, hides_exit_code
from daiku.texts.rules.patterns import lazy

NEAR = 8
"""So many commands later the one that passes still stands in the failed one's place."""
MOST_FAILED = 3
"""Failed commands that one lesson names."""
_WRONG_CALL = lazy(
    r"command not found|not recognized as|No module named|ModuleNotFoundError|Cannot find module"
    r"|[Uu]nrecognized (?:option|argument|subcommand)|[Uu]nknown (?:option|command|argument|flag|subcommand|target)"
    r"|[Nn]o such (?:option|command|subcommand)|unexpected argument|[Mm]issing script|No rule to make target|no such command"
    r"|[Uu]sage:|is not installed|could not find|executable file not found|invalid option"
)
"""How programs say that they were called wrongly, not that what they look at is wrong. Only whether it is there counts."""
_NO_FILE = lazy(
    r"No such file or directory|[Ff]ile or directory not found|[Pp]ermission denied|can't open file"
)
"""How they say that of a file they were named, which may be their own script or what they were to look at."""
_SAYS = {
    "test": "Run the tests by `{}`",
    "lint": "Lint by `{}`",
    "format": "Format by `{}`",
    "types": "Check the types by `{}`",
    "build": "Build by `{}`",
    "install": "Install what the project needs by `{}`",
    "generate": "Generate by `{}`",
    "start": "Start it by `{}`",
    "other": "Use `{}`",
}


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that ended, when, and how. `edits`: so many changes of files came before it."""

    command: str
    intent: Intent
    seq: int
    place: LearntFrom
    passed: bool
    wrongly_called: bool
    lacked_file: bool
    """It was called wrongly in no more than that a file is not there."""
    edits: int


def replaced_commands(chunks: Sequence[Chunk]) -> Iterator[Proposal]:
    """A lesson for each command that failed, as it stood, and did not pass later without help."""
    ran = _commands(chunks)
    told: set[str] = set()
    replaced: set[int] = set()
    for at, passed in enumerate(ran):
        if not passed.passed or passed.command in told:
            continue
        failed = [each for each in _failed_before(ran, at) if each.seq not in replaced]
        if failed:
            told.add(passed.command)
            replaced.update(each.seq for each in failed)
            yield _in_place(passed, failed)
        elif (helped := _made_pass(ran, at)) is not None and helped[1].command not in told:
            told.add(helped[1].command)
            yield _before(passed, *helped)


def _commands(chunks: Sequence[Chunk]) -> list[Ran]:
    """The commands that can be a lesson, in the order in which they ended."""
    calls: dict[str, tuple[Chunk, str]] = {}
    found: list[Ran] = []
    edits = 0
    for chunk in chunks:
        match chunk.event:
            case ToolCallEvent(id=call, tool="shell/run", args=args) if not args.get("background"):
                calls[call] = chunk, plain_command(str(args.get("command", "")))
            case Edit() | Restored() | Review(decision="reject"):
                edits += 1
            case ToolResponse(id=call, tool="shell/run") as response if call in calls:
                begun, command = calls.pop(call)
                code = exit_code_of(response.data)
                intent = intent_of(command)
                if code is None or intent is None:
                    continue
                place = LearntFrom(session_id=chunk.session, run_id=chunk.run, seq=chunk.seq)
                if _says_nothing(command) or (code == 0 and _ran_nothing(command, response)):
                    continue
                wrongly = code in CANNOT_RUN or (code != 0 and _says(_WRONG_CALL, response))
                lacked = code != 0 and not wrongly and _says(_NO_FILE, response)
                ran = Ran(command, intent, begun.seq, place, code == 0, wrongly or lacked, lacked, edits)
                found.append(ran)
            case _:
                pass
    return found


def _says_nothing(command: str) -> bool:
    """Whether the exit code of a command is not that of its work, or its work is only to tell of itself."""
    words = command.split()
    return words[0] in CONSTANT or hides_exit_code(command) or not INFORMS.isdisjoint(words)


def _says(pattern: re.Pattern[str], response: ToolResponse) -> bool:
    return pattern.search(_output(response)) is not None


def _ran_nothing(command: str, response: ToolResponse) -> bool:
    return is_test_command(command) and tests_ran(_output(response)) == 0


def _output(response: ToolResponse) -> str:
    output = (response.data or {}).get("output")
    return output if isinstance(output, str) else response.result


def _failed_before(ran: Sequence[Ran], at: int) -> list[Ran]:
    """The commands near before, for the same, that failed in whose place this one passed."""
    passed = ran[at]
    worked = {each.command for each in ran if each.passed}
    found: dict[str, Ran] = {}
    for each in ran[max(0, at - NEAR) : at]:
        if each.passed or each.command in worked or not _for_the_same(each, passed):
            continue
        if _is_replaced(each, passed):
            found[each.command] = each
    return list(found.values())[-MOST_FAILED:]


def _for_the_same(failed: Ran, passed: Ran) -> bool:
    """Return True if both are for the same, or a file was looked for in the wrong folder."""
    misplaced = failed.wrongly_called and differ_in_folder(failed.command, passed.command)
    return misplaced or same_intent(failed.intent, passed.intent)


def _is_replaced(failed: Ran, passed: Ran) -> bool:
    """Whether it was the form of the command that failed, not what it looked at, and the other form is no smaller task."""
    same_files = failed.edits == passed.edits
    if differs_in_form(failed.intent, passed.intent):
        return failed.wrongly_called or (same_files and not asks_for_less(failed.intent, passed.intent))
    if failed.lacked_file and not differ_in_folder(failed.command, passed.command):
        return False  # another thing was done: `cp a x`, `cp b x`
    return failed.wrongly_called and same_files


def _made_pass(ran: Sequence[Ran], at: int) -> tuple[Ran, Ran] | None:
    """The failed run of this very command, and the one command between that made it pass: nothing else happened."""
    passed = ran[at]
    earlier = next(
        (n for n in range(at - 1, max(-1, at - NEAR - 1), -1) if ran[n].command == passed.command), None
    )
    if earlier is None or ran[earlier].passed or ran[earlier].edits != passed.edits:
        return None
    between = [each for each in ran[earlier + 1 : at] if each.passed]
    if len({each.command for each in between}) != 1 or same_intent(between[0].intent, passed.intent):
        return None
    return ran[earlier], between[0]


def _in_place(passed: Ran, failed: Sequence[Ran]) -> Proposal:
    says = _SAYS[passed.intent.purpose].format(passed.command)
    fails = "; ".join(f"`{each.command}` fails here" for each in failed)
    return _proposal("command_replaced", f"{says}; {fails}.", (*failed, passed), failed)


def _before(passed: Ran, failed: Ran, helped: Ran) -> Proposal:
    content = f"Run `{helped.command}` before `{passed.command}`, which fails without it."
    return _proposal("command_before", content, (failed, helped, passed), ())


def _proposal(why: Taught, content: str, ran: Sequence[Ran], failed: Sequence[Ran]) -> Proposal:
    commands = tuple(dict.fromkeys(each.command for each in reversed(ran)))
    known = ran[-1].intent.purpose != "other"
    return Proposal(
        section="build_and_test_commands" if known else "tool_usage",
        content=content,
        why=why,
        evidence=tuple(each.place for each in ran),
        keywords=commands,
        failed=tuple(each.command for each in failed),
    )

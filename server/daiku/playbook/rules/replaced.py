"""Lessons from failed commands, and the commands that passed in their place or made them pass."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from daiku.dataclass import dataclass
from daiku.domain.chunks import Chunk, top_runs
from daiku.domain.events import Edit, Restored, Review, ToolCallEvent, ToolResponse
from daiku.domain.playbook import LearntFrom
from daiku.playbook.rules.proposals import Proposal, Taught, get_place
from daiku.team.rules.proof.check_strength import count_tests, is_test_command
from daiku.team.rules.proof.evidence import CANNOT_RUN, find_exit_code, normalize_command
from daiku.team.rules.proof.failures import CONSTANT, INFORMS, hides_exit_code
from daiku.team.rules.proof.intents import (
    Intent,
    asks_for_less,
    differ_in_folder,
    differs_in_form,
    find_intent,
    have_same_intent,
)
from daiku.texts.rules.patterns import lazy

NEAR = 8
"""Maximum distance between a failed command and the one that replaces it, in commands."""
MOST_FAILED = 3
"""Maximum number of failed commands in a lesson."""
_WRONG_CALL = lazy(
    r"command not found|not recognized as|No module named|ModuleNotFoundError|Cannot find module"
    r"|[Uu]nrecognized (?:option|argument|subcommand)|[Uu]nknown (?:option|command|argument|flag|subcommand|target)"
    r"|[Nn]o such (?:option|command|subcommand)|unexpected argument|[Mm]issing script|No rule to make target|no such command"
    r"|[Uu]sage:|is not installed|could not find|executable file not found|invalid option"
)
"""Messages of programs that were called wrongly. Only their presence matters."""
_NO_FILE = lazy(
    r"No such file or directory|[Ff]ile or directory not found|[Pp]ermission denied|can't open file"
)
"""Messages about a missing file, which may be the script itself or what it reads."""
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

_CHECKS = frozenset({"test", "lint", "types", "build"})
"""Purposes of the commands that a lesson recommends because they passed."""


@dataclass(frozen=True, slots=True)
class CommandRun:
    """A command that ended. `edits`: number of changes of files before it."""

    command: str
    intent: Intent
    seq: int
    place: LearntFrom
    passed: bool
    wrongly_called: bool
    lacked_file: bool
    """Whether a missing file is the only sign of a wrong call."""
    edits: int


def find_replaced_commands(chunks: Sequence[Chunk]) -> Iterator[Proposal]:
    """Yield a lesson for each command that failed and did not pass later without help, and for passed checks."""
    commands = _list_commands(chunks)
    reported, helped = set[str](), set[str]()
    replaced: set[int] = set()
    for at, passed in enumerate(commands):
        if not passed.passed or passed.command in reported:
            continue
        failed = [each for each in _find_failed_before(commands, at) if each.seq not in replaced]
        if failed:
            reported.add(passed.command)
            replaced.update(each.seq for each in failed)
            yield _propose_replacement(passed, failed)
        elif (helper := _find_helper(commands, at)) is not None and helper[1].command not in reported:
            reported.add(helper[1].command)
            helped.add(passed.command)
            yield _propose_before(passed, *helper)
    yield from _find_passed_checks(
        [each for each in commands if each.command not in reported | helped], chunks
    )


def _find_passed_checks(commands: Sequence[CommandRun], chunks: Sequence[Chunk]) -> Iterator[Proposal]:
    """Yield a lesson for each check of the whole project that passed in two runs of the user."""
    tops, first_runs, done = top_runs(chunks), dict[str, CommandRun](), set[str]()
    for each in commands:
        has_paths = any("/" in word or "." in word for word in each.intent.rest)
        if not each.passed or each.command in done or has_paths or each.intent.purpose not in _CHECKS:
            continue
        first = first_runs.setdefault(each.command, each)
        if tops[first.place.run_id] != tops[each.place.run_id]:
            done.add(each.command)
            says = _SAYS[each.intent.purpose].format(each.command)
            yield _build_proposal("passed_twice", f"{says}.", (first, each), ())


def _list_commands(chunks: Sequence[Chunk]) -> list[CommandRun]:
    """Return the commands that a lesson can be about, in the order of their ends."""
    calls: dict[str, tuple[Chunk, str]] = {}
    commands: list[CommandRun] = []
    edits = 0
    for chunk in chunks:
        match chunk.event:
            case ToolCallEvent(id=call_id, tool="shell/run", args=args) if not args.get("background"):
                calls[call_id] = chunk, normalize_command(str(args.get("command", "")))
            case Edit() | Restored() | Review(decision="reject"):
                edits += 1
            case ToolResponse(id=call_id, tool="shell/run") as response if call_id in calls:
                call_chunk, command = calls.pop(call_id)
                code = find_exit_code(response.data)
                intent = find_intent(command)
                if code is None or intent is None:
                    continue
                if _is_uninformative(command) or (code == 0 and _has_run_nothing(command, response)):
                    continue
                wrong = code in CANNOT_RUN or (code != 0 and _has_output(_WRONG_CALL, response))
                lacks_file = code != 0 and not wrong and _has_output(_NO_FILE, response)
                judged = (code == 0, wrong or lacks_file, lacks_file, edits)
                commands.append(CommandRun(command, intent, call_chunk.seq, get_place(chunk), *judged))
            case _:
                pass
    return commands


def _is_uninformative(command: str) -> bool:
    """Return True if the exit code of a command says nothing, or it only prints information."""
    words = command.split()
    return words[0] in CONSTANT or hides_exit_code(command) or not INFORMS.isdisjoint(words)


def _has_output(pattern: re.Pattern[str], response: ToolResponse) -> bool:
    return pattern.search(_get_output(response)) is not None


def _has_run_nothing(command: str, response: ToolResponse) -> bool:
    return is_test_command(command) and count_tests(_get_output(response)) == 0


def _get_output(response: ToolResponse) -> str:
    output = (response.data or {}).get("output")
    return output if isinstance(output, str) else response.result


def _find_failed_before(commands: Sequence[CommandRun], at: int) -> list[CommandRun]:
    """Return the failed commands with the same intent that the passed command at `at` replaced."""
    passed = commands[at]
    passed_lines = {each.command for each in commands if each.passed}
    failed: dict[str, CommandRun] = {}
    for each in commands[max(0, at - NEAR) : at]:
        if each.passed or each.command in passed_lines or not _is_same_task(each, passed):
            continue
        if _is_replaced(each, passed):
            failed[each.command] = each
    return list(failed.values())[-MOST_FAILED:]


def _is_same_task(failed: CommandRun, passed: CommandRun) -> bool:
    """Return True if both have the same intent, or a file was in the wrong folder."""
    misplaced = failed.wrongly_called and differ_in_folder(failed.command, passed.command)
    return misplaced or have_same_intent(failed.intent, passed.intent)


def _is_replaced(failed: CommandRun, passed: CommandRun) -> bool:
    """Return True if the form of the command failed, and the passed one does not ask for less."""
    same_files = failed.edits == passed.edits
    if differs_in_form(failed.intent, passed.intent):
        return failed.wrongly_called or (same_files and not asks_for_less(failed.intent, passed.intent))
    if failed.lacked_file and not differ_in_folder(failed.command, passed.command):
        return False  # a different task: `cp a x`, `cp b x`
    return failed.wrongly_called and same_files


def _find_helper(commands: Sequence[CommandRun], at: int) -> tuple[CommandRun, CommandRun] | None:
    """Return the failed run of the same command, and the only other command between; None if there is none."""
    passed = commands[at]
    earlier = next(
        (n for n in range(at - 1, max(-1, at - NEAR - 1), -1) if commands[n].command == passed.command), None
    )
    if earlier is None or commands[earlier].passed or commands[earlier].edits != passed.edits:
        return None
    between = [each for each in commands[earlier + 1 : at] if each.passed]
    if len({each.command for each in between}) != 1 or have_same_intent(between[0].intent, passed.intent):
        return None
    return commands[earlier], between[0]


def _propose_replacement(passed: CommandRun, failed: Sequence[CommandRun]) -> Proposal:
    says = _SAYS[passed.intent.purpose].format(passed.command)
    fails = "; ".join(f"`{each.command}` fails here" for each in failed)
    return _build_proposal("command_replaced", f"{says}; {fails}.", (*failed, passed), failed)


def _propose_before(passed: CommandRun, failed: CommandRun, helper: CommandRun) -> Proposal:
    content = f"Run `{helper.command}` before `{passed.command}`, which fails without it."
    return _build_proposal("command_before", content, (failed, helper, passed), ())


def _build_proposal(
    why: Taught, content: str, commands_ran: Sequence[CommandRun], failed: Sequence[CommandRun]
) -> Proposal:
    commands = tuple(dict.fromkeys(each.command for each in reversed(commands_ran)))
    has_purpose = commands_ran[-1].intent.purpose != "other"
    return Proposal(
        section="build_and_test_commands" if has_purpose else "tool_usage",
        content=content,
        why=why,
        evidence=tuple(each.place for each in commands_ran),
        keywords=commands,
        failed=tuple(each.command for each in failed),
    )

"""What the runner ran so far, read from its conversation: commands, results, open failures, what still waits."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from daiku.core.proof.failures import CommandRun, is_lookup, open_failures
from daiku.domain.base import JsonObject
from daiku.domain.messages import AssistantMessage, Message, ToolMessage
from daiku.texts.text import Text, joined, text


def queue_metadata(commands: Sequence[str], note: JsonObject | None = None) -> JsonObject:
    """Build the message data that lists `commands` still to be run, and a `note` on what is being repaired."""
    waiting: list[JsonValue] = list(commands)
    return {"daiku": {"then": waiting, **(note or {})}}


def commands_of(here: Sequence[Message]) -> tuple[CommandRun, ...]:
    """Every command of shell/run with its result, in order."""
    asked: dict[str, tuple[str, bool, str]] = {}
    for m in here:
        if isinstance(m, AssistantMessage):
            told = m.opaque.get("daiku")
            stead = str(told.get("stead", "")) if isinstance(told, dict) else ""
            for call in m.calls:
                if call.tool == "shell/run":
                    command = str(call.args.get("command", ""))
                    asked[call.id] = (command, queued_commands(m) is not None, stead)
    found: list[CommandRun] = []
    for m in here:
        if isinstance(m, ToolMessage) and m.call_id in asked:
            command, listed, stead = asked[m.call_id]
            found.append(CommandRun(command, m.ok, m.text, m.call_id, listed, stead, m.exit_code))
    return tuple(found)


def open_failure(here: Sequence[Message]) -> CommandRun | None:
    """Return the latest failed command that is not fixed yet."""
    return next(reversed(open_failures(commands_of(here))), None)


def counts_as_attempt(each: CommandRun) -> bool:
    """Return whether a command was on the reply's list, or did more than only read."""
    return each.listed or not is_lookup(each.command)


def repairs_used(here: Sequence[Message]) -> int:
    """Count the repairs made so far: every failure after the first, or the replies marked as a repair,
    whichever is more."""
    failures = sum(not each.ok and counts_as_attempt(each) for each in commands_of(here))
    made = sum(
        isinstance(told := m.opaque.get("daiku"), dict) and told.get("repair") is True
        for m in here
        if isinstance(m, AssistantMessage)
    )
    return max(failures - 1, made)


def queued_commands(message: AssistantMessage) -> tuple[str, ...] | None:
    """Return the commands that a runner's reply listed to be run; None if it listed none."""
    told = message.opaque.get("daiku")
    then = told.get("then") if isinstance(told, dict) else None
    return tuple(str(command) for command in then) if isinstance(then, list) else None


def waiting_commands(here: Sequence[Message]) -> tuple[str, ...] | None:
    """The commands of the reply's list that are still to be run; None where there is no list."""
    said = (queued_commands(m) for m in reversed(here) if isinstance(m, AssistantMessage))
    return next((then for then in said if then is not None), None)


def outcome_lines(ran: Sequence[CommandRun]) -> Text:
    """Each command with what came of it, one line each."""
    return joined("lines", [text("roles.ran", command=each.command, outcome=_outcome(each)) for each in ran])


def _outcome(ran: CommandRun) -> Text:
    if ran.exit_code is not None:
        return text("team.exit_code", code=ran.exit_code)
    return text("roles.started") if ran.ok else text("roles.not_run")

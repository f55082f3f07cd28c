"""The checks of a step as calls: those that are still to be made, and what fails in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from daiku.core.cut import cut_middle
from daiku.core.evidence import EVERYWHERE, diagnosed_place, plain_command, unproven
from daiku.core.state import State
from daiku.core.teamlog import Taken, log_of
from daiku.domain.base import JsonObject
from daiku.domain.handovers import CommandOutcome, Proof

OUTPUT_SHARE = 6000
"""Characters of a failed command's output that the next attempt is told."""


class Do(NamedTuple):
    """One call, and the words that go with it."""

    tool: str
    args: JsonObject
    text: str = ""


def unrun(state: State, checks: tuple[str, ...], since: tuple[Taken, ...]) -> Iterator[Do]:
    """The checks that are not shown and were not tried since the last edit of this attempt. One that a
    restart cut short was not tried: to look again does no harm."""
    tried = {_key(t.call.tool, t.call.args) for t in since if t.outcome != "interrupted"}
    for check, _ in unproven(checks, state.done):
        do = check_call(check)
        if _key(do.tool, do.args) not in tried:
            yield do


def _key(tool: str, args: JsonObject) -> tuple[str, str]:
    return tool, plain_command(str(args.get("command", args.get("path", ""))))


def check_call(check: str) -> Do:
    """The call that shows an acceptance check."""
    place = diagnosed_place(check)
    if place is None:
        return Do("shell/run", {"command": check}, f"Check: `{check}`")
    one_file = place != EVERYWHERE and not any(c in place for c in "*?[") and "." in place.rpartition("/")[2]
    return Do("editor/diagnostics", {"path": place} if one_file else {}, f"Check: {check}")


def failed_checks(state: State, checks: tuple[str, ...]) -> list[str]:
    """What fails, with exit code and output. Diagnostics that nobody can show here are the person's."""
    problems: list[str] = []
    for check, proof in unproven(checks, state.done):
        if proof is not None:
            problems.append(_shown(state, check, proof))
        elif diagnosed_place(check) is None:
            problems.append(f"`{check}` could not be run: {_answer(state, check)}")
    return problems


def _shown(state: State, check: str, proof: Proof) -> str:
    if proof.kind != "exit_code":
        return f"{check}: {proof.value} errors in {proof.subject or 'the project'}."
    outcome = next((c for c in reversed(state.done.commands) if c.call_id == proof.ref), None)
    return told_outcome(outcome) if outcome is not None else f"`{check}` ended with exit code {proof.value}."


def told_outcome(outcome: CommandOutcome) -> str:
    output = cut_middle(outcome.output.rstrip(), OUTPUT_SHARE) or "(no output)"
    return f"`{outcome.command}` ended with exit code {outcome.exit_code}:\n{output}"


def _answer(state: State, check: str) -> str:
    return next((t.text for t in reversed(log_of(state)) if t.call.args.get("command") == check), "no answer")

"""Build the tool calls for a step's checks that are still to be run, and describe the failed ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from daiku.domain.base import JsonObject
from daiku.domain.runs import ApprovalMode
from daiku.domain.work.handovers import CommandOutcome, Proof
from daiku.domain.work.plans import Plan, Step
from daiku.guard.rules.commands.judge import LOOKING, read_only
from daiku.run.rules.state.state import State
from daiku.team.rules.proof.checks import find_time_limit, is_read_only_check, predict_exit_status
from daiku.team.rules.proof.evidence import (
    EVERYWHERE,
    find_unproven_checks,
    normalize_command,
    parse_diagnostics_check,
)
from daiku.team.rules.record import AnsweredCall, list_answered_calls
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import NO_TEXT, Text, text

TIMED_OUT = 124
"""Exit code of a command that timed out."""
CHECKING = ("shell/run", "editor/diagnostics")
"""Tools that run checks."""
OUTPUT_SHARE = 6000
"""Maximum characters of a failed command's output in the next attempt's prompt."""


class TeamCall(NamedTuple):
    """One call of the team, with its text for the user."""

    tool: str
    args: JsonObject
    text: Text = NO_TEXT
    asks: tuple[Text, ...] = ()
    """For a question to the user: the question and its choices."""


def build_handoff(agent: str, request: str, words: Text) -> TeamCall:
    """Build the call that hands `request` off to `agent`."""
    return TeamCall("agent/handoff", {"agent": agent, "request": request}, words)


def build_step_update(step: Step, status: str, words: Text) -> TeamCall:
    """Build the call that sets the status of a plan step."""
    return TeamCall("plan/update_step", {"step_id": step.step_id, "status": status}, words)


def build_question(question: Text, *choices: Text) -> TeamCall:
    """Build the question to the user with its choices."""
    return TeamCall("user/ask", {"question": question, "choices": [*choices]}, asks=(question, *choices))


def build_preliminary_checks(
    state: State, plan: Plan, step: Step, earlier: tuple[AnsweredCall, ...], approvals: ApprovalMode
) -> Iterator[TeamCall]:
    """Yield calls for a step's checks to run before the work, for comparison, without those that need approval."""
    checks = (
        check
        for check in step.acceptance
        if parse_diagnostics_check(check) is None
        and predict_exit_status(check) == "open"
        and (approvals in ("sandbox", "all", "work") or read_only(check, LOOKING))
    )
    for call in build_untried_checks(state, plan, tuple(checks), earlier):
        yield call._replace(text=text("team.check_before", check=f"`{call.args['command']}`"))


def is_met(state: State, step: Step) -> bool:
    """Return True if a step is already done: its checks only read files, and pass."""
    checks = step.acceptance
    return (
        bool(checks) and all(map(is_read_only_check, checks)) and not find_unproven_checks(checks, state.done)
    )


def build_untried_checks(
    state: State, plan: Plan, checks: tuple[str, ...], earlier: tuple[AnsweredCall, ...]
) -> Iterator[TeamCall]:
    """Yield calls for unproven checks that were not tried since the last edit of this attempt."""
    tried = {_build_key(t.call.tool, t.call.args) for t in earlier if t.outcome != "interrupted"}
    for check, _ in find_unproven_checks(checks, state.done):
        call = build_check_call(check, find_time_limit(plan, check, state.request.limits.check_seconds))
        if _build_key(call.tool, call.args) not in tried:
            yield call


def _build_key(tool: str, args: JsonObject) -> tuple[str, str]:
    return tool, normalize_command(str(args.get("command", args.get("path", ""))))


def build_check_call(check: str, seconds: int) -> TeamCall:
    """Build the call that runs an acceptance check. `seconds`: timeout of a command."""
    place = parse_diagnostics_check(check)
    if place is None:
        return TeamCall(
            "shell/run", {"command": check, "timeout": seconds}, text("team.check", check=f"`{check}`")
        )
    one_file = place != EVERYWHERE and not any(c in place for c in "*?[") and "." in place.rpartition("/")[2]
    return TeamCall(
        "editor/diagnostics", {"path": place} if one_file else {}, text("team.check", check=check)
    )


class CheckFailure(NamedTuple):
    """A failed check: its outcome for the user, and its output."""

    why: Text
    output: str = ""

    def format(self) -> str:
        """Return the full text of the failure, for the prompt of the next attempt."""
        return f"{self.why}:\n{self.output}" if self.output else f"{self.why.rstrip('.')}."


def find_failed_checks(state: State, checks: tuple[str, ...]) -> list[CheckFailure]:
    """Return the failed checks with exit code and output; without diagnostics that nothing here can provide."""
    problems: list[CheckFailure] = []
    for check, proof in find_unproven_checks(checks, state.done):
        if proof is not None:
            problems.append(_describe_failure(state, check, proof))
        elif parse_diagnostics_check(check) is None:
            problems.append(
                CheckFailure(text("team.check_not_run", command=check, why=_find_answer(state, check)))
            )
    return problems


def _describe_failure(state: State, check: str, proof: Proof) -> CheckFailure:
    if proof.kind != "exit_code":
        place = proof.subject or text("team.the_project")
        return CheckFailure(text("team.check_errors", check=check, count=proof.value, place=place))
    outcome = next((c for c in reversed(state.done.commands) if c.call_id == proof.ref), None)
    if outcome is None:
        return CheckFailure(text("team.check_failed", command=check, code=proof.value))
    return build_check_failure(outcome)


def build_check_failure(outcome: CommandOutcome) -> CheckFailure:
    """Convert a failed command to a failed check."""
    output = truncate_middle(outcome.output.rstrip(), OUTPUT_SHARE) or "(no output)"
    if outcome.exit_code == TIMED_OUT:
        return CheckFailure(text("team.check_timed_out", command=outcome.command), output)
    return CheckFailure(text("team.check_failed", command=outcome.command, code=outcome.exit_code), output)


def _find_answer(state: State, check: str) -> str:
    return next(
        (t.text for t in reversed(list_answered_calls(state)) if t.call.args.get("command") == check),
        "no answer",
    )

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
from daiku.team.rules.proof.checks import exit_status, only_looks, seconds_of
from daiku.team.rules.proof.evidence import EVERYWHERE, diagnosed_place, plain_command, unproven_checks
from daiku.team.rules.record import AnsweredCall, answered_calls
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import NO_TEXT, Text, text

TIMED_OUT = 124
"""The exit code of a command that took too long."""
CHECKING = ("shell/run", "editor/diagnostics")
"""The tools that show a check."""
OUTPUT_SHARE = 6000
"""Characters of a failed command's output that the next attempt is told."""


class TeamCall(NamedTuple):
    """One call, and the words that go with it."""

    tool: str
    args: JsonObject
    text: Text = NO_TEXT
    asks: tuple[Text, ...] = ()
    """Of a question to the person: the question and its choices."""


def hand(agent: str, request: str, said: Text) -> TeamCall:
    """Build the call that hands `request` over to `agent`."""
    return TeamCall("agent/handoff", {"agent": agent, "request": request}, said)


def move(step: Step, status: str, said: Text) -> TeamCall:
    """Move a step of the plan."""
    return TeamCall("plan/update_step", {"step_id": step.step_id, "status": status}, said)


def ask(question: Text, *choices: Text) -> TeamCall:
    """Let the person choose."""
    return TeamCall("user/ask", {"question": question, "choices": [*choices]}, asks=(question, *choices))


def preliminary_checks(
    state: State, plan: Plan, step: Step, since: tuple[AnsweredCall, ...], approvals: ApprovalMode
) -> Iterator[TeamCall]:
    """Yield the calls of a step's checks to run before the work, for comparison; not those that need approval."""
    free = (
        check
        for check in step.acceptance
        if diagnosed_place(check) is None
        and exit_status(check) == "open"
        and (approvals in ("sandbox", "all", "work") or read_only(check, LOOKING))
    )
    for do in untried_checks(state, plan, tuple(free), since):
        yield do._replace(text=text("team.check_before", check=f"`{do.args['command']}`"))


def is_met(state: State, step: Step) -> bool:
    """Return True if a step is done already: its checks only look at files, and pass."""
    checks = step.acceptance
    return bool(checks) and all(map(only_looks, checks)) and not unproven_checks(checks, state.done)


def untried_checks(
    state: State, plan: Plan, checks: tuple[str, ...], since: tuple[AnsweredCall, ...]
) -> Iterator[TeamCall]:
    """Yield the calls of checks that are unproven and not tried since the last edit of this attempt."""
    tried = {_key(t.call.tool, t.call.args) for t in since if t.outcome != "interrupted"}
    for check, _ in unproven_checks(checks, state.done):
        do = check_call(check, seconds_of(plan, check, state.request.limits.check_seconds))
        if _key(do.tool, do.args) not in tried:
            yield do


def _key(tool: str, args: JsonObject) -> tuple[str, str]:
    return tool, plain_command(str(args.get("command", args.get("path", ""))))


def check_call(check: str, seconds: int) -> TeamCall:
    """The call that shows an acceptance check; a command may take so many seconds."""
    place = diagnosed_place(check)
    if place is None:
        return TeamCall(
            "shell/run", {"command": check, "timeout": seconds}, text("team.check", check=f"`{check}`")
        )
    one_file = place != EVERYWHERE and not any(c in place for c in "*?[") and "." in place.rpartition("/")[2]
    return TeamCall(
        "editor/diagnostics", {"path": place} if one_file else {}, text("team.check", check=check)
    )


class FailedCheck(NamedTuple):
    """A check that fails: what came of it as a person is told, and what it printed."""

    why: Text
    output: str = ""

    def text(self) -> str:
        """Return the full text of the failure, for the prompt of the next attempt."""
        return f"{self.why}:\n{self.output}" if self.output else f"{self.why.rstrip('.')}."


def failed_checks(state: State, checks: tuple[str, ...]) -> list[FailedCheck]:
    """What fails, with exit code and output. Diagnostics that nobody can show here are the person's."""
    problems: list[FailedCheck] = []
    for check, proof in unproven_checks(checks, state.done):
        if proof is not None:
            problems.append(_shown(state, check, proof))
        elif diagnosed_place(check) is None:
            problems.append(FailedCheck(text("team.check_not_run", command=check, why=_answer(state, check))))
    return problems


def _shown(state: State, check: str, proof: Proof) -> FailedCheck:
    if proof.kind != "exit_code":
        place = proof.subject or text("team.the_project")
        return FailedCheck(text("team.check_errors", check=check, count=proof.value, place=place))
    outcome = next((c for c in reversed(state.done.commands) if c.call_id == proof.ref), None)
    if outcome is None:
        return FailedCheck(text("team.check_failed", command=check, code=proof.value))
    return failed_check(outcome)


def failed_check(outcome: CommandOutcome) -> FailedCheck:
    """Convert a failed command to a failing check."""
    output = truncate_middle(outcome.output.rstrip(), OUTPUT_SHARE) or "(no output)"
    if outcome.exit_code == TIMED_OUT:
        return FailedCheck(text("team.check_timed_out", command=outcome.command), output)
    return FailedCheck(text("team.check_failed", command=outcome.command, code=outcome.exit_code), output)


def _answer(state: State, check: str) -> str:
    return next(
        (t.text for t in reversed(answered_calls(state)) if t.call.args.get("command") == check), "no answer"
    )

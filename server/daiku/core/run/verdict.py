"""Verdict on a run that ended its turn: the reasons why its record does not support that the work is done. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from daiku.core.calls.change_requests import asks_for_change
from daiku.core.proof.attempts import FailedCall
from daiku.core.proof.evidence import plain_command
from daiku.core.run.check_runs import CheckRun, CheckRuns, check_intent, check_runs
from daiku.core.state.state import State
from daiku.core.text.patterns import lazy
from daiku.core.text.truncate import truncate_middle
from daiku.domain.messages import AssistantMessage, is_unreadable
from daiku.domain.runs import UnverifiedKind, UnverifiedReason
from daiku.texts.text import text

SHOWN_COMMAND = 120
"""Characters of a command in a reason."""
_QUOTED = lazy(r"`([^`\n]{2,200})`")


def unverified_reasons(state: State) -> tuple[UnverifiedReason, ...]:
    """Return the reasons why the record does not support that the run is completed; empty if there are none. What the
    model says is never read."""
    checks = check_runs(state.done.commands, state.attempts)
    return (*_of_reply(state), *_of_checks(state, checks), *_of_calls(state, checks), *_of_lists(state))


def _reason(kind: UnverifiedKind, subject: str = "", key: str = "", **more: str | int) -> UnverifiedReason:
    shown = truncate_middle(plain_command(subject), SHOWN_COMMAND)
    return UnverifiedReason(
        kind=kind, subject=subject, message=text(f"unverified.{key or kind}", subject=shown, **more)
    )


def _of_reply(state: State) -> Iterator[UnverifiedReason]:
    """Yield what is wrong with the last reply as an answer."""
    last = state.conversation.messages[-1] if state.conversation.messages else None
    if not state.request.asks_model or not isinstance(last, AssistantMessage):
        return
    if is_unreadable(last):
        yield _reason("unreadable_calls")
    elif state.conversation.finish == "length":
        yield _reason("cut_off")
    elif state.conversation.finish == "content_filter":
        yield _reason("refused" if last.text.strip() else "filtered")


def _of_checks(state: State, checks: CheckRuns) -> Iterator[UnverifiedReason]:
    """Yield the checks that failed, say nothing, or still run."""
    failed = [check for check in checks.open if check.result == "failed"]
    unknown = [check for check in checks.open if check.result == "unknown"]
    if failed:
        yield _failed_check(failed[-1], checks)
    elif unknown:
        yield _reason("check_masked", unknown[-1].command)
    for check in checks.open:
        if check.result == "running":
            yield _reason("still_running", check.command)
    known = {plain_command(check.command) for check in checks.open}
    for command in _named_checks(state):
        since = max(checks.changes, default=-1)
        ran = any(
            plain_command(check.command) == command and check.position > since for check in checks.passed
        )
        if state.attempts.edits and not ran and command not in known:
            yield _reason("check_not_run", command)


def _failed_check(check: CheckRun, checks: CheckRuns) -> UnverifiedReason:
    changed = any(at >= check.position for at in checks.changes)
    key = "last_check_failed_before_change" if changed else "last_check_failed"
    return _reason("last_check_failed", check.command, key, code=check.exit_code)


def _named_checks(state: State) -> tuple[str, ...]:
    """Return the checks that the request names as code, such as `pytest -q`."""
    named = (plain_command(found) for found in _QUOTED.findall(state.request.prompt))
    return tuple(command for command in named if " " in command and check_intent(command) is not None)


def _of_calls(state: State, checks: CheckRuns) -> Iterator[UnverifiedReason]:
    """Yield the edits and commands without effect, and that nothing was changed although a change was asked for."""
    request, planned = state.request, state.plans.last and not state.done.files
    if not request.asks_model or request.mode != "act" or planned:
        return
    for call in state.attempts.failed:
        if not (state.done.files and checks.has_pass_since(call.position)):
            yield _failed_call(call)
            break
    if not _has_changes(state, checks) and asks_for_change(request.prompt):
        yield _reason("nothing_changed")


def _failed_call(call: FailedCall) -> UnverifiedReason:
    if not call.is_edit:
        return _reason("not_approved", call.subject)
    return _reason("edit_not_applied", call.subject, "" if call.subject else "edit_not_applied_anywhere")


def _has_changes(state: State, checks: CheckRuns) -> bool:
    return bool(state.done.files or checks.changes or state.attempts.acted)


def _of_lists(state: State) -> Iterator[UnverifiedReason]:
    """Yield what the run itself noted as left: open items, or no plan where one was asked for."""
    request = state.request
    left = [item for item in state.todo if item.status != "completed"]
    if request.asks_model and state.attempts.has_todo and left:
        yield _reason("todo_open", left[0].title, count=len(left))
    if request.asks_model and request.mode == "plan" and request.brief is None and not state.plans.last:
        yield _reason("no_plan")

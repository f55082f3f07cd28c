"""The end of a run: its plan's progress, and whether the record supports that the work is done. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from daiku.domain.errors import Failure
from daiku.domain.events import AgentEnd, RunFinished
from daiku.domain.messages import AssistantMessage, is_unreadable
from daiku.domain.runs import TerminalStatus, UnverifiedReason
from daiku.domain.work.handovers import FailedCall
from daiku.domain.work.plans import Plan, PlanStanding, Step
from daiku.run.rules.state.lessons import used_bullets
from daiku.run.rules.state.state import State
from daiku.team.rules.proof.attempts import EDITING, find_edited_paths, is_refused
from daiku.team.rules.proof.evidence import normalize_command
from daiku.texts.rules.patterns import lazy
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import NO_TEXT, text

if TYPE_CHECKING:
    from daiku.run.rules.check_runs import CheckRun, CheckRuns

SHOWN_SUBJECT = 120
"""Characters of a command or path in a reason, at most."""
_QUOTED = lazy(r"`([^`\n]{2,200})`")
_OF_PROJECT = (
    r"(?:everything|(?>(?:(?:all|of|the|our|my|full|whole|entire|unit|integration|existing|failing|dev)\s+)*)"
    r"(?:tests?(?:\s+(?:suite|cases?))?|linters?|formatter|type[- ]?check(?:er|s)?|builds?|checks|benchmarks?|migrations?"
    r"|project|code(?:base)?|app(?:lication)?|program|script|server|files?))"
)
_RUN_REQUEST = lazy(
    r"(?>(?:(?:please|now|can you|could you|would you|let's|i want you to),?\s+)*)(?:"
    rf"(?:(?:re-?)?run|execute|start|launch)\s+{_OF_PROJECT}"
    r"|(?:(?:re-?)?run|execute)\s+(?:`(?P<quoted>[^`\n]+)`|(?P<command>[\w./-]+(?:\s+run)?(?:\s+[\w./:-]+)?))"
    r"|(?:make sure|ensure|verify|check|confirm)\s+(?:that\s+)?(?:all\s+)?(?:the\s+)?tests\s+(?:still\s+)?pass"
    r"|(?:全|全ての|すべての|単体|ユニット)?(?:テスト(?:スイート)?|リント|リンター|フォーマッター?|型チェック|ビルド|ベンチマーク|アプリ|プログラム|スクリプト)"
    r"を(?:もう一度)?(?:再?実行し|走らせ|回し|起動し)て"
    rf"|(?P<work>(?:(?:re-?)?(?:build|compile|format)|lint|type-?check)\s+{_OF_PROJECT}"
    r"|(?:(?:プロジェクト|コード|アプリ)(?:全体)?を)?(?:もう一度)?(?:再?ビルド|コンパイル|フォーマット|整形|リント|テスト)して))"
    r"(?:みて)?(?:ください|下さい|くれますか|もらえますか)?(?:,?\s+(?:again|now|once|twice|please))*"
    r"(?:,?\s+and\s+(?:tell|show|report|list|summari[sz]e|give)\b[^.\n]*)?[\s.!?。！？]*",
    re.IGNORECASE,
)
"""Matches a request that only asks to run something of the project, or a check. `work`: edits may do it."""


def unfinished(state: State) -> Failure | None:
    """Return the failure if the requested plan or step is not completed; None if it is."""
    from daiku.team.rules.moves import find_team_plan  # when used
    from daiku.team.rules.proof.gate import format_progress  # when used

    plan = find_team_plan(state)
    requested_step = state.request.brief.step_id if state.request.brief is not None else ""
    if plan is None:
        return Failure(kind="plan", message=text("run.no_plan"))
    open_steps = [s for s in plan.steps if s.status != "completed" and requested_step in ("", s.step_id)]
    if not open_steps and plan.steps:
        return None
    return Failure(kind="plan", message=format_progress(plan, open_steps), hint=text("run.resume_plan"))


def touched_plan(state: State) -> Plan | None:
    """Return the plan that the run worked on or changed last."""
    key = state.plans.last or (
        state.request.brief.plan.plan_id if state.request.brief and state.request.brief.plan else ""
    )
    return next((plan for plan in state.plans.all if plan.plan_id == key), None)


def plan_standing(state: State) -> PlanStanding | None:
    """Return the progress of the plan that the run worked on or changed last."""
    plan = touched_plan(state)
    return plan.standing() if plan is not None else None


def end_events(state: State, status: TerminalStatus) -> tuple[AgentEnd, RunFinished]:
    """Build the last events of a run with `status`, downgraded if the record does not support it.

    A blocked run has no answer text.
    """
    checks = _read_checks(state) if status == "completed" else None
    reasons = unverified_reasons(state, checks) if status == "completed" else ()
    is_blocked = state.failure is not None and state.failure.kind == "guardrail"
    spending, answer = state.spending, NO_TEXT if is_blocked else state.conversation.text
    finished = RunFinished(
        status="completed_unverified" if reasons else status,
        text=NO_TEXT if any(reason.kind == "unreadable_calls" for reason in reasons) else answer,
        usage=spending.usage,
        plan=plan_standing(state),
        used_bullets=used_bullets(state),
        reasons=reasons,
        unchecked=not reasons and _is_unchecked(state, checks),
    )
    return AgentEnd(usage=spending.own), finished


def _is_unchecked(state: State, checks: CheckRuns | None) -> bool:
    """Return True if no check passed after the last change by an edit or a command."""
    if checks is None:
        return False
    last_change = max((*state.attempts.edits, *checks.known_changes), default=None)
    return last_change is not None and not checks.has_pass_since(last_change)


def unverified_reasons(state: State, checks: CheckRuns | None) -> tuple[UnverifiedReason, ...]:
    """Return the reasons why the record does not support completion. Never reads the model's text."""
    check_reasons = _check_reasons(state, checks) if checks is not None else ()
    call_reasons = (*_call_reasons(state, checks), *_run_request_reasons(state))
    return (
        *_reply_reasons(state),
        *check_reasons,
        *call_reasons,
        *_server_reasons(state),
        *_list_reasons(state),
    )


def _read_checks(state: State) -> CheckRuns | None:
    if not (state.done.commands or state.attempts.edits or state.attempts.failed):
        return None
    from daiku.run.rules.check_runs import check_runs  # when used

    return check_runs(state.done.commands, state.attempts)


def _shorten(subject: str) -> str:
    """Return a command or path as displayed in a reason."""
    return truncate_middle(normalize_command(subject), SHOWN_SUBJECT)


def _reply_reasons(state: State) -> Iterator[UnverifiedReason]:
    """Yield what is wrong with the last reply as an answer."""
    last = state.conversation.messages[-1] if state.conversation.messages else None
    if not state.request.asks_model or not isinstance(last, AssistantMessage):
        return
    if state.conversation.finish == "length":
        yield UnverifiedReason(kind="cut_off", message=text("unverified.cut_off"))
    elif is_unreadable(last):
        yield UnverifiedReason(kind="unreadable_calls", message=text("unverified.unreadable_calls"))
    elif state.conversation.finish == "content_filter" and last.text.strip():
        yield UnverifiedReason(kind="refused", message=text("unverified.refused"))
    elif state.conversation.finish == "content_filter":
        yield UnverifiedReason(kind="filtered", message=text("unverified.filtered"))


def _check_reasons(state: State, checks: CheckRuns) -> Iterator[UnverifiedReason]:
    """Yield the checks that failed, are inconclusive, still run, or did not run."""
    failed = [check for check in checks.open if check.state == "failed"]
    unknown = [check for check in checks.open if check.state == "unknown"]
    if failed:
        yield _failed_check(failed[-1], checks)
    elif unknown:
        command = unknown[-1].command
        message = text("unverified.check_masked", subject=_shorten(command))
        yield UnverifiedReason(kind="check_masked", subject=command, message=message)
    for check in checks.open:
        if check.state == "running":
            message = text("unverified.still_running", subject=_shorten(check.command))
            yield UnverifiedReason(kind="still_running", subject=check.command, message=message)
    open_commands = {normalize_command(check.command) for check in checks.open}
    for command in _named_checks(state):
        if command not in open_commands and not checks.has_passed_since_change(command):
            message = text("unverified.check_not_run", subject=_shorten(command))
            yield UnverifiedReason(kind="check_not_run", subject=command, message=message)


def _failed_check(check: CheckRun, checks: CheckRuns) -> UnverifiedReason:
    subject, code = _shorten(check.command), check.exit_code
    if any(at >= check.position for at in checks.changes):
        message = text("unverified.last_check_failed_before_change", subject=subject, code=code)
    else:
        message = text("unverified.last_check_failed", subject=subject, code=code)
    return UnverifiedReason(kind="last_check_failed", subject=check.command, message=message)


def _named_checks(state: State) -> tuple[str, ...]:
    """Return the checks that the request names as code, such as `pytest -q`, if the run changed files."""
    commands = tuple(normalize_command(match) for match in _QUOTED.findall(state.request.wording))
    if not commands or not state.attempts.edits:
        return ()
    return tuple(command for command in commands if " " in command and _is_check(command))


def _call_reasons(state: State, checks: CheckRuns | None) -> Iterator[UnverifiedReason]:
    """Yield edits and commands without effect, and a missing change that was requested."""
    request, planned = state.request, state.plans.last and not state.done.files
    if request.mode != "act":
        return
    counts_mistakes = request.asks_model and not planned
    counts_refusals = request.may_edit or not planned  # an agent that only plans needs no edits
    for call in state.attempts.failed:
        if not (counts_mistakes or (counts_refusals and is_refused(call))):
            continue
        if _is_open(call, state, checks):
            yield _failed_call(call)
            break
    if (
        counts_mistakes
        and request.may_edit
        and not _was_rejected(state)
        and not _has_changes(state, checks)
        and not _is_run_request(request.wording)
        and _asks_for_change(state)
    ):
        yield UnverifiedReason(kind="nothing_changed", message=text("unverified.nothing_changed"))


def _is_open(call: FailedCall, state: State, checks: CheckRuns | None) -> bool:
    """Return True if no check passed since the call failed. A file that needs the user stays open regardless."""
    passed = checks is not None and state.done.files and checks.has_pass_since(call.position)
    needs_user = call.outcome == "unattended" and call.tool in EDITING
    return needs_user or not passed


def refused_edits(state: State, plan: Plan, step: Step) -> tuple[str, ...]:
    """Return the files of a step's edits that the guard or the user refused and that stayed unchanged."""
    from daiku.team.rules.record import list_answered_calls, select_for_step  # when used

    checks, rejected, attempted = _read_checks(state), list[str](), set[str]()
    for each in select_for_step(list_answered_calls(state), plan, step):
        back, paths = each.handoff, find_edited_paths(each.call) if each.call.tool in EDITING else ()
        attempted.update(paths, (call.subject for call in back.refused) if back is not None else ())
        if (paths and each.ok) or (back is not None and back.deeds is not None and back.deeds.files):
            rejected.clear()
        elif each.outcome == "rejected":
            rejected += paths
    refused = [call for call in state.attempts.failed if call.tool in EDITING and is_refused(call)]
    open_subjects = (
        call.subject for call in refused if call.subject in attempted and _is_open(call, state, checks)
    )
    return tuple(dict.fromkeys((*rejected, *open_subjects)))


def _run_request_reasons(state: State) -> Iterator[UnverifiedReason]:
    """Yield a reason if nothing ran although the request is only to run something.

    Tools of MCP servers may have run it.
    """
    request, attempts = state.request, state.attempts
    if attempts.acted or attempts.jobs or any(command.ended for command in state.done.commands):
        return
    was_refused = any(call.tool not in EDITING for call in attempts.failed) or _was_rejected(state)
    if was_refused or not request.asks_model or request.mode != "act" or request.brief is not None:
        return
    if _is_run_request(request.wording, edited=bool(attempts.edits)):
        yield UnverifiedReason(kind="check_not_run", message=text("unverified.nothing_run"))


def _is_run_request(wording: str, *, edited: bool = False) -> bool:
    """Return True if the request is only to run something that edits have not done."""
    match = _RUN_REQUEST.fullmatch(wording)
    if match is None or (edited and match["work"]):
        return False
    command = match["quoted"] or match["command"]
    return command is None or _is_check(command)


def _is_check(command: str) -> bool:
    from daiku.run.rules.check_runs import check_intent  # when used

    return check_intent(command) is not None


def _was_rejected(state: State) -> bool:
    """Return True if the user rejected something, and so knows why nothing was changed."""
    decisions = state.questions.decisions.values()
    return any(
        given.decision in ("reject_once", "reject_always") and not given.unattended for given in decisions
    )


def _asks_for_change(state: State) -> bool:
    """Return True if the request asks for a change; a report does if the model worked on it."""
    from daiku.run.rules.calls.change_requests import classify_request  # when used

    kind = classify_request(state.request.wording)
    return kind == "change" or (kind == "report" and state.spending.rounds > 1)


def _failed_call(call: FailedCall) -> UnverifiedReason:
    subject = _shorten(call.subject)
    if call.tool not in EDITING:
        message = text("unverified.not_approved", subject=subject)
        return UnverifiedReason(kind="not_approved", subject=call.subject, message=message)
    message = (
        text("unverified.edit_not_applied", subject=subject)
        if subject
        else text("unverified.no_edit_applied")
    )
    return UnverifiedReason(kind="edit_not_applied", subject=call.subject, message=message)


def _has_changes(state: State, checks: CheckRuns | None) -> bool:
    return bool(state.done.files or state.attempts.acted or (checks is not None and checks.changes))


def _server_reasons(state: State) -> Iterator[UnverifiedReason]:
    """Yield the MCP servers that the run called and that did not answer."""
    for name in state.attempts.missing if state.request.asks_model else ():
        message = text("unverified.tools_missing", subject=name)
        yield UnverifiedReason(kind="tools_missing", subject=name, message=message)


def _list_reasons(state: State) -> Iterator[UnverifiedReason]:
    """Yield what the run left open: list items, or a plan that was requested."""
    request = state.request
    open_items = [item for item in state.todo if item.status != "completed"]
    if request.asks_model and state.attempts.has_todo and open_items:
        message = text("unverified.todo_open", count=len(open_items), subject=_shorten(open_items[0].title))
        yield UnverifiedReason(kind="todo_open", subject=open_items[0].title, message=message)
    if request.asks_model and request.mode == "plan" and request.brief is None and not state.plans.last:
        yield UnverifiedReason(kind="no_plan", message=text("unverified.no_plan"))

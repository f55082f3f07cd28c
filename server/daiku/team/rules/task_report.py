"""The report on a step's tasks: execution log, facts, and the check of a model's report against them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import JsonValue

from daiku.domain.work.handovers import TaskReport
from daiku.domain.work.plans import Step
from daiku.models.rules.replies.parse import Unreadable, read_json
from daiku.run.rules.calls.toolnames import wire_name
from daiku.team.rules.tasks import ENDED, RESULT_SHARE, PlanStep
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import text


def format_execution_log(step: Step, checks: Sequence[tuple[str, bool, str]] = ()) -> str:
    """Format what was done, in order: tasks with status and result, then checks (name, passed, output)."""
    lines: list[str] = []
    for number, task in enumerate(step.task_list, 1):
        args = truncate_middle(json.dumps(task.args, ensure_ascii=False), RESULT_SHARE)
        lines.append(f"Task {number} ({task.status}): {wire_name(task.operation)} {args}")
        if task.result:
            lines.append(_indent(truncate_middle(task.result, RESULT_SHARE)))
    for check, passed, output in checks:
        lines.append(f"Check ({'passed' if passed else 'failed'}): {check}")
        lines.append(_indent(truncate_middle(output, RESULT_SHARE)))
    return "\n".join(lines)


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def count_tasks(step: Step) -> tuple[int, int]:
    """Return the numbers of completed and failed tasks."""
    states = [task.status for task in step.task_list]
    return states.count("completed"), states.count("failed")


def build_plain_report(plan_step: PlanStep, failed_check: str = "", problem: str = "") -> TaskReport:
    """Build the report from the tasks alone (C4.11). `problem`: why the run ended early."""
    plan, step = plan_step
    succeeded, failed = count_tasks(step)
    failed_task = next((task for task in step.task_list if task.status == "failed"), None)
    open_count = sum(task.status not in ENDED for task in step.task_list)
    if plan.status == "draft":
        cause, action = "The plan was not approved.", "Ask the person what should be different."
    elif failed_task is not None:
        error_text = (failed_task.result or "it did not say why").strip()
        cause = truncate_middle(f"{failed_task.operation} failed: {error_text}", RESULT_SHARE)
        action = "Mend the cause, then run the step again: what is done is not done again."
    elif open_count:
        cause = problem or f"{open_count} tasks were not run."
        action = "Run the step again: it goes on where it was."
    elif failed_check:
        cause = f"A check of the step did not pass: {failed_check}"
        action = "Mend what the check shows, then run the step again."
    else:
        cause, action = "", "Ask the person whether to go on with the next step."
    return TaskReport(
        status="failed" if cause else "completed",
        succeeded=succeeded,
        failed=failed,
        summary=f"{step.name}: {succeeded} of {len(step.task_list)} tasks completed.",
        cause=cause,
        next_action=action,
    )


def read_report(reply: str, facts: TaskReport, *, cut: bool = False) -> TaskReport | Unreadable:
    """Parse a model's report; reject it if its status or numbers differ from the facts."""

    def report(value: JsonValue) -> TaskReport:
        if not isinstance(value, dict):
            raise ValueError(text("forms.report_object"))  # noqa: TRY004  # a problem of the reply
        parsed = TaskReport.model_validate({_normalize_key(key): item for key, item in value.items()})
        for name in ("status", "succeeded", "failed"):
            expected = getattr(facts, name)
            if getattr(parsed, name) != expected:
                raise ValueError(text("forms.report_differs", name=name, wanted=json.dumps(expected)))
        if facts.status == "failed" and not (parsed.cause and parsed.next_action):
            raise ValueError(text("forms.report_cause"))
        return parsed

    return read_json(reply, report, cut=cut)


_KEYS = {"next_action": "next_action", "nextAction": "next_action", "recommended_next_action": "next_action"}


_FIELDS = frozenset(TaskReport.model_fields)


def _normalize_key(name: str) -> str:
    return name if name in _FIELDS else _KEYS.get(name, f"_{name}")


def format_report_json(report: TaskReport) -> str:
    """Format the report as JSON for the caller (R4.40)."""
    return json.dumps(report.model_dump(), ensure_ascii=False, indent=1)

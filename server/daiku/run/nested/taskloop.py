"""Plans and tasks by nested runs: plan a goal, list a step's tasks, work through them, report."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import partial
from hashlib import sha256

from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject
from daiku.domain.errors import Failure, ToolValidationError
from daiku.domain.events import HandoffEnd, PlanEvent
from daiku.domain.messages import UserMessage
from daiku.domain.runs import has_answer
from daiku.domain.tools import ToolCall, ToolResult, ToolSpec
from daiku.domain.work.handovers import Brief, PlanMade, SaidInWords, TaskReport, TasksMade, TasksReported
from daiku.domain.work.plans import Task
from daiku.models.rules.replies.parse import get_error_text
from daiku.models.rules.replies.roleforms import ActionReply
from daiku.run.live import LiveRun
from daiku.run.nested.briefing import make_brief
from daiku.run.nested.handoff import Nested, nest, nest_in_parallel
from daiku.run.nested.worktrees import Piece, side_by_side
from daiku.run.rules.calls.refs import find_refs
from daiku.run.rules.calls.toolnames import wire_name
from daiku.run.rules.state.state import State
from daiku.team.coding.tasks import (
    TASK_LOOP,
    build_report_request,
    build_task_maker,
    build_task_reporter,
    build_tasks_request,
)
from daiku.team.rules import tasks
from daiku.team.rules.plans.transitions import render_checklist
from daiku.team.rules.proof.gate import MissingProofs, find_missing_proofs
from daiku.team.rules.tasks import PlanStep
from daiku.texts.rules.words import limit_words
from daiku.texts.text import NO_TEXT, Text, text
from daiku.tools.tool import build_failure

MAX_ROUNDS = 25
"""Model replies of one explorer, at most; the last one is its answer."""
SHARE = 2
"""Divisor of the run's remaining model replies; all parallel explorers together get one part."""
MAX_WORDS = 1000
"""Words of an explorer's answer, at most."""
REPORT = ":report"
"""Suffix of a call's id for the nested run that writes its report."""
WORKING = "act"


@dataclass(frozen=True, slots=True)
class NestedTaskWork:
    """Plan and task tools for one call of `parent`; continued after a restart.

    Methods raise HandoffDepthExceeded, Paused.
    """

    parent: LiveRun
    call: str

    async def plan(self, goal: str) -> ToolResult:
        """Have the planner make a plan for `goal`, and record it in this run."""
        parent = self.parent
        planner = parent.log.services.agents.find("planner")
        if parent.log.agent.name == planner.name:  # the planner cannot call itself
            return build_failure("plan__propose needs `steps`: a list of {name, description, depends_on}.")
        back = await nest(parent, self.call, Nested(planner, goal, make_brief(parent.log, planner, goal)))
        if not isinstance(back.handover, PlanMade):
            return build_failure(f"No plan came of it: {back.problem or back.result}")
        plan = back.handover.plan.model_copy(update={"goal": goal})  # the goal in the caller's wording
        parent.record(PlanEvent(plan=plan))
        text = f"{render_checklist(plan)}\n\n{back.result}".strip()
        return ToolResult(ok=True, text=text, data={"planId": plan.plan_id}, untrusted=back.tainted)

    async def generate(self, step_id: str) -> ToolResult:
        """Generate the step's tasks and store them in the plan."""
        parent = self.parent
        place = tasks.find_plan_step(parent.record.state.plans.all, step_id)
        if place is None:
            return build_failure(_step_not_found(step_id))
        if place.step.status == "completed":
            return build_failure(text("tasks.completed", name=place.step.name))
        agent = build_task_maker(parent.log.services.registry.resolve, self._validate_task)
        request = build_tasks_request(place, parent.record.state.conversation.messages, self._task_tools())
        back = await nest(parent, self.call, Nested(agent, request, _build_brief(place, request)))
        if not isinstance(back.handover, TasksMade):
            return build_failure(f"No tasks could be made for step “{place.step.name}”: {back.problem}")
        place = tasks.with_list(self._reload(place), back.handover.tasks)
        parent.record(PlanEvent(plan=place.plan))
        return _format_task_list(place, back)

    async def run(self, step_id: str, task_list: tuple[JsonObject, ...]) -> ToolResult:
        """Work through the step's tasks, or through `task_list` ({operation, args, id}), and report."""
        place = self._find_step(step_id, task_list)
        if place is None:
            return build_failure(_step_not_found(step_id))
        if not self._has_begun() and (refusal := self._refusal_reason(place)):
            return build_failure(refusal)
        self._record(place)
        back = await self._work(place)
        place = tasks.reset_interrupted_tasks(self._reload(place))
        report = await self._build_report(place, back)
        place = self._complete_if_done(place)
        self._record(place)
        note = "" if step_id else self._restore_open_plan(place)
        return ToolResult(
            ok=report.status == "completed",
            text=f"{tasks.format_report_json(report)}\n\n{_format_progress(place)}{note}",
            data={
                "report": report.model_dump(),
                "step_id": place.step.step_id,
                "plan_id": place.plan.plan_id,
            },
            untrusted=back.tainted,
        )

    async def side_by_side(
        self, pieces: tuple[tuple[str, str, str], ...], *, only_apart: bool = False
    ) -> ToolResult:
        """Give independent requests to agents, in parallel if possible (`run.nested.worktrees`)."""
        works = [self._build_nested(*piece) for piece in pieces]
        results = await side_by_side(self.parent, self.call, works, only_apart=only_apart)
        if isinstance(results, str):
            return ToolResult(outcome="not_run", text=f"Not side by side: {results}.")
        lines = [
            _format_piece(number, work, piece)
            for number, (work, piece) in enumerate(zip(works, results, strict=True), 1)
        ]
        is_ok = all(has_answer(p.back.status) and not p.back.problem for p in results)
        return ToolResult(
            ok=is_ok, text="\n\n".join(lines), untrusted=any(piece.back.tainted for piece in results)
        )

    async def explore(self, questions: tuple[str, ...]) -> ToolResult:
        """Have explorers answer questions about the project in parallel. Failures are reported."""
        explorer, max_rounds = (
            self.parent.log.services.agents.find("explorer"),
            _rounds_per_explorer(self.parent, len(questions)),
        )
        works = {
            f"{self.call}:{n}": Nested(explorer, question, Brief(request=question), max_rounds=max_rounds)
            for n, question in enumerate(questions)
        }
        results = await nest_in_parallel(self.parent, works)
        answers = [_format_answer(back) for back in results]
        parts = [answer or _format_failure(back) for answer, back in zip(answers, results, strict=True)]
        if len(questions) > 1:
            parts = [
                f"{n}. {question}\n{part}"
                for n, (question, part) in enumerate(zip(questions, parts, strict=True), 1)
            ]
        return ToolResult(
            ok=any(answers), text="\n\n".join(parts), untrusted=any(back.tainted for back in results)
        )

    def _build_nested(self, agent: str, request: str, step_id: str) -> Nested:
        target = self.parent.log.services.agents.find(agent)
        brief = make_brief(self.parent.log, target, request)
        return Nested(target, request, brief.model_copy(update={"step_id": step_id}) if step_id else brief)

    def _restore_open_plan(self, place: PlanStep) -> str:
        """Make the open plan the latest one again after an unrelated task list; return a note for the model."""
        plan = tasks.find_other_open_plan(self.parent.record.state.plans.all, place.plan)
        if plan is None or place.plan.name != tasks.SEPARATE_PLAN:
            return ""
        self.parent.record(PlanEvent(plan=plan))
        return f" These tasks are no part of plan “{plan.name}”: give a step_id to work a step of it."

    # -- the step -----------------------------------------------------------------------------

    def _find_step(self, step_id: str, task_list: tuple[JsonObject, ...]) -> PlanStep | None:
        """Return the step to work on, with `task_list` as its tasks if there is one."""
        state = self.parent.record.state
        place = tasks.find_plan_step(state.plans.all, step_id) if step_id else None
        if not task_list or (step_id and place is None):
            return place
        new_tasks = self._parse_task_list(task_list)
        return (
            tasks.attach_task_list(state.plans.all, new_tasks, state.request.prompt)
            if place is None
            else tasks.with_list(place, new_tasks)
        )

    def _parse_task_list(self, task_list: Sequence[JsonObject]) -> tuple[Task, ...]:
        """Parse the task list of a call; ids are stable across restarts."""
        known_ids = {
            t.task_id for plan in self.parent.record.state.plans.all for s in plan.steps for t in s.task_list
        }

        def name(number: int) -> str:
            requested_id = str(task_list[number - 1].get("id") or "")
            digest = sha256(f"{self.parent.run} {self.call} {number}".encode()).hexdigest()[:8]
            return requested_id if requested_id in known_ids else f"task_{digest}"

        try:
            replies = [ActionReply.model_validate(each) for each in task_list]
            return tasks.tasks_from_actions(
                replies, self.parent.log.services.registry.resolve, self._validate_task, name
            )
        except ValueError as error:
            failure = Failure(kind="tool", message=text("runs.tasks_cannot", why=get_error_text(error)))
            raise ToolValidationError(failure) from error

    def _has_begun(self) -> bool:
        state = self.parent.record.state
        return self.call in state.nested.open or any(b.call_id == self.call for b in state.nested.returned)

    def _refusal_reason(self, place: PlanStep) -> Text:
        if self.parent.record.state.request.mode != WORKING:
            return text("tasks.act_only")
        if place.step.status == "completed":
            return text("tasks.completed", name=place.step.name)
        if waiting := tasks.find_blocking_steps(place):
            return text("tasks.waits", name=place.step.name, names=", ".join(waiting))
        if not (place.step.task_list and self._build_calls(place)):
            return text("tasks.none", name=place.step.name)
        return NO_TEXT

    # -- the work ------------------------------------------------------------------------

    async def _work(self, place: PlanStep) -> HandoffEnd:
        request = f"Work through the tasks of step “{place.step.name}”."
        work = Nested(
            TASK_LOOP,
            request,
            _build_brief(place, request),
            calls=self._build_calls(place),
            after=partial(self._record_progress, place),
        )
        return await nest(self.parent, self.call, work)

    def _record_progress(self, place: PlanStep, state: State) -> None:
        """Record the plan's progress from the nested run's state."""
        self._record(tasks.with_task_progress(self._reload(place), state))

    def _complete_if_done(self, place: PlanStep) -> PlanStep:
        """Mark the step as completed if its tasks are and no proof is missing."""
        step = place.step
        is_open = tasks.find_open_tasks(step) or any(self._find_missing_proofs(place))
        return (
            place if is_open or place.plan.status == "draft" else tasks.with_step_status(place, "completed")
        )

    def _find_missing_proofs(self, place: PlanStep) -> MissingProofs:
        return find_missing_proofs(place.step, self.parent.record.state.done, editor=self._has_editor)

    def _build_calls(self, place: PlanStep) -> tuple[ToolCall, ...]:
        seconds = self.parent.record.state.request.limits.check_seconds
        return tasks.build_calls(place, editor=self._has_editor, check_seconds=seconds)

    @property
    def _has_editor(self) -> bool:
        return self.parent.log.services.registry.spec("editor/diagnostics") is not None

    async def _build_report(self, place: PlanStep, back: HandoffEnd) -> TaskReport:
        """Return a model's report that agrees with the log, or the plain report."""
        missing = self._find_missing_proofs(place)
        checks = (*(check for check, _ in missing.to_run), *missing.unseen)
        facts = tasks.build_plain_report(place, checks[0] if checks else "", back.problem)
        if place.plan.status == "draft":
            return facts
        log = tasks.format_execution_log(place.step, _executed_checks(place, back))
        user_message = next(
            (
                m.text
                for m in reversed(self.parent.record.state.conversation.messages)
                if isinstance(m, UserMessage)
            ),
            "",
        )
        request = build_report_request(place, log, user_message)
        work = Nested(build_task_reporter(facts), request, _build_brief(place, request))
        result = await nest(self.parent, self.call + REPORT, work)
        return result.handover.report if isinstance(result.handover, TasksReported) else facts

    def _reload(self, place: PlanStep) -> PlanStep:
        """Return the step as currently recorded; the user may have changed the plan."""
        plans = self.parent.record.state.plans.all
        plan = next((p for p in plans if p.plan_id == place.plan.plan_id), place.plan)
        step = next((s for s in plan.steps if s.step_id == place.step.step_id), None)
        return place if step is None else PlanStep(plan, step)

    def _record(self, place: PlanStep) -> None:
        if place.plan not in self.parent.record.state.plans.all:
            self.parent.record(PlanEvent(plan=place.plan))

    # -- operations ----------------------------------------------------------------------

    def _task_tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools that a task may use."""
        return tuple(spec for spec in self.parent.log.services.registry.specs() if _can_be_task(spec))

    def _validate_task(self, call: ToolCall) -> str:
        """Return what is wrong with a task, as text for the model; empty if it is valid."""
        spec = self.parent.log.services.registry.spec(call.tool)
        if spec is not None and not _can_be_task(spec):
            return f"{wire_name(call.tool)} cannot be a task"
        if spec is not None and any(find_refs(call.args)):
            return ""  # its arguments are known only at execution
        parsed = self.parent.log.services.registry.parse(call)
        return parsed.text if isinstance(parsed, ToolResult) else ""


def _can_be_task(spec: ToolSpec) -> bool:
    return not any(fnmatchcase(spec.name, pattern) for pattern in tasks.OUTSIDE_LISTS)


def _build_brief(place: PlanStep, request: str) -> Brief:
    return Brief(request=request, plan=place.plan, step_id=place.step.step_id)


def _executed_checks(place: PlanStep, back: HandoffEnd) -> list[tuple[str, bool, str]]:
    """Return the step's executed checks: command, whether it passed, output."""
    deeds = back.deeds
    if deeds is None:
        return []
    checks: list[tuple[str, bool, str]] = []
    for check in place.step.acceptance:
        outcome = next((c for c in reversed(deeds.commands) if c.command == check), None)
        if outcome is not None:
            checks.append((check, outcome.exit_code == 0, f"exit code {outcome.exit_code}\n{outcome.output}"))
    return checks


def _format_task_list(place: PlanStep, back: HandoffEnd) -> ToolResult:
    step = place.step
    data: JsonObject = {
        "plan_id": place.plan.plan_id,
        "step_id": step.step_id,
        "tasks": [
            {"task_id": t.task_id, "operation": t.operation, "args": t.args, "status": t.status}
            for t in step.task_list
        ],
    }
    text = f"Step “{step.name}” has {len(step.task_list)} tasks now ({step.step_id}):\n{back.result}"
    return ToolResult(ok=True, text=text, data=data, untrusted=back.tainted)


def _format_piece(number: int, work: Nested, piece: Piece) -> str:
    note = f" (done again on top of the others: {piece.repeated_because})" if piece.repeated_because else ""
    return f"{number}. {work.agent.name}{note}: {piece.back.result or piece.back.problem}"


def _format_progress(place: PlanStep) -> str:
    completed, total = place.plan.progress()
    return (
        f"Step “{place.step.name}” is {place.step.status}."
        f" Plan “{place.plan.name}”: {completed} of {total} steps completed."
    )


def _step_not_found(step_id: str) -> str:
    return f"No plan has a step {step_id!r}. plan__get shows the steps."


# ---- explorers


def _rounds_per_explorer(parent: LiveRun, explorers: int) -> int:
    """Return the model replies that each of `explorers` parallel explorers may use."""
    limit = parent.record.state.request.asked_limits.max_rounds
    if not limit:
        return MAX_ROUNDS
    remaining = limit - parent.tree.budget.budget.rounds - parent.kept_rounds
    return max(1, min(MAX_ROUNDS, remaining // SHARE // explorers))


def _format_answer(back: HandoffEnd) -> str:
    """Return the explorer's answer, complete or cut off by a limit; empty if it failed."""
    findings = _explorer_text(back)
    if not findings or not (has_answer(back.status) or back.status == "limit"):
        return ""
    return f"{findings}\n(It was not done: {back.problem})" if back.status == "limit" else findings


def _format_failure(back: HandoffEnd) -> str:
    findings = _explorer_text(back)
    reason = f"No answer: {back.problem or f'the explorer ended as {back.status}'}"
    return f"{reason}\n{findings}" if findings else reason


def _explorer_text(back: HandoffEnd) -> str:
    content = back.handover.text.strip() if isinstance(back.handover, SaidInWords) else ""
    return limit_words(content, MAX_WORDS)

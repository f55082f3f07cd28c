"""Plans and tasks by nested runs: a plan of a goal, the tasks of a step, working through them, a report."""

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
from daiku.models.rules.replies.actions import ActionReply
from daiku.models.rules.replies.parse import error_text
from daiku.run.live import LiveRun
from daiku.run.nested.briefing import make_brief
from daiku.run.nested.handoff import Nested, nest, nest_at_once
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
from daiku.team.rules import task_report, tasks
from daiku.team.rules.plans.transitions import checklist
from daiku.team.rules.proof.gate import MissingProofs, missing_proofs
from daiku.team.rules.tasks import PlanStep
from daiku.texts.rules.words import limit_words
from daiku.texts.text import NO_TEXT, Text, text
from daiku.tools.tool import failed

MAX_ROUNDS = 25
"""Replies of one explorer; the last of them is for what it has by then."""
SHARE = 2
"""Divisor of the replies that are left to the whole run: all explorers at once get one such part."""
MAX_WORDS = 1000
REPORT = ":report"
"""Behind a call's id: the nested run of it that reports."""
WORKING = "act"


@dataclass(frozen=True, slots=True)
class TaskWork:
    """Plan and task tools of one call of `parent`; continue after a restart. Raise HandoffDepthExceeded, Paused."""

    parent: LiveRun
    call: str

    async def plan(self, goal: str) -> ToolResult:
        """Have the planner make a plan for `goal` (R4.14), and record it in this run."""
        parent = self.parent
        planner = parent.log.services.agents.find("planner")
        if parent.log.agent.name == planner.name:  # it would hand over to itself
            return failed("plan__propose needs `steps`: a list of {name, description, depends_on}.")
        back = await nest(parent, self.call, Nested(planner, goal, make_brief(parent.log, planner, goal)))
        if not isinstance(back.handover, PlanMade):
            return failed(f"No plan came of it: {back.problem or back.result}")
        made = back.handover.plan.model_copy(update={"goal": goal})  # as it was asked for
        parent.record(PlanEvent(plan=made))
        text = f"{checklist(made)}\n\n{back.result}".strip()
        return ToolResult(ok=True, text=text, data={"planId": made.plan_id}, untrusted=back.tainted)

    async def generate(self, step_id: str) -> ToolResult:
        """Make the list of the step's tasks and keep it with the step."""
        parent = self.parent
        place = tasks.find_place(parent.record.state.plans.all, step_id)
        if place is None:
            return failed(_no_step(step_id))
        if place.step.status == "completed":
            return failed(text("tasks.completed", name=place.step.name))
        agent = build_task_maker(parent.log.services.registry.resolve, self._check)
        request = build_tasks_request(place, parent.record.state.conversation.messages, self._operations())
        back = await nest(parent, self.call, Nested(agent, request, _brief(place, request)))
        if not isinstance(back.handover, TasksMade):
            return failed(f"No tasks could be made for step “{place.step.name}”: {back.problem}")
        place = tasks.with_list(self._now(place), back.handover.tasks)
        parent.record(PlanEvent(plan=place.plan))
        return _listed(place, back)

    async def run(self, step_id: str, task_list: tuple[JsonObject, ...]) -> ToolResult:
        """Work through the step's tasks, or through `task_list` ({operation, args, id}); end in a report."""
        place = self._place(step_id, task_list)
        if place is None:
            return failed(_no_step(step_id))
        if not self._begun() and (why := self._why_not(place)):
            return failed(why)
        self._record(place)
        back = await self._work(place)
        place = tasks.reset_interrupted_tasks(self._now(place))
        report = await self._report(place, back)
        place = self._ended(place)
        self._record(place)
        apart = "" if step_id else self._tell_apart(place)
        return ToolResult(
            ok=report.status == "completed",
            text=f"{task_report.report_text(report)}\n\n{_told(place)}{apart}",
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
        """Give independent requests to agents, in parallel where possible (`runs.nested.worktrees`)."""
        works = [self._nested(*piece) for piece in pieces]
        done = await side_by_side(self.parent, self.call, works, only_apart=only_apart)
        if isinstance(done, str):
            return ToolResult(outcome="not_run", text=f"Not side by side: {done}.")
        lines = [
            _piece(number, work, piece)
            for number, (work, piece) in enumerate(zip(works, done, strict=True), 1)
        ]
        well = all(has_answer(p.back.status) and not p.back.problem for p in done)
        return ToolResult(
            ok=well, text="\n\n".join(lines), untrusted=any(piece.back.tainted for piece in done)
        )

    async def explore(self, questions: tuple[str, ...]) -> ToolResult:
        """Have each question about the project answered by an explorer, all at once. Failed ones are reported."""
        explorer, most = (
            self.parent.log.services.agents.find("explorer"),
            _rounds_each(self.parent, len(questions)),
        )
        works = {
            f"{self.call}:{n}": Nested(explorer, question, Brief(request=question), max_rounds=most)
            for n, question in enumerate(questions)
        }
        backs = await nest_at_once(self.parent, works)
        answers = [_answer(back) for back in backs]
        parts = [answer or _failure(back) for answer, back in zip(answers, backs, strict=True)]
        if len(questions) > 1:
            parts = [
                f"{n}. {question}\n{part}"
                for n, (question, part) in enumerate(zip(questions, parts, strict=True), 1)
            ]
        return ToolResult(
            ok=any(answers), text="\n\n".join(parts), untrusted=any(back.tainted for back in backs)
        )

    def _nested(self, agent: str, request: str, step_id: str) -> Nested:
        named = self.parent.log.services.agents.find(agent)
        brief = make_brief(self.parent.log, named, request)
        return Nested(named, request, brief.model_copy(update={"step_id": step_id}) if step_id else brief)

    def _tell_apart(self, place: PlanStep) -> str:
        """Make the plan that is being worked the last one again after a list apart from it, and tell the model."""
        plan = tasks.open_plan_besides(self.parent.record.state.plans.all, place.plan)
        if plan is None or place.plan.name != tasks.APART:
            return ""
        self.parent.record(PlanEvent(plan=plan))
        return f" These tasks are no part of plan “{plan.name}”: give a step_id to work a step of it."

    # -- which step ----------------------------------------------------------------------

    def _place(self, step_id: str, task_list: tuple[JsonObject, ...]) -> PlanStep | None:
        """The step that is worked, with `task_list` as its tasks where there is one."""
        state = self.parent.record.state
        place = tasks.find_place(state.plans.all, step_id) if step_id else None
        if not task_list or (step_id and place is None):
            return place
        made = self._inline(task_list)
        return (
            tasks.attach_task_list(state.plans.all, made, state.request.prompt)
            if place is None
            else tasks.with_list(place, made)
        )

    def _inline(self, task_list: Sequence[JsonObject]) -> tuple[Task, ...]:
        """The list that a call brought; the same ids again when the call goes on after a restart."""
        known = {
            t.task_id for plan in self.parent.record.state.plans.all for s in plan.steps for t in s.task_list
        }

        def name(number: int) -> str:
            own = str(task_list[number - 1].get("id") or "")
            made = sha256(f"{self.parent.run} {self.call} {number}".encode()).hexdigest()[:8]
            return own if own in known else f"task_{made}"

        try:
            replies = [ActionReply.model_validate(each) for each in task_list]
            return tasks.tasks_from_actions(
                replies, self.parent.log.services.registry.resolve, self._check, name
            )
        except ValueError as error:
            failure = Failure(kind="tool", message=text("runs.tasks_cannot", why=error_text(error)))
            raise ToolValidationError(failure) from error

    def _begun(self) -> bool:
        state = self.parent.record.state
        return self.call in state.nested.open or any(b.call_id == self.call for b in state.nested.returned)

    def _why_not(self, place: PlanStep) -> Text:
        if self.parent.record.state.request.mode != WORKING:
            return text("tasks.act_only")
        if place.step.status == "completed":
            return text("tasks.completed", name=place.step.name)
        if waiting := tasks.waits_for(place):
            return text("tasks.waits", name=place.step.name, names=", ".join(waiting))
        if not (place.step.task_list and self._calls(place)):
            return text("tasks.none", name=place.step.name)
        return NO_TEXT

    # -- the work ------------------------------------------------------------------------

    async def _work(self, place: PlanStep) -> HandoffEnd:
        request = f"Work through the tasks of step “{place.step.name}”."
        work = Nested(
            TASK_LOOP,
            request,
            _brief(place, request),
            calls=self._calls(place),
            after=partial(self._follow, place),
        )
        return await nest(self.parent, self.call, work)

    def _follow(self, place: PlanStep, state: State) -> None:
        """The plan as the nested run stands, on record here."""
        self._record(tasks.with_task_progress(self._now(place), state))

    def _ended(self, place: PlanStep) -> PlanStep:
        """The step is completed when its tasks are, and nothing is left to be shown."""
        step = place.step
        left = tasks.open_tasks(step) or any(self._missing(place))
        return place if left or place.plan.status == "draft" else tasks.with_step_status(place, "completed")

    def _missing(self, place: PlanStep) -> MissingProofs:
        return missing_proofs(place.step, self.parent.record.state.done, editor=self._editor)

    def _calls(self, place: PlanStep) -> tuple[ToolCall, ...]:
        seconds = self.parent.record.state.request.limits.check_seconds
        return tasks.calls_of(place, editor=self._editor, check_seconds=seconds)

    @property
    def _editor(self) -> bool:
        return self.parent.log.services.registry.spec("editor/diagnostics") is not None

    async def _report(self, place: PlanStep, back: HandoffEnd) -> TaskReport:
        """A model's report that agrees with the log, else the plain one (C4.11)."""
        lacking = self._missing(place)
        checks = (*(check for check, _ in lacking.to_run), *lacking.unseen)
        facts = task_report.plain_report(place, checks[0] if checks else "", back.problem)
        if place.plan.status == "draft":
            return facts
        log = task_report.execution_log(place.step, _checks(place, back))
        person = next(
            (
                m.text
                for m in reversed(self.parent.record.state.conversation.messages)
                if isinstance(m, UserMessage)
            ),
            "",
        )
        request = build_report_request(place, log, person)
        work = Nested(build_task_reporter(facts), request, _brief(place, request))
        told = await nest(self.parent, self.call + REPORT, work)
        return told.handover.report if isinstance(told.handover, TasksReported) else facts

    def _now(self, place: PlanStep) -> PlanStep:
        """The step as it is on record now: a person may have changed the plan meanwhile."""
        plans = self.parent.record.state.plans.all
        plan = next((p for p in plans if p.plan_id == place.plan.plan_id), place.plan)
        step = next((s for s in plan.steps if s.step_id == place.step.step_id), None)
        return place if step is None else PlanStep(plan, step)

    def _record(self, place: PlanStep) -> None:
        if place.plan not in self.parent.record.state.plans.all:
            self.parent.record(PlanEvent(plan=place.plan))

    # -- operations ----------------------------------------------------------------------

    def _operations(self) -> tuple[ToolSpec, ...]:
        """The tools that a task may name."""
        return tuple(spec for spec in self.parent.log.services.registry.specs() if _may_be_task(spec))

    def _check(self, call: ToolCall) -> str:
        """What is wrong with a task, in words for the model."""
        spec = self.parent.log.services.registry.spec(call.tool)
        if spec is not None and not _may_be_task(spec):
            return f"{wire_name(call.tool)} cannot be a task"
        if spec is not None and any(find_refs(call.args)):
            return ""  # its arguments are known only when it is its turn
        parsed = self.parent.log.services.registry.parse(call)
        return parsed.text if isinstance(parsed, ToolResult) else ""


def _may_be_task(spec: ToolSpec) -> bool:
    return not any(fnmatchcase(spec.name, pattern) for pattern in tasks.OUTSIDE_LISTS)


def _brief(place: PlanStep, request: str) -> Brief:
    return Brief(request=request, plan=place.plan, step_id=place.step.step_id)


def _checks(place: PlanStep, back: HandoffEnd) -> list[tuple[str, bool, str]]:
    """The step's checks that were made: what, whether it passed, its output."""
    deeds = back.deeds
    if deeds is None:
        return []
    found: list[tuple[str, bool, str]] = []
    for check in place.step.acceptance:
        outcome = next((c for c in reversed(deeds.commands) if c.command == check), None)
        if outcome is not None:
            found.append((check, outcome.exit_code == 0, f"exit code {outcome.exit_code}\n{outcome.output}"))
    return found


def _listed(place: PlanStep, back: HandoffEnd) -> ToolResult:
    step = place.step
    given: JsonObject = {
        "plan_id": place.plan.plan_id,
        "step_id": step.step_id,
        "tasks": [
            {"task_id": t.task_id, "operation": t.operation, "args": t.args, "status": t.status}
            for t in step.task_list
        ],
    }
    text = f"Step “{step.name}” has {len(step.task_list)} tasks now ({step.step_id}):\n{back.result}"
    return ToolResult(ok=True, text=text, data=given, untrusted=back.tainted)


def _piece(number: int, work: Nested, piece: Piece) -> str:
    again = f" (done again on top of the others: {piece.again})" if piece.again else ""
    return f"{number}. {work.agent.name}{again}: {piece.back.result or piece.back.problem}"


def _told(place: PlanStep) -> str:
    done, total = place.plan.progress()
    return (
        f"Step “{place.step.name}” is {place.step.status}."
        f" Plan “{place.plan.name}”: {done} of {total} steps completed."
    )


def _no_step(step_id: str) -> str:
    return f"No plan has a step {step_id!r}. plan__get shows the steps."


# ---- explorers


def _rounds_each(parent: LiveRun, explorers: int) -> int:
    """Replies of each of so many explorers at once."""
    limit = parent.record.state.request.asked_limits.max_rounds
    if not limit:
        return MAX_ROUNDS
    left = limit - parent.tree.budget.budget.rounds - parent.kept_rounds
    return max(1, min(MAX_ROUNDS, left // SHARE // explorers))


def _answer(back: HandoffEnd) -> str:
    """What the explorer found, also where a limit ended it before it was done; empty where it has failed."""
    found = _found(back)
    if not found or not (has_answer(back.status) or back.status == "limit"):
        return ""
    return f"{found}\n(It was not done: {back.problem})" if back.status == "limit" else found


def _failure(back: HandoffEnd) -> str:
    found = _found(back)
    why = f"No answer: {back.problem or f'the explorer ended as {back.status}'}"
    return f"{why}\n{found}" if found else why


def _found(back: HandoffEnd) -> str:
    said = back.handover.text.strip() if isinstance(back.handover, SaidInWords) else ""
    return limit_words(said, MAX_WORDS)

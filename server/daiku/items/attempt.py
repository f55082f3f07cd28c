"""One attempt at an item, in its own process without a forge's token: it runs the agent and records intents."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

from daiku.dataclass import dataclass, field, replace
from daiku.domain.chunks import Chunk
from daiku.domain.errors import Failure, GuardrailViolation, UsageError
from daiku.domain.events import ApprovalAsked, InputAsked, PlanEvent, RunFinished, RunStarted
from daiku.domain.items.item import ItemProgress, PostComment, ShowProgress
from daiku.domain.messages import Usage
from daiku.domain.runs import RunResult, RunStatus, has_answer
from daiku.domain.work.plans import Plan
from daiku.items.intents import IntentStore
from daiku.items.items import ItemStore
from daiku.items.labels import get_label
from daiku.items.prompt import collect_wording, render_item_prompt
from daiku.items.record import ACKNOWLEDGED, PAUSE_ORDERS, Claim, ClaimLost, ItemRecord
from daiku.items.retrying import is_outage, log_outage
from daiku.items.rules.assent import list_unfinished, mark_failing, render_verification_prompt
from daiku.items.rules.comments import (
    ProgressReport,
    ProgressStatus,
    render_approval,
    render_progress,
    render_question,
)
from daiku.run.live import ModelPrompt
from daiku.run.recorded.history import evidence_of_session
from daiku.run.request import RunRequest
from daiku.run.rules.check_runs import failing_tests
from daiku.run.rules.state.state import PERSON, WORKER
from daiku.run.runs import Runs
from daiku.settings.config import Config
from daiku.team.rules.proof.evidence import Evidence
from daiku.team.rules.proof.tree_changes import TreeChanges, replace_recorded
from daiku.texts.text import text

LOOK_SECONDS = 0.2
"""Poll interval in seconds of the item's orders and messages."""
STEP_SECONDS = 5.0
"""Seconds that a step may still take when the worker must stop. The worker must end within ten."""
SESSION_WAIT_SECONDS = 25.0
"""Maximum seconds to wait until the previous attempt has released the item's session."""
MOST_EQUAL_ERRORS = 3
"""Number of consecutive calls of one tool with the same error after which the run ends."""

NOTHING_USED = Usage()
SHOWN_LEFT = 5
LEAST_COST = 1e-9
"""Cost limit in dollars when nothing is left; 0 would mean no limit."""
STATUS_AFTER: Mapping[RunStatus, ProgressStatus] = MappingProxyType(
    {
        "paused": "paused",
        "completed": "done",
        "completed_unverified": "failed",
        "limit": "stopped",
        "failed": "failed",
        "cancelled": "stopped",
    }
)
"""Progress status after a run, by its status. A run that reached a limit is never reported as done."""

APPROVE, REJECT = "allow", "reject"
"""First line of a comment that decides an approval. Any other text is a refusal with a reason."""

ReadChanges = Callable[[str], Awaitable[TreeChanges | None]]


@dataclass(slots=True)
class Attempt:
    """The run of one item, with its verification rounds. `language` is that of the comments."""

    runs: Runs
    items: ItemStore
    intents: IntentStore
    claim: Claim
    config: Config
    language: str
    changes: ReadChanges | None = None
    """Reads what the work tree has changed since a commit; without it the recorded edits are used."""
    run: str = ""
    plan: Plan | None = None
    """The current plan."""
    steps: tuple[str, ...] = ()
    """The ids of the steps of the first plan."""
    question_id: str = ""
    """Id of the run's open question or approval request."""
    last_heard: int = 0
    """Number of the last message of a person that the run received."""
    last_note: int = 0
    """Number of the last note of the worker that the run received."""
    usage: Usage = NOTHING_USED
    """Usage of the item's runs so far."""
    lost: bool = field(default=False, init=False)
    model_prompt: ModelPrompt | None = field(default=None, init=False)
    """System prompt and context size of its model; None until they are known."""

    async def work(self) -> RunResult:
        """Start or resume the item's run, until its end or a question. Raises DaikuError, ClaimLost."""
        record = self.items.claimed(self.claim)
        self.runs.learner.defers_reflections = True  # a stopping worker must not wait for a model
        if record.wanted in PAUSE_ORDERS or record.wanted == "give_back":
            self.items.signal(self.claim, "pausing", after="pause")
            return RunResult(run_id=record.run, session_id=record.shown.session_id, status="paused")
        self.usage = record.shown.usage or NOTHING_USED
        working = asyncio.create_task(self._start_or_resume(record))
        watching = asyncio.create_task(self._watch(working))
        try:
            result = await working
        except asyncio.CancelledError:
            if not self.lost:
                raise
        else:
            if not self.lost:
                usage = self._sum_usage(result.session_id)
                usage = usage.plus(result.usage) if result.status == "paused" else usage
                self.items.change(self.claim, usage=usage)
                status: ProgressStatus = "queued" if is_outage(result) else STATUS_AFTER[result.status]
                self._want_progress(status if not self.question_id else "waiting", usage)
                return result
        finally:
            watching.cancel()
        raise ClaimLost(self.claim.item)

    async def _start_or_resume(self, record: ItemRecord) -> RunResult:
        self.last_heard, self.last_note = record.facts.heard, record.facts.noted
        if record.run:
            self.run = record.run
            self._load_plan(record)
            await self._give_answer(record)
            self._want_progress("processing")
        return await self._run_with_verification(await self._run_when_free(record))

    async def _run_with_verification(self, result: RunResult) -> RunResult:
        """Run until nothing is unfinished or the verification rounds are used up, and return the result.

        After the last round, unfinished work counts as stopped at a limit. Each round is a run of its own,
        with its limits.
        """
        while has_answer(result.status):
            record = self.items.claimed(self.claim)
            evidence = await self._read_evidence(record, result.session_id)
            remaining, rounds = list_unfinished(evidence, self.plan), record.facts.verified
            failing = failing_tests(evidence)
            tests = failing if not rounds else ()
            if not evidence.files or not (remaining or tests):
                return mark_failing(result, failing)
            if rounds >= self.config.work.verifications:
                return _mark_unfinished(result, remaining) if remaining else mark_failing(result, failing)
            self.items.note(self.claim, verified=rounds + 1)
            request, prompt = self._build_request(record), render_verification_prompt(remaining, tests)
            request = replace(request, session=result.session_id, text=prompt, wording="")
            result = await self.runs.run(request, self._listen)
        return result

    async def _read_evidence(self, record: ItemRecord, session: str) -> Evidence:
        """Return the runs' evidence: recorded commands, and files and leftovers from the tree if readable."""
        evidence = evidence_of_session(self.runs.services.journal, session)
        changes = await self.changes(record.facts.base_commit) if self.changes is not None else None
        return evidence if changes is None else replace_recorded(evidence, changes)

    async def _run_when_free(self, record: ItemRecord) -> RunResult:
        """Run once the item's session is free. If that takes too long, give the item back."""
        loop = asyncio.get_running_loop()
        until = loop.time() + SESSION_WAIT_SECONDS
        while True:
            try:
                if record.run:
                    return await self.runs.resume(record.run, self._listen, "work")
                return await self.runs.run(self._build_request(record), self._listen)
            except UsageError as busy:
                if busy.failure.kind != "busy":
                    raise
                if loop.time() > until:
                    self.items.change(self.claim, state="queued", error=busy.failure.message)
                    raise
            await asyncio.sleep(LOOK_SECONDS)

    def _build_request(self, record: ItemRecord) -> RunRequest:
        work = self.config.work
        limits = self.config.limits.model_copy(
            update={
                "max_rounds": work.max_rounds,
                "max_cost": self._remaining_cost(record) if work.max_cost else self.config.limits.max_cost,
                "max_equal_errors": MOST_EQUAL_ERRORS,
                "max_verifications": work.verifications,
            }
        )
        return RunRequest(
            text=render_item_prompt(record),
            wording=collect_wording(record),
            session=record.shown.session_id or None,
            approvals="work",
            limits=limits,
            tainted=True,
            title=f"{record.item} {record.claim.title if record.claim is not None else ''}",
        )

    def _remaining_cost(self, record: ItemRecord) -> float:
        """Return the item's remaining budget in dollars, at least LEAST_COST, which ends the run at once."""
        return max(
            self.config.work.max_cost - (self._sum_usage(record.shown.session_id).cost or 0.0), LEAST_COST
        )

    def _sum_usage(self, session: str) -> Usage:
        """Return the usage of the item's ended runs."""
        usage = Usage()
        for chunk in self.runs.services.journal.chunks(session) if session else ():
            if chunk.parent is None and isinstance(chunk.event, RunFinished):
                usage = usage.plus(chunk.event.usage)
        return usage

    async def _give_answer(self, record: ItemRecord) -> None:
        """Give the run a person's answer to its question: the first message after it."""
        messages = self.items.messages.list_after(record.item, "person", record.facts.heard)
        if not record.facts.question or not messages:
            return
        number, message = messages[0]
        answer = message.strip()
        if record.facts.of_approval:
            first, _, rest = answer.partition("\n")
            verdict = first.strip().strip("`").casefold()
            allowed = verdict == APPROVE
            feedback = None if allowed else (rest if verdict == REJECT else answer).strip() or None
            decision = "allow_once" if allowed else "reject_once"
            await self.runs.approve(record.run, record.facts.question, decision, feedback)
        else:
            await self.runs.answer(record.run, record.facts.question, answer)
        self.last_heard = number
        self.items.note(self.claim, question="", heard=number)

    def _listen(self, chunk: Chunk) -> None:
        self.model_prompt = self.model_prompt or self.runs.model_prompt(self.run)
        match chunk.event:
            case RunStarted() if chunk.parent is None:
                self.run = chunk.run
                self.items.change(self.claim, session_id=chunk.session, run=chunk.run)
                self._want_progress("processing")
            case PlanEvent(plan=plan):
                self._set_plan(plan)
                self._want_progress("processing")
                self.items.change(self.claim, progress=summarize_progress(plan))
            case Usage() as call:
                self.usage = self.usage.plus(call)
                self.items.change(self.claim, usage=self.usage)
            case ApprovalAsked() as request:
                comment = render_approval(request.preview, request.why, self.language)
                self._want_question(request.approval_id, comment, of_approval=True)
            case InputAsked() as request:
                self._want_question(
                    request.input_id, render_question(request.question, request.choices, self.language)
                )
            case _:
                pass

    def _load_plan(self, record: ItemRecord) -> None:
        """Load the plan of the earlier runs."""
        for chunk in self.runs.services.journal.chunks(record.shown.session_id):
            if chunk.parent is None and isinstance(chunk.event, PlanEvent):
                self._set_plan(chunk.event.plan)

    def _set_plan(self, plan: Plan) -> None:
        if self.plan is None or self.plan.plan_id != plan.plan_id:
            self.steps = tuple(step.step_id for step in plan.steps)
        self.plan = plan

    def _want_progress(self, status: ProgressStatus, usage: Usage = NOTHING_USED) -> None:
        """Record an intent to update the progress comment."""
        label = get_label(self.config.work.labels, status)
        report = ProgressReport(status, self.plan, self.steps, usage, label)
        self._want("progress", ShowProgress(text=render_progress(report, self.language)))

    def _want_question(self, question: str, comment: str, *, of_approval: bool = False) -> None:
        self.question_id = question
        self._want(f"question-{question}", PostComment(text=comment))
        self.items.note(self.claim, question=question, of_approval=of_approval)

    def _want(self, operation: str, intent: PostComment | ShowProgress) -> None:
        self.intents.want(self.claim, operation, intent)

    async def _watch(self, working: asyncio.Task[RunResult]) -> None:
        """Follow the item's orders until the attempt has ended or its claim is lost."""
        while not working.done() and not self.lost:
            await asyncio.sleep(LOOK_SECONDS)
            with suppress(ClaimLost), log_outage(self.claim.item):  # the next poll ends a lost run
                await self._follow_order(working)

    async def _follow_order(self, working: asyncio.Task[RunResult]) -> None:
        """Follow the item's current order; deliver new messages if there is none. Raises DaikuError."""
        match order := self.items.current_order(self.claim):
            case None:
                self.lost = True
                await self.runs.stop_all()
                working.cancel()
            case "cancel":
                self._stop_run(self.runs.begin_cancel)
            case "give_back":
                self._stop_run(self.runs.begin_pause)
                await self._stop_after_step(working)
            case _ if order in PAUSE_ORDERS or self.question_id:
                if self._stop_run(self.runs.begin_pause) and order in ACKNOWLEDGED:
                    self.items.signal(self.claim, ACKNOWLEDGED[order], after=order)
            case _:
                await self._deliver_messages()

    def _stop_run(self, begin: Callable[[str], object]) -> bool:
        if not self.run or not self.runs.is_live(self.run):
            return False
        begin(self.run)
        return True

    async def _stop_after_step(self, working: asyncio.Task[RunResult]) -> None:
        """Wait STEP_SECONDS for the current step, then stop the run. It can be resumed."""
        await asyncio.wait({working}, timeout=STEP_SECONDS)
        if not working.done():
            await self.runs.stop_all()

    async def _deliver_messages(self) -> None:
        """Pass new messages of people and notes of the worker on to the run."""
        if not self.run or not self.runs.is_live(self.run):
            return
        item, messages = self.claim.item, self.items.messages
        with suppress(UsageError):  # the run has just ended
            for number, note in messages.list_after(item, "system", self.last_note):
                await self._steer(note, WORKER)
                self.last_note = number
                self.items.note(self.claim, noted=number)
            for number, message in messages.list_after(item, "person", self.last_heard):
                await self._steer(message, PERSON)
                self.last_heard = number
                self.items.note(self.claim, heard=number)

    async def _steer(self, words: str, agent: str) -> None:
        """Send a message to the run. If a guardrail blocks it, the run records that, and the next message follows."""
        with suppress(GuardrailViolation):
            await self.runs.steer(self.run, words, agent)


def _mark_unfinished(result: RunResult, remaining: Sequence[str]) -> RunResult:
    why = Failure(kind="limit", message=text("work.not_whole", left=" · ".join(remaining[:SHOWN_LEFT])))
    return result.model_copy(update={"status": "limit", "error": why})


def summarize_progress(plan: Plan) -> ItemProgress:
    """Return the progress of a plan, for the list of items."""
    completed, total = plan.progress()
    now = next((step.name for step in plan.steps if step.status == "in_progress"), "")
    return ItemProgress(done=completed, total=total, step=now)

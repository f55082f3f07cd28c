"""One attempt at an item, in a process of its own without a forge's token: it runs the agent, and notes intents."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

from daiku.dataclass import dataclass, field, replace
from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError, Failure, GuardrailViolation, UsageError
from daiku.domain.events import ApprovalAsked, InputAsked, PlanEvent, RunFinished, RunStarted
from daiku.domain.items.intents import PostComment, ShowProgress
from daiku.domain.items.item import ItemProgress
from daiku.domain.messages import Usage
from daiku.domain.runs import RunResult, RunStatus, has_answer
from daiku.domain.work.plans import Plan
from daiku.items.intents import IntentStore
from daiku.items.items import ItemStore
from daiku.items.labels import label_of
from daiku.items.prompt import item_prompt, wording_of
from daiku.items.record import HEARD, PAUSES, Claim, ClaimLost, ItemRecord
from daiku.items.retrying import is_outage
from daiku.items.rules.comments import (
    Progress,
    Standing,
    approval_comment,
    progress_comment,
    question_comment,
)
from daiku.items.rules.verification import go_on, mark_failing, unfinished
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

logger = logging.getLogger(__name__)
LOOK_SECONDS = 0.2
"""Between two looks at what is wanted of the attempt."""
STEP_SECONDS = 5.0
"""What a step may still take when the worker is to stop, which has to be gone after ten."""
HELD_SECONDS = 25.0
"""Maximum seconds to wait until whoever processed the item before has released its session."""
MOST_EQUAL_ERRORS = 3
"""Calls of one tool in a row that fail with the same words, after which the run ends (B2.3)."""

NOTHING_USED = Usage()
SHOWN_LEFT = 5
LEAST_COST = 1e-9
"""Dollars; 0 would be no limit."""
STANDING: Mapping[RunStatus, Standing] = MappingProxyType(
    {
        "paused": "paused",
        "completed": "done",
        "completed_unverified": "failed",
        "limit": "stopped",
        "failed": "failed",
        "cancelled": "stopped",
    }
)
"""How an item stands whose run ended so; one that asked something waits, one at a limit is never told as done (C2.4)."""

APPROVE, REJECT = "allow", "reject"
"""The first line of a comment by which a person decides; other words are a refusal with a reason."""

ReadChanges = Callable[[str], Awaitable[TreeChanges | None]]


@dataclass(slots=True)
class Attempt:
    """The run of one item, with its verification rounds (S2P.1). `language` is that of the comments."""

    runs: Runs
    items: ItemStore
    intents: IntentStore
    claim: Claim
    config: Config
    language: str
    changes: ReadChanges | None = None
    """Reads what the work tree has changed since a commit; without it the record of edits is used."""
    run: str = ""
    plan: Plan | None = None
    """The plan as it stands."""
    steps: tuple[str, ...] = ()
    """The ids of the steps that the plan began with."""
    asked: str = ""
    """What the run asked of a person, by its id."""
    heard: int = 0
    """The number of the last word of a person that the run was told."""
    noted: int = 0
    """The number of the last note of the worker that the run was told."""
    used: Usage = NOTHING_USED
    """What the item's runs used so far, by what was heard of them."""
    lost: bool = field(default=False, init=False)
    told: ModelPrompt | None = field(default=None, init=False)
    """What its model is told besides the conversation; None until it is known."""

    async def work(self) -> RunResult:
        """Begin the item's run, or resume it, to its end or to a question. Raises DaikuError, ClaimLost."""
        record = self.items.claimed(self.claim)
        self.runs.learner.defers_reflections = True  # a worker that is told to end must not wait for a model
        if record.wanted in PAUSES or record.wanted == "give_back":
            self.items.signal(self.claim, "pausing", after="pause")
            return RunResult(run_id=record.run, session_id=record.shown.session_id, status="paused")
        self.used = record.shown.usage or NOTHING_USED
        working = asyncio.create_task(self._begun(record))
        watching = asyncio.create_task(self._watch(working))
        try:
            result = await working
        except asyncio.CancelledError:
            if not self.lost:
                raise
        else:
            if not self.lost:
                used = self._used(result.session_id)
                used = used.plus(result.usage) if result.status == "paused" else used
                self.items.change(self.claim, usage=used)
                standing: Standing = "queued" if is_outage(result) else STANDING[result.status]
                self._show(standing if not self.asked else "waiting", used)
                return result
        finally:
            watching.cancel()
        raise ClaimLost(self.claim.item)

    async def _begun(self, record: ItemRecord) -> RunResult:
        self.heard, self.noted = record.facts.heard, record.facts.noted
        if record.run:
            self.run = record.run
            self._remember(record)
            await self._answer(record)
            self._show("processing")
        return await self._verified(await self._as_soon_as_free(record))

    async def _verified(self, result: RunResult) -> RunResult:
        """The result when the last look finds nothing unfinished, or the rounds for that are over: then it is one of work
        that reached a limit (S2P.10, S2P.18). Each round is a run with a run's limits and signals (S2P.20)."""
        while has_answer(result.status):
            record = self.items.claimed(self.claim)
            done = await self._evidence(record, result.session_id)
            left, rounds = unfinished(done, self.plan), record.facts.verified
            failing = failing_tests(done)
            tests = failing if not rounds else ()
            if not done.files or not (left or tests):
                return mark_failing(result, failing)
            if rounds >= self.config.work.verifications:
                return _not_whole(result, left) if left else mark_failing(result, failing)
            self.items.note(self.claim, verified=rounds + 1)
            request, prompt = self._request(record), go_on(left, tests)
            request = replace(request, session=result.session_id, text=prompt, wording="")
            result = await self.runs.run(request, self._listen)
        return result

    async def _evidence(self, record: ItemRecord, session: str) -> Evidence:
        """Return what the runs did: commands from the record, files and leftovers from the tree if it can be read."""
        done = evidence_of_session(self.runs.services.journal, session)
        changes = await self.changes(record.facts.base_commit) if self.changes is not None else None
        return done if changes is None else replace_recorded(done, changes)

    async def _as_soon_as_free(self, record: ItemRecord) -> RunResult:
        """Run once nobody holds the item's session any more. Where that takes too long, the item is given back."""
        loop = asyncio.get_running_loop()
        until = loop.time() + HELD_SECONDS
        while True:
            try:
                if record.run:
                    return await self.runs.resume(record.run, self._listen, "work")
                return await self.runs.run(self._request(record), self._listen)
            except UsageError as held:
                if held.failure.kind != "busy":
                    raise
                if loop.time() > until:
                    self.items.change(self.claim, state="queued", error=held.failure.message)
                    raise
            await asyncio.sleep(LOOK_SECONDS)

    def _request(self, record: ItemRecord) -> RunRequest:
        work = self.config.work
        limits = self.config.limits.model_copy(
            update={
                "max_rounds": work.max_rounds,
                "max_cost": self._left(record) if work.max_cost else self.config.limits.max_cost,
                "max_equal_errors": MOST_EQUAL_ERRORS,
                "max_verifications": work.verifications,
            }
        )
        return RunRequest(
            text=item_prompt(record),
            wording=wording_of(record),
            session=record.shown.session_id or None,
            approvals="work",
            limits=limits,
            tainted=True,
            title=f"{record.item} {record.claim.title if record.claim is not None else ''}",
        )

    def _left(self, record: ItemRecord) -> float:
        """What the item may still cost; where nothing is left, so little that the run ends at once."""
        return max(self.config.work.max_cost - (self._used(record.shown.session_id).cost or 0.0), LEAST_COST)

    def _used(self, session: str) -> Usage:
        """What the runs of the item used that have ended."""
        used = Usage()
        for chunk in self.runs.services.journal.chunks(session) if session else ():
            if chunk.parent is None and isinstance(chunk.event, RunFinished):
                used = used.plus(chunk.event.usage)
        return used

    async def _answer(self, record: ItemRecord) -> None:
        """Give the run what a person answered to its question: the first words that came after it."""
        told = self.items.words.left(record.item, "person", record.facts.heard)
        if not record.facts.question or not told:
            return
        number, said = told[0]
        words = said.strip()
        if record.facts.of_approval:
            first, _, rest = words.partition("\n")
            word = first.strip().strip("`").casefold()
            allowed = word == APPROVE
            feedback = None if allowed else (rest if word == REJECT else words).strip() or None
            decision = "allow_once" if allowed else "reject_once"
            await self.runs.approve(record.run, record.facts.question, decision, feedback)
        else:
            await self.runs.answer(record.run, record.facts.question, words)
        self.heard = number
        self.items.note(self.claim, question="", heard=number)

    def _listen(self, chunk: Chunk) -> None:
        self.told = self.told or self.runs.model_prompt(self.run)
        match chunk.event:
            case RunStarted() if chunk.parent is None:
                self.run = chunk.run
                self.items.change(self.claim, session_id=chunk.session, run=chunk.run)
                self._show("processing")
            case PlanEvent(plan=plan):
                self._follow(plan)
                self._show("processing")
                self.items.change(self.claim, progress=progress_of(plan))
            case Usage() as call:
                self.used = self.used.plus(call)
                self.items.change(self.claim, usage=self.used)
            case ApprovalAsked() as asked:
                told = approval_comment(asked.preview, asked.why, self.language)
                self._ask(asked.approval_id, told, of_approval=True)
            case InputAsked() as asked:
                self._ask(asked.input_id, question_comment(asked.question, asked.choices, self.language))
            case _:
                pass

    def _remember(self, record: ItemRecord) -> None:
        """Take up the plan of the runs before."""
        for chunk in self.runs.services.journal.chunks(record.shown.session_id):
            if chunk.parent is None and isinstance(chunk.event, PlanEvent):
                self._follow(chunk.event.plan)

    def _follow(self, plan: Plan) -> None:
        if self.plan is None or self.plan.plan_id != plan.plan_id:
            self.steps = tuple(step.step_id for step in plan.steps)
        self.plan = plan

    def _show(self, standing: Standing, usage: Usage = NOTHING_USED) -> None:
        """Have the one comment of progress say how the item stands."""
        label = label_of(self.config.work.labels, standing)
        shown = Progress(standing, self.plan, self.steps, usage, label)
        self._want("progress", ShowProgress(text=progress_comment(shown, self.language)))

    def _ask(self, question: str, comment: str, *, of_approval: bool = False) -> None:
        self.asked = question
        self._want(f"question-{question}", PostComment(text=comment))
        self.items.note(self.claim, question=question, of_approval=of_approval)

    def _want(self, operation: str, intent: PostComment | ShowProgress) -> None:
        self.intents.want(self.claim, operation, intent)

    async def _watch(self, working: asyncio.Task[RunResult]) -> None:
        """Do what is wanted of the attempt from elsewhere, until it has ended or is not ours any more."""
        while not working.done() and not self.lost:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self._do_as_wanted(working)
            except DaikuError as wrong:  # a server that comes back; without it the run cannot write either
                logger.warning("%s", wrong.failure.message)

    async def _do_as_wanted(self, working: asyncio.Task[RunResult]) -> None:
        """Look once at what is wanted of the attempt, and do it. Raises DaikuError."""
        match wanted := self.items.holds(self.claim):
            case None:
                self.lost = True
                await self.runs.stop_all()
                working.cancel()
            case "cancel":
                self._end(self.runs.begin_cancel)
            case "give_back":
                self._end(self.runs.begin_pause)
                await self._let_go(working)
            case _ if wanted in PAUSES or self.asked:
                if self._end(self.runs.begin_pause) and wanted in HEARD:
                    self.items.signal(self.claim, HEARD[wanted], after=wanted)
            case _:
                await self._tell()

    def _end(self, how: Callable[[str], object]) -> bool:
        if not self.run or not self.runs.is_live(self.run):
            return False
        how(self.run)
        return True

    async def _let_go(self, working: asyncio.Task[RunResult]) -> None:
        """Give a step that takes long the time to end, then leave the run as it is: it can be gone on with."""
        await asyncio.wait({working}, timeout=STEP_SECONDS)
        if not working.done():
            await self.runs.stop_all()

    async def _tell(self) -> None:
        """Pass on what people said meanwhile, and what the worker noted of the work tree."""
        if not self.run or not self.runs.is_live(self.run):
            return
        item, words = self.claim.item, self.items.words
        try:
            for number, note in words.left(item, "system", self.noted):
                await self._steer(note, WORKER)
                self.noted = number
                self.items.note(self.claim, noted=number)
            for number, said in words.left(item, "person", self.heard):
                await self._steer(said, PERSON)
                self.heard = number
                self.items.note(self.claim, heard=number)
        except (ClaimLost, UsageError):  # somebody else has the item, or the run has just ended
            return
        except DaikuError as wrong:  # a server that comes back
            logger.warning("%s", wrong.failure.message)

    async def _steer(self, words: str, agent: str) -> None:
        """Pass words on to the run. If a guardrail blocks them, its record says so, and the next words follow."""
        with suppress(GuardrailViolation):
            await self.runs.steer(self.run, words, agent)


def _not_whole(result: RunResult, left: Sequence[str]) -> RunResult:
    why = Failure(kind="limit", message=text("work.not_whole", left=" · ".join(left[:SHOWN_LEFT])))
    return result.model_copy(update={"status": "limit", "error": why})


def progress_of(plan: Plan) -> ItemProgress:
    """How far a plan is, for whoever looks at the list of items."""
    done, total = plan.progress()
    now = next((step.name for step in plan.steps if step.status == "in_progress"), "")
    return ItemProgress(done=done, total=total, step=now)

"""One session of a client: its folder's App, its mode, and the turn that is under way."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from typing import Any

from acp import Client
from acp.schema import AvailableCommand, AvailableCommandsUpdate, StopReason

from daiku.dataclass import dataclass, field, replace
from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError, Failure
from daiku.domain.events import InputAsked, InputGiven, PlanEvent, RunFinished, RunStarted
from daiku.domain.runs import Mode, RunResult
from daiku.domain.work.plans import Plan
from daiku.fronts.acp.asking import Questions
from daiku.fronts.acp.opening import Opened
from daiku.fronts.acp.outbox import Outbox
from daiku.fronts.acp.prompt import Prompt
from daiku.fronts.acp.refusals import refusal
from daiku.fronts.acp.updates import Place, View, Written
from daiku.library.fronts import RunRequest
from daiku.library.plans.managing import approve_draft, work_request
from daiku.texts.text import render, text

log = logging.getLogger(__name__)

RESUME = "/resume"
"""The prompt that goes on with the last run of the session, where that was interrupted, paused or not completed."""
WORK = "/work"
"""The prompt that lets the team work the session's plan; whoever asks for it approves of it."""
REFUSED = ("guardrail", "content_filter")
"""Failures that are a refusal to a client, not a fault."""


@dataclass(slots=True)
class Turn:
    """One prompt under way; `run` is empty until it has begun. `ending`: the client cancelled it."""

    run: str = ""
    ending: bool = False
    tasks: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that the person's next message answers."""

    run: str
    input_id: str


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """How a turn ended, for the client."""

    reason: StopReason
    result: RunResult


class Conversation:
    """A session of ours that a client has open. `language` is the person's; what is shown comes in it."""

    def __init__(
        self, client: Client, session: str, opened: Opened, language: str, *, place: Place, written: Written
    ) -> None:
        self.session = session
        self.made_here = False
        self.app = opened.app
        self.mode: Mode = "act"
        self.question: OpenQuestion | None = None
        self.outbox = Outbox(client, session)
        self._client = client
        self._language = language
        self._place = place
        self._notices = list(opened.notices)
        self.view = View(language, place, written)
        self._turn: Turn | None = None
        self._left = False
        self._plan: Plan | None = None
        """The session's newest plan."""
        self._offered: list[str] = []

    async def prompt(self, prompt: Prompt) -> TurnEnd:
        """Do what the person says; the turn's end. Raises RequestError: a turn is under way, the run failed."""
        self.refuse_if_busy()
        if not (prompt.text or prompt.context or prompt.images):
            raise refusal(Failure(kind="usage", message=text("acp.empty")))
        turn = self._turn = Turn()
        self._fit_window()
        questions = self._questions(turn)
        for notice in self._notices:
            self.outbox.put(self.view.note(render(notice, self._language)))
        self._notices.clear()
        try:
            result = (await self._work(turn, prompt, questions)).in_language(self._language)
        finally:
            self._turn = None
            questions.close()
            await self.outbox.drained()
        return await self._end(result)

    def refuse_if_busy(self) -> None:
        """Raises RequestError where a turn is under way."""
        if self._turn is not None:
            raise refusal(Failure(kind="busy", message=text("acp.busy"), hint=text("acp.cancel_first")))

    async def cancel(self) -> None:
        """End the turn that is under way, if any; it is answered as cancelled."""
        turn = self._turn
        if turn is None:
            return
        turn.ending = True
        if turn.run:
            await self.app.runs.cancel(turn.run)

    def restore(self, *, shown: bool) -> None:
        """Take up the session as the journal has it, with a question that waits for the person's words; `shown`:
        the client is told the conversation so far."""
        view = View(self._language, self._place, replays=True)
        run, ended = "", True
        asked: dict[str, InputAsked] = {}
        for chunk in self.app.journal.chunks(self.session):
            for update in view.updates(chunk) if shown else ():
                self.outbox.put(update)
            match chunk.event:
                case RunStarted(mode=mode) if chunk.parent is None:
                    run, ended, self.mode = chunk.run, False, mode
                    asked.clear()
                case RunFinished() if chunk.run == run:
                    ended = True
                case PlanEvent(plan=plan):
                    self._plan = plan
                case InputAsked() as question:
                    asked[question.input_id] = question
                case InputGiven(input_id=key):
                    asked.pop(key, None)
                case _:
                    pass
        if asked and not ended:
            self.question = OpenQuestion(run, next(reversed(asked)))
            if shown:
                self.outbox.put(self.view.words(_in_words(asked[self.question.input_id])))

    def offer_commands(self) -> None:
        """Tell the client of the commands that there is something to do for, where they are others than before."""
        status = self.app.journal.get_session(self.session).status
        undone = status in ("interrupted", "paused", "limit", "cancelled", "failed") and self.question is None
        planned = self._plan is not None and self._plan.status not in ("completed", "failed")
        offered = [name for name, there in ((RESUME, undone), (WORK, planned)) if there]
        if offered == self._offered:
            return
        self._offered = offered
        said = {RESUME: text("acp.resume"), WORK: text("acp.work")}
        commands = [
            AvailableCommand(name=name[1:], description=render(said[name], self._language))
            for name in offered
        ]
        self.outbox.put(
            AvailableCommandsUpdate(session_update="available_commands_update", available_commands=commands)
        )

    def show_terminal(self, call: str, terminal: str) -> None:
        """Show a terminal of the client with the call that runs in it."""
        for update in self.view.attach(call, terminal):
            self.outbox.put(update)

    async def close(self) -> None:
        """Let go of the session: a run under way stays resumable. One that was made here and in which nothing
        was said is forgotten."""
        if self._turn is not None:
            for task in self._turn.tasks:
                task.cancel()
        self._left = True
        with contextlib.suppress(DaikuError):  # another process is at work in it, or has deleted it
            if self.made_here and not self.app.journal.get_session(self.session).last_seq:
                self.app.journal.delete_session(self.session)
        await self.app.aclose()
        await self.outbox.close()

    # ---- a turn

    async def _work(self, turn: Turn, prompt: Prompt, questions: Questions) -> RunResult:
        def listen(chunk: Chunk) -> None:
            if not turn.run and chunk.parent is None:
                turn.run = chunk.run
                if turn.ending:
                    self._beside(turn, self.cancel())
            if isinstance(chunk.event, PlanEvent):
                self._plan = chunk.event.plan
            for update in self.view.updates(chunk):
                self.outbox.put(update)
            questions.hear(chunk.in_language(self._language))

        runs, question = self.app.runs, self.question
        if question is not None:
            self.question = None
            turn.run = question.run
            await runs.answer(question.run, question.input_id, prompt.text)
            return await runs.resume(question.run, listen)
        if prompt.text == RESUME:
            turn.run = runs.last_run(self.session)
            return await runs.resume(turn.run, listen)
        if prompt.text == WORK:
            return await runs.run(await self._team_request(), listen)
        request = RunRequest(
            prompt.text, session=self.session, mode=self.mode, context=prompt.context, images=prompt.images
        )
        return await runs.run(request, listen)

    async def _team_request(self) -> RunRequest:
        """What has the team work the plan. Raises RequestError where there is none."""
        plan = self._plan
        if plan is None:
            raise refusal(Failure(kind="not_found", message=text("acp.no_plan")))
        self._plan = await approve_draft(self.app, plan)
        return replace(await work_request(self.app, self._plan), session=self.session)

    def _questions(self, turn: Turn) -> Questions:
        async def wait_for_words(asked: InputAsked) -> None:
            self.question = OpenQuestion(turn.run, asked.input_id)
            self.outbox.put(self.view.words(_in_words(asked)))
            self._beside(turn, self._pause(turn.run))

        return Questions(
            self._client,
            self.session,
            self.outbox,
            self.view,
            self.app.runs,
            cancel=self.cancel,
            wait_for_words=wait_for_words,
        )

    async def _pause(self, run: str) -> None:
        try:
            await self.app.runs.pause(run)
        except DaikuError as error:  # it ended in the same moment
            log.info("%s", error.failure.message)

    def _beside(self, turn: Turn, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        turn.tasks.add(task)
        task.add_done_callback(turn.tasks.discard)

    async def _end(self, result: RunResult) -> TurnEnd:
        if self._left:  # the run was let go of, and says of itself that it is paused
            return TurnEnd("cancelled", result)
        self.offer_commands()
        await self.outbox.drained()
        match result.status:
            case "completed" | "completed_unverified" | "paused":
                return TurnEnd("end_turn", result)
            case "cancelled":
                return TurnEnd("cancelled", result)
            case "limit":
                self._say_why(result)
                await self.outbox.drained()
                return TurnEnd("max_turn_requests", result)
            case "failed":
                if result.error is not None and result.error.kind in REFUSED:
                    self._say_why(result)
                    await self.outbox.drained()
                    return TurnEnd("refusal", result)
                raise refusal(result.error or Failure(kind="internal", message=text("acp.failed")))

    def _say_why(self, result: RunResult) -> None:
        if result.error is not None:
            self.outbox.put(self.view.note(f"{result.error.message} {result.error.hint}".strip()))

    def _fit_window(self) -> None:
        """Let the view know how large the model's window is; where no model can be had, the run itself says why."""
        try:
            self.view.window = self.app.llm.resolve("").context
        except DaikuError:
            self.view.window = 0


def _in_words(asked: InputAsked) -> str:
    return "\n".join((asked.question, *(f"- {choice}" for choice in asked.choices)))

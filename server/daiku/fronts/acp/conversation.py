"""One open session of a client: its folder's App, its mode, and the active turn."""

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
from daiku.fronts.acp.asking import ClientQuestions
from daiku.fronts.acp.opening import Opened
from daiku.fronts.acp.outbox import Outbox
from daiku.fronts.acp.prompt import ClientPrompt
from daiku.fronts.acp.refusals import refusal
from daiku.fronts.acp.updates import LastChanges, Place, View
from daiku.library.fronts import RunRequest
from daiku.library.plans.managing import approve_draft, work_request
from daiku.texts.text import render, text

log = logging.getLogger(__name__)

RESUME = "/resume"
"""ClientPrompt that resumes the session's last run if it was interrupted, paused, or not completed."""
WORK = "/work"
"""ClientPrompt that lets the team run the session's plan; it implies approval of the plan."""
REFUSED = ("guardrail", "content_filter")
"""Failure kinds that a client sees as a refusal, not as an error."""


@dataclass(slots=True)
class PromptTurn:
    """An active prompt. `run` is empty until the run has started. `ending`: the client cancelled it."""

    run: str = ""
    ending: bool = False
    tasks: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that the user's next message answers."""

    run: str
    input_id: str


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """Outcome of a turn, for the client."""

    reason: StopReason
    result: RunResult


class ClientConversation:
    """A session that a client has open. `language` is the language of displayed text."""

    def __init__(
        self,
        client: Client,
        session: str,
        opened: Opened,
        language: str,
        *,
        place: Place,
        last_changes: LastChanges,
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
        self.view = View(language, place, last_changes)
        self._turn: PromptTurn | None = None
        self._left = False
        self._plan: Plan | None = None
        """The session's newest plan."""
        self._offered: list[str] = []

    async def prompt(self, prompt: ClientPrompt) -> TurnEnd:
        """Run a prompt and return how the turn ended.

        Raises RequestError if a turn is active or the run failed.
        """
        self.refuse_if_busy()
        if not (prompt.text or prompt.context or prompt.images):
            raise refusal(Failure(kind="usage", message=text("acp.empty")))
        turn = self._turn = PromptTurn()
        self._fit_window()
        questions = self._questions(turn)
        for notice in self._notices:
            self.outbox.add(self.view.note(render(notice, self._language)))
        self._notices.clear()
        try:
            result = (await self._run_prompt(turn, prompt, questions)).in_language(self._language)
        finally:
            self._turn = None
            questions.close()
            await self.outbox.drained()
        return await self._end(result)

    def refuse_if_busy(self) -> None:
        """Raise RequestError if a turn is active."""
        if self._turn is not None:
            raise refusal(Failure(kind="busy", message=text("acp.busy"), hint=text("acp.cancel_first")))

    async def cancel(self) -> None:
        """Cancel the active turn, if any."""
        turn = self._turn
        if turn is None:
            return
        turn.ending = True
        if turn.run:
            await self.app.runs.cancel(turn.run)

    def restore(self, *, send_history: bool) -> None:
        """Restore the state from the journal, including an open question.

        `send_history`: send the conversation so far to the client.
        """
        view = View(self._language, self._place, replays=True)
        run, has_ended = "", True
        questions: dict[str, InputAsked] = {}
        for chunk in self.app.journal.chunks(self.session):
            for update in view.updates(chunk) if send_history else ():
                self.outbox.add(update)
            match chunk.event:
                case RunStarted(mode=mode) if chunk.parent is None:
                    run, has_ended, self.mode = chunk.run, False, mode
                    questions.clear()
                case RunFinished() if chunk.run == run:
                    has_ended = True
                case PlanEvent(plan=plan):
                    self._plan = plan
                case InputAsked() as question:
                    questions[question.input_id] = question
                case InputGiven(input_id=key):
                    questions.pop(key, None)
                case _:
                    pass
        if questions and not has_ended:
            self.question = OpenQuestion(run, next(reversed(questions)))
            if send_history:
                self.outbox.add(self.view.words(_format_question(questions[self.question.input_id])))

    def offer_commands(self) -> None:
        """Send the list of available commands to the client if it has changed."""
        status = self.app.journal.get_session(self.session).status
        resumable = (
            status in ("interrupted", "paused", "limit", "cancelled", "failed") and self.question is None
        )
        has_open_plan = self._plan is not None and self._plan.status not in ("completed", "failed")
        offered = [name for name, available in ((RESUME, resumable), (WORK, has_open_plan)) if available]
        if offered == self._offered:
            return
        self._offered = offered
        descriptions = {RESUME: text("acp.resume"), WORK: text("acp.work")}
        commands = [
            AvailableCommand(name=name[1:], description=render(descriptions[name], self._language))
            for name in offered
        ]
        self.outbox.add(
            AvailableCommandsUpdate(session_update="available_commands_update", available_commands=commands)
        )

    def show_terminal(self, call: str, terminal: str) -> None:
        """Attach a terminal of the client to the call that uses it."""
        for update in self.view.attach(call, terminal):
            self.outbox.add(update)

    async def close(self) -> None:
        """Close the session; an active run stays resumable.

        A session that was created here and has no events is deleted.
        """
        if self._turn is not None:
            for task in self._turn.tasks:
                task.cancel()
        self._left = True
        with contextlib.suppress(DaikuError):  # another process uses or has deleted it
            if self.made_here and not self.app.journal.get_session(self.session).last_seq:
                self.app.journal.delete_session(self.session)
        await self.app.aclose()
        await self.outbox.close()

    # ---- a turn

    async def _run_prompt(
        self, turn: PromptTurn, prompt: ClientPrompt, questions: ClientQuestions
    ) -> RunResult:
        def listen(chunk: Chunk) -> None:
            if not turn.run and chunk.parent is None:
                turn.run = chunk.run
                if turn.ending:
                    self._start_task(turn, self.cancel())
            if isinstance(chunk.event, PlanEvent):
                self._plan = chunk.event.plan
            for update in self.view.updates(chunk):
                self.outbox.add(update)
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
        """Return the request that runs the plan with the team. Raises RequestError if there is no plan."""
        plan = self._plan
        if plan is None:
            raise refusal(Failure(kind="not_found", message=text("acp.no_plan")))
        self._plan = await approve_draft(self.app, plan)
        return replace(await work_request(self.app, self._plan), session=self.session)

    def _questions(self, turn: PromptTurn) -> ClientQuestions:
        async def wait_for_words(question: InputAsked) -> None:
            self.question = OpenQuestion(turn.run, question.input_id)
            self.outbox.add(self.view.words(_format_question(question)))
            self._start_task(turn, self._pause(turn.run))

        return ClientQuestions(
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
        except DaikuError as error:  # the run has just ended
            log.info("%s", error.failure.message)

    def _start_task(self, turn: PromptTurn, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        turn.tasks.add(task)
        task.add_done_callback(turn.tasks.discard)

    async def _end(self, result: RunResult) -> TurnEnd:
        if self._left:  # the session was closed, which paused the run
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
            self.outbox.add(self.view.note(f"{result.error.message} {result.error.hint}".strip()))

    def _fit_window(self) -> None:
        """Set the view's context window size; if no model is available, the run reports the error."""
        try:
            self.view.window = self.app.llm.resolve("").context
        except DaikuError:
            self.view.window = 0


def _format_question(question: InputAsked) -> str:
    return "\n".join((question.question, *(f"- {choice}" for choice in question.choices)))

"""The Runner: runs agents for a program, with or without a folder, settings, or a database (PROTOCOL 6)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from inspect import isawaitable
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, cast

from daiku.app import App
from daiku.dataclass import replace
from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.events import (
    ApprovalAsked,
    ApprovalDecision,
    ApprovalGiven,
    InputAsked,
    InputGiven,
    RunFinished,
)
from daiku.domain.messages import Usage
from daiku.domain.runs import ClientApprovals, ContextItem, RunLimits, RunResult, has_answer
from daiku.library.apps import Apps, run_until_blocked
from daiku.library.opening import check_context, check_images, check_names, check_parts, format_error
from daiku.models.families import Model
from daiku.models.rules.replies.parse import describe_error
from daiku.run.recorded.history import ignore_chunk
from daiku.run.request import RunRequest
from daiku.run.rules.outside import Guard, Remembers, Router
from daiku.team.agent import Agent
from daiku.team.running import (
    DECISIONS,
    Approves,
    Result,
    check_approvals,
    check_decisions,
    check_request_text,
)
from daiku.team.stream import Listener, RunStream
from daiku.texts.text import Text, text

if TYPE_CHECKING:
    from daiku.trace.telemetry.logger import TraceLogger

logging.getLogger("daiku").addHandler(logging.NullHandler())  # a library must not write to the terminal
log = logging.getLogger(__name__)

NOBODY = text("run.nobody_answers")
MOST_KEPT = 1000
"""Number of open questions, and of unfinished runs, that a Runner remembers; the oldest are dropped first."""


class Runner:
    """Runs agents (R1.10): `async with Runner(model="openai/gpt-5.2") as runner: await runner.run(agent, "…")`.

    `model` is for agents that name none: a name, "" for the first usable provider, or a model object.
    `workspace` is the folder of the built-in tools. `store` keeps conversations: None for memory, or a path,
    `sqlite:///path`, or `postgresql://…`. `approvals` is `ask`, `edits`, `sandbox`, `all`, `none`, or an
    async function of the `approval_asked` event that returns a decision. `guardrails` and `memory` apply to
    every agent, `limits` to every run. `router` selects the agent of a request. `settings` has the shape of
    the settings file. `trace` is a TraceLogger, or the path of one. Environment variables are read only for
    providers' keys and URLs, if a model is named by text. Raises TypeError or ValueError that names the
    argument.
    """

    def __init__(
        self,
        *,
        model: str | Model = "",
        workspace: str | PathLike[str] | None = None,
        store: str | PathLike[str] | None = None,
        approvals: ClientApprovals | Approves = "none",
        guardrails: Sequence[Guard] = (),
        router: Router | None = None,
        memory: Remembers | None = None,
        limits: RunLimits | Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        trace: TraceLogger | str | PathLike[str] | None = None,
    ) -> None:
        self._approvals = check_approvals(approvals)
        self._apps = Apps(
            check_parts(model, workspace, store, guardrails, memory, limits, settings, trace, router)
        )
        self._questions: dict[str, str] = {}
        """Run id of each open question."""
        self._unfinished: dict[str, Agent] = {}
        """Agents of unfinished runs, by run id and by session id."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # -- runs -----------------------------------------------------------------------------

    async def run(
        self,
        agent: Agent,
        text: str,
        *,
        session: str | None = None,
        context: Sequence[ContextItem | Mapping[str, Any]] = (),
    ) -> Result:
        """Run `agent` on `text` to the end and return the result (R1.23).

        `session` continues a conversation, `context` is attached. Cancelling the caller cancels the run.
        Nobody sees its questions, so requests that need `approve` or `answer` are rejected.

        Raises TypeError or ValueError for a wrong argument, RuntimeError if the Runner is closed.
        """
        async with self._stream(agent, text, session, context, reads_chunks=False) as stream:
            async for _ in stream:
                pass
            return stream.result

    def run_sync(
        self,
        agent: Agent,
        text: str,
        *,
        session: str | None = None,
        context: Sequence[ContextItem | Mapping[str, Any]] = (),
    ) -> Result:
        """Call `run` from synchronous code; inside a running event loop this blocks the loop."""
        self._apps.check_open()
        return self._apps.thread().wait(self.run(agent, text, session=session, context=context))

    def stream(
        self,
        agent: Agent,
        text: str,
        *,
        session: str | None = None,
        context: Sequence[ContextItem | Mapping[str, Any]] = (),
        closes: bool = False,
    ) -> RunStream:
        """Run `agent` and return its chunks as a stream: `async for chunk in runner.stream(agent, "…")` (R1.3).

        Leaving the loop early cancels the run, or pauses it if it waits for an answer; `for` blocks for each
        chunk. `closes`: close the Runner when the run has ended. Raises as `run`.
        """
        return self._stream(agent, text, session, context, closes=closes)

    def _stream(
        self,
        agent: Agent,
        text: str,
        session: str | None,
        context: Sequence[ContextItem | Mapping[str, Any]],
        *,
        reads_chunks: bool = True,
        closes: bool = False,
    ) -> RunStream:
        """Return the run as a stream. `reads_chunks`: the program reads its chunks, and so its questions."""
        self._apps.check_open()
        base_request = RunRequest(
            text=check_request_text(text),
            session=session,
            agent=_check_agent(agent),
            approvals=self._mode,
            attended=self._attended and (reads_chunks or callable(self._approvals)),
        )

        async def work(listen: Listener) -> Result:
            try:
                items, images = await check_context(context, self._apps.parts.workspace)
                request = replace(base_request, context=items, images=images)
                app = self._apps.app(agent)
                check_names(app, agent, self._apps.parts.router)
                self._check_session(app, session)
                if request.images:
                    check_images(app, agent)
                answers: list[object] = []
                run_result = await app.runs.run(
                    request, self._listener(app, listen, answers, reads_chunks=reads_chunks)
                )
                check_decisions(answers)
                return self._result(run_result, agent)
            except DaikuError as error:  # the run could not start
                return Result(Text(""), None, "failed", Usage(), error.failure, "", session or "")
            finally:
                if closes:
                    await self._apps.aclose()

        return RunStream(work, self._apps.keep, self._apps.thread, pause=self.pause, closes=closes)

    async def resume(self, run_id: str, *, agent: Agent | None = None) -> Result:
        """Resume a paused or interrupted run, also of another process with the same store.

        A session id means its last run. `agent` is required if this Runner has not run it before. Raises
        ValueError if there is no such run, it cannot be resumed, or its agent is missing.
        """
        run_agent = agent or self._unfinished.get(run_id)
        app = self._apps.app(run_agent)
        invalid_decisions: list[object] = []
        try:
            run_result = await app.runs.resume(
                app.journal.find_run(run_id),
                self._listener(app, ignore_chunk, invalid_decisions),
                self._mode,
                attended=self._attended,
                agent=run_agent,
            )
        except UsageError as error:
            raise ValueError(f"Runner.resume: {format_error(error)}") from None
        check_decisions(invalid_decisions)
        return self._result(run_result, run_agent)

    # -- active runs ----------------------------------------------------------------------

    def approve(
        self, approval_id: str, decision: ApprovalDecision, *, feedback: str | None = None, run_id: str = ""
    ) -> None:
        """Answer an `approval_asked` event.

        `run_id` is needed only if another process asked. Raises ValueError if there is no open approval with
        this id.
        """
        if decision not in DECISIONS:
            raise ValueError(
                f"Runner.approve: `decision` is one of {', '.join(DECISIONS)}, not {decision!r}."
            )
        run = self._run_of("approve", "approval_id", approval_id, run_id)
        self._apps.do(
            "approve", run, lambda runs: run_until_blocked(runs.approve(run, approval_id, decision, feedback))
        )

    def answer(self, input_id: str, text: str, *, run_id: str = "") -> None:
        """Answer an `input_asked` event. Raises as `approve`."""
        run = self._run_of("answer", "input_id", input_id, run_id)
        self._apps.do("answer", run, lambda runs: run_until_blocked(runs.answer(run, input_id, text)))

    def _run_of(self, method: str, name: str, question: str, run: str) -> str:
        run_id = run or self._questions.get(question)
        if run_id is None:
            raise ValueError(
                f"Runner.{method}: `{name}` {question!r} is no open question of this Runner's runs."
            )
        return run_id

    def steer(self, run_id: str, text: str) -> None:
        """Send a message to an active run, which reads it in its next turn.

        Raises ValueError if it is not active.
        """
        self._apps.do("steer", run_id, lambda runs: run_until_blocked(runs.steer(run_id, text)))

    def pause(self, run_id: str) -> None:
        """Pause a run at its next boundary; it ends `paused` and can be resumed.

        Raises ValueError if it is not active.
        """
        self._apps.do("pause", run_id, lambda runs: runs.begin_pause(run_id))

    def cancel(self, run_id: str) -> None:
        """Cancel a run; it ends `cancelled`. Raises ValueError if there is no such run."""
        self._apps.do(
            "cancel", run_id, lambda runs: runs.begin_cancel(run_id) or runs.cancel_on_record(run_id)
        )

    async def aclose(self) -> None:
        """Cancel active runs, and close connections and files; safe to call twice."""
        await self._apps.aclose()

    def close(self) -> None:
        """Call `aclose` from synchronous code, after `run_sync`."""
        self._apps.close()

    # -- events of runs -------------------------------------------------------------------

    @property
    def _mode(self) -> ClientApprovals:
        return cast("ClientApprovals", self._approvals) if isinstance(self._approvals, str) else "ask"

    @property
    def _attended(self) -> bool:
        return self._approvals == "ask" or not isinstance(self._approvals, str)

    def _listener(
        self, app: App, listen: Listener, invalid: list[object], *, reads_chunks: bool = True
    ) -> Listener:
        """Wrap `listen`: record questions, and let the program decide on approvals.

        Invalid decisions are appended to `invalid`. Without a reader of the chunks, questions are answered
        automatically.
        """

        def handle(chunk: Chunk) -> None:
            match chunk.event:
                case ApprovalAsked(approval_id=key) as approval:
                    self._questions[key] = chunk.run
                    if not isinstance(self._approvals, str):
                        self._begin(self._decide(app, chunk.run, approval, self._approvals, invalid))
                case InputAsked(input_id=key):
                    self._questions[key] = chunk.run
                    if not reads_chunks:
                        self._begin(app.runs.answer(chunk.run, key, NOBODY))
                case RunFinished() if chunk.parent is None:
                    self._forget_questions()
                case ApprovalGiven(approval_id=key) | InputGiven(input_id=key):
                    self._questions.pop(key, None)
                case _:
                    pass
            listen(chunk)

        return handle

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._apps.keep(asyncio.create_task(work))

    def _forget_questions(self) -> None:
        """Drop the oldest open questions and unfinished runs."""
        for key in tuple(self._questions)[:-MOST_KEPT]:
            del self._questions[key]
        for run in tuple(self._unfinished)[: -2 * MOST_KEPT]:
            del self._unfinished[run]

    async def _decide(
        self, app: App, run: str, approval: ApprovalAsked, decides: Approves, invalid: list[object]
    ) -> None:
        """Let the program decide.

        An exception rejects; so does an invalid decision, which is appended to `invalid`.
        """
        decision: object = "reject_once"
        try:
            decision = decides(approval)
            if isawaitable(decision):
                decision = await decision
        except Exception:
            log.exception("the approvals function failed on %s: rejected", approval.tool)
            decision = "reject_once"
        if decision not in DECISIONS:
            invalid.append(decision)
            decision = "reject_once"
        with suppress(UsageError):  # it was answered elsewhere, or the run has ended
            await app.runs.approve(run, approval.approval_id, decision)

    def _check_session(self, app: App, session: str | None) -> None:
        """Raise ValueError if there is no such session."""
        try:
            if session is not None:
                app.journal.get_session(session)
        except UsageError as error:
            place = self._apps.parts.store
            store = "memory" if place is None else "a database server" if isinstance(place, str) else place
            raise ValueError(
                f"Runner.run: `session`: {error.failure.message} The store is {store}."
            ) from None

    def _result(self, run_result: RunResult, agent: Agent | None) -> Result:
        """Convert the run's result for a program; its typed answer is validated again."""
        if has_answer(run_result.status) or agent is None:
            for name in (run_result.run_id, run_result.session_id):
                self._unfinished.pop(name, None)
        else:
            self._unfinished[run_result.run_id] = self._unfinished[run_result.session_id] = agent
        result = Result(output=None, **dict(run_result))
        if run_result.error is not None and run_result.error.kind == "internal":  # a program has no log file
            result = replace(result, error=run_result.error.model_copy(update={"hint": Text("")}))
        if not has_answer(run_result.status) or agent is None or agent.answers is None:
            return result
        try:
            return replace(result, output=agent.answers.parse_value(run_result.text))
        except ValueError as error:
            failure = Failure(kind="format", message=text("roles.unreadable", problem=describe_error(error)))
            return replace(result, status="failed", error=failure)


def _check_agent(agent: object) -> Agent:
    if not isinstance(agent, Agent):
        raise TypeError(f"Runner.run: `agent` is an Agent, not {type(agent).__name__} ({agent!r:.80}).")
    return agent

"""The Runner: runs agents for a program, with or without a folder, settings or a database (PROTOCOL 6)."""

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
from daiku.library.apps import Apps, at_once
from daiku.library.opening import check_names, check_pictures, checked_context, opening, said
from daiku.models.families import Model
from daiku.models.rules.replies.parse import describe_error
from daiku.run.recorded.stored_run import ignore_chunk
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

logging.getLogger("daiku").addHandler(logging.NullHandler())  # a library writes nothing to anybody's terminal
log = logging.getLogger(__name__)

NOBODY = text("run.nobody_answers")
MOST_KEPT = 1000
"""Open questions, and runs that may be gone on with, that a Runner remembers; the oldest go first."""


class Runner:
    """Runs agents (R1.10): `async with Runner(model="openai/gpt-5.2") as runner: await runner.run(agent, "…")`.

    `model` is asked by every agent that names none: a name, "" for the first usable provider, or what answers in its
    place. `workspace` is the folder that built-in tools work in. `store` keeps conversations: None in memory, else a
    path, `sqlite:///path` or `postgresql://…`. `approvals` is `ask`, `edits`, `sandbox`, `all`, `none`, or an async function of the
    `approval_asked` event that returns a decision. `guardrails` and `memory` are those of every agent, `router`
    says which agent a request is for, `limits` bound every run. `settings` has the shape of the settings file.
    `trace` is a TraceLogger, or where one writes. Environment variables are read only for providers' keys and addresses,
    where a model is named by text. Raises TypeError or ValueError that names the argument.
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
            opening(model, workspace, store, guardrails, memory, limits, settings, trace, router)
        )
        self._asked: dict[str, str] = {}
        """The run of each question that is open."""
        self._unfinished: dict[str, Agent] = {}
        """The agents of runs that may be gone on with, by the ids of the run and of its session."""

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
        """Have `agent` work on `text` to its end: everything that `stream` shows, folded (R1.23). `session` goes on
        with a conversation, `context` is what the person points at. Cancelling the caller cancels the run. As
        nobody sees its questions, what only `approve` or `answer` could answer is refused.

        Raises TypeError or ValueError for a wrong argument, RuntimeError where the Runner is closed.
        """
        async with self._streamed(agent, text, session, context, seen=False) as stream:
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
        """`run` for code that is not asynchronous; inside a running event loop this loop waits for it."""
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
        """`run` whose chunks are read as they come: `async for chunk in runner.stream(agent, "…")` (R1.3). Leaving
        the loop early cancels the run, or pauses it if it waits for an answer; `for` waits for each chunk. `closes`:
        the Runner is closed when the run has ended. Raises as `run`."""
        return self._streamed(agent, text, session, context, closes=closes)

    def _streamed(
        self,
        agent: Agent,
        text: str,
        session: str | None,
        context: Sequence[ContextItem | Mapping[str, Any]],
        *,
        seen: bool = True,
        closes: bool = False,
    ) -> RunStream:
        """Return the run as a stream. `seen`: the program reads its chunks, and so its questions."""
        self._apps.check_open()
        asked = RunRequest(
            text=check_request_text(text),
            session=session,
            agent=_checked_agent(agent),
            approvals=self._mode,
            attended=self._attended and (seen or callable(self._approvals)),
        )

        async def work(listen: Listener) -> Result:
            try:
                items, images = await checked_context(context, self._apps.opening.workspace)
                request = replace(asked, context=items, images=images)
                app = self._apps.app(agent)
                check_names(app, agent, self._apps.opening.router)
                self._check_session(app, session)
                if request.images:
                    check_pictures(app, agent)
                answers: list[object] = []
                ended = await app.runs.run(request, self._heard(app, listen, answers, seen=seen))
                check_decisions(answers)
                return self._result(ended, agent)
            except DaikuError as wrong:  # it could not begin
                return Result(Text(""), None, "failed", Usage(), wrong.failure, "", session or "")
            finally:
                if closes:
                    await self._apps.aclose()

        return RunStream(work, self._apps.keep, self._apps.thread, pause=self.pause, closes=closes)

    async def resume(self, run_id: str, *, agent: Agent | None = None) -> Result:
        """Go on with a paused or interrupted run, also with one of another process where the store is the same.
        The id of a session means its last run. `agent` is the run's, where this Runner has not run it itself. Raises
        ValueError: there is no such run, it cannot be gone on with, or its agent is missing."""
        known = agent or self._unfinished.get(run_id)
        app = self._apps.app(known)
        wrong: list[object] = []
        try:
            ended = await app.runs.resume(
                app.journal.find_run(run_id),
                self._heard(app, ignore_chunk, wrong),
                self._mode,
                attended=self._attended,
                agent=known,
            )
        except UsageError as missing:
            raise ValueError(f"Runner.resume: {said(missing)}") from None
        check_decisions(wrong)
        return self._result(ended, known)

    # -- while a run is under way ---------------------------------------------------------

    def approve(
        self, approval_id: str, decision: ApprovalDecision, *, feedback: str | None = None, run_id: str = ""
    ) -> None:
        """Answer an `approval_asked` event. `run_id` is needed only where another process asked. Raises ValueError
        where nothing of that id was asked, or it has its answer."""
        if decision not in DECISIONS:
            raise ValueError(
                f"Runner.approve: `decision` is one of {', '.join(DECISIONS)}, not {decision!r}."
            )
        run = self._run_of("approve", "approval_id", approval_id, run_id)
        self._apps.do(
            "approve", run, lambda runs: at_once(runs.approve(run, approval_id, decision, feedback))
        )

    def answer(self, input_id: str, text: str, *, run_id: str = "") -> None:
        """Answer an `input_asked` event. Raises as `approve`."""
        run = self._run_of("answer", "input_id", input_id, run_id)
        self._apps.do("answer", run, lambda runs: at_once(runs.answer(run, input_id, text)))

    def _run_of(self, method: str, name: str, question: str, run: str) -> str:
        found = run or self._asked.get(question)
        if found is None:
            raise ValueError(
                f"Runner.{method}: `{name}` {question!r} is no open question of this Runner's runs."
            )
        return found

    def steer(self, run_id: str, text: str) -> None:
        """Say something to a run under way; it is read at its next turn. Raises ValueError: it is not."""
        self._apps.do("steer", run_id, lambda runs: at_once(runs.steer(run_id, text)))

    def pause(self, run_id: str) -> None:
        """Have a run stop at its next boundary; it ends `paused` and can be resumed. Raises ValueError: it is not
        under way."""
        self._apps.do("pause", run_id, lambda runs: runs.begin_pause(run_id))

    def cancel(self, run_id: str) -> None:
        """End a run now; it ends `cancelled`. Raises ValueError: there is none of that id."""
        self._apps.do(
            "cancel", run_id, lambda runs: runs.begin_cancel(run_id) or runs.cancel_on_record(run_id)
        )

    async def aclose(self) -> None:
        """Cancel what is under way, and let go of connections and files; safe to call twice."""
        await self._apps.aclose()

    def close(self) -> None:
        """`aclose` for code that is not asynchronous, after `run_sync`."""
        self._apps.close()

    # -- what runs tell -------------------------------------------------------------------

    @property
    def _mode(self) -> ClientApprovals:
        return cast("ClientApprovals", self._approvals) if isinstance(self._approvals, str) else "ask"

    @property
    def _attended(self) -> bool:
        return self._approvals == "ask" or not isinstance(self._approvals, str)

    def _heard(self, app: App, listen: Listener, wrong: list[object], *, seen: bool = True) -> Listener:
        """Wrap `listen`: note questions and let the program decide. Invalid decisions are added to `wrong`; if nobody
        has `seen` a question, it is answered so."""

        def heard(chunk: Chunk) -> None:
            match chunk.event:
                case ApprovalAsked(approval_id=key) as asked:
                    self._asked[key] = chunk.run
                    if not isinstance(self._approvals, str):
                        self._begin(self._decide(app, chunk.run, asked, self._approvals, wrong))
                case InputAsked(input_id=key):
                    self._asked[key] = chunk.run
                    if not seen:
                        self._begin(app.runs.answer(chunk.run, key, NOBODY))
                case RunFinished() if chunk.parent is None:
                    self._forget_questions()
                case ApprovalGiven(approval_id=key) | InputGiven(input_id=key):
                    self._asked.pop(key, None)
                case _:
                    pass
            listen(chunk)

        return heard

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._apps.keep(asyncio.create_task(work))

    def _forget_questions(self) -> None:
        """Keep the latest open questions and unfinished runs."""
        for key in tuple(self._asked)[:-MOST_KEPT]:
            del self._asked[key]
        for run in tuple(self._unfinished)[: -2 * MOST_KEPT]:
            del self._unfinished[run]

    async def _decide(
        self, app: App, run: str, asked: ApprovalAsked, decides: Approves, wrong: list[object]
    ) -> None:
        """Let the program decide. An exception rejects; so does an invalid decision, which is added to `wrong`."""
        decision: object = "reject_once"
        try:
            decision = decides(asked)
            if isawaitable(decision):
                decision = await decision
        except Exception:
            log.exception("the approvals function failed on %s: rejected", asked.tool)
            decision = "reject_once"
        if decision not in DECISIONS:
            wrong.append(decision)
            decision = "reject_once"
        with suppress(UsageError):  # it was answered meanwhile, or the run is over
            await app.runs.approve(run, asked.approval_id, decision)

    def _check_session(self, app: App, session: str | None) -> None:
        """Raises ValueError where there is no such session."""
        try:
            if session is not None:
                app.journal.get_session(session)
        except UsageError as wrong:
            kept = self._apps.opening.store
            store = "memory" if kept is None else "a database server" if isinstance(kept, str) else kept
            raise ValueError(
                f"Runner.run: `session`: {wrong.failure.message} The store is {store}."
            ) from None

    def _result(self, ended: RunResult, agent: Agent | None) -> Result:
        """The result as a program gets it, its typed answer checked once more."""
        if has_answer(ended.status) or agent is None:
            for name in (ended.run_id, ended.session_id):
                self._unfinished.pop(name, None)
        else:
            self._unfinished[ended.run_id] = self._unfinished[ended.session_id] = agent
        result = Result(output=None, **dict(ended))
        if ended.error is not None and ended.error.kind == "internal":  # a program has no log of ours
            result = replace(result, error=ended.error.model_copy(update={"hint": Text("")}))
        if not has_answer(ended.status) or agent is None or agent.answers is None:
            return result
        try:
            return replace(result, output=agent.answers.value(ended.text))
        except ValueError as wrong:
            failure = Failure(kind="format", message=text("roles.unreadable", problem=describe_error(wrong)))
            return replace(result, status="failed", error=failure)


def _checked_agent(agent: object) -> Agent:
    if not isinstance(agent, Agent):
        raise TypeError(f"Runner.run: `agent` is an Agent, not {type(agent).__name__} ({agent!r:.80}).")
    return agent

"""Journal of one run: its identity, its state, and the writer for its events (stored, then shown)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from daiku.dataclass import dataclass
from daiku.domain.chunks import Chunk
from daiku.domain.events import EPHEMERAL, Event, Notice, ToolCallEvent
from daiku.domain.runs import RunResult, RunStatus
from daiku.prompts import TemplateProblem
from daiku.run.rules.state.machine import Recorder
from daiku.run.rules.state.state import State
from daiku.run.rules.verdict import plan_standing
from daiku.run.services import RunServices
from daiku.run.waiting import can_ask_user, open_questions
from daiku.team.agent import Agent
from daiku.texts.text import text
from daiku.trace.sessions import ChunkWriter

log = logging.getLogger(__name__)

Listener = Callable[[Chunk], None]
"""Called in order on the event loop with every journaled chunk of the run."""


@dataclass(frozen=True, slots=True)
class RunLog:
    """A run with its journal, made by `open_log`. `parent`: id of the run around a nested one."""

    services: RunServices
    agent: Agent
    run: str
    session: str
    record: Recorder
    writer: ChunkWriter
    listener: Listener
    parent: str | None

    def read_chunks(self) -> list[Chunk]:
        """Return the stored chunks of this session."""
        return self.services.journal.chunks(self.session)

    def show_open_questions(self) -> None:
        """Send open questions to the listener again, as journaled (after a restart)."""
        state = self.record.state
        for chunk in open_questions(state, self.read_chunks()) if can_ask_user(state) else ():
            self.listener(chunk)

    def result(self) -> RunResult:
        """Return the run's current result."""
        state = self.record.state
        finished = state.finished
        status: RunStatus = finished.status if finished is not None else "paused"
        return RunResult(
            run_id=self.run,
            session_id=self.session,
            status=status,
            text=finished.text if finished is not None else state.conversation.text,
            usage=finished.usage if finished is not None else state.spending.usage,
            last_seq=self.writer.last_seq,
            error=state.failure,
            plan=plan_standing(state),
            unattended=state.unattended,
            reasons=finished.reasons if finished is not None else (),
            unchecked=finished is not None and finished.unchecked,
        )


def open_log(
    services: RunServices,
    agent: Agent,
    run: str,
    session: str,
    state: State,
    listen: Listener,
    parent: str | None = None,
    after: Callable[[State], None] | None = None,
) -> RunLog:
    """Return the log of `run`, which is at `state`; `after` is called with its state after each write."""
    services = services.of(agent)
    writer, trace = services.journal.writer(session), services.trace

    def write(events: tuple[Event, ...]) -> list[Event]:
        is_durable = False
        for event in events:
            if isinstance(event, ToolCallEvent) and _acts_outside(services, event.tool):
                is_durable = True
        chunks = writer.write(run, parent, agent.name, events, durable=is_durable)
        for chunk in chunks:
            if trace is not None and chunk.event.type not in EPHEMERAL:
                trace(chunk)
            try:
                listen(chunk)
            except Exception:  # a failing listener must not end the run
                log.exception("a listener failed on a %s event of %s", chunk.type, run)
        return [chunk.event for chunk in chunks]

    return RunLog(services, agent, run, session, Recorder(state, write, after), writer, listen, parent)


def prompt_notices(problems: Iterable[TemplateProblem]) -> tuple[Notice, ...]:
    """Return notices about unusable prompt templates of the workspace: file, line, and reason."""
    messages = (
        text("prompts.broken", file=each.file, line=each.line, why=each.why)
        if each.line
        else text("prompts.broken_file", file=each.file, why=each.why)
        for each in problems
    )
    return tuple(Notice(level="warning", text=each) for each in messages)


def _acts_outside(services: RunServices, tool: str) -> bool:
    """Return True if checkpoints cannot undo a call of `tool`; its start is synced to disk first."""
    spec = services.registry.spec(tool)
    return spec is None or spec.effect in ("command", "network", "mcp")

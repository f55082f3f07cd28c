"""The journal of one run: its identity, its state, and the only way to add events (stored before shown)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from daiku.dataclass import dataclass
from daiku.domain.chunks import Chunk
from daiku.domain.events import EPHEMERAL, Event, Notice, ToolCallEvent
from daiku.domain.runs import RunResult, RunStatus
from daiku.prompts import Problem
from daiku.run.rules.state.recorder import Recorder
from daiku.run.rules.state.state import State
from daiku.run.rules.verdict import plan_standing
from daiku.run.services import RunServices
from daiku.run.waiting import may_be_asked, still_asked
from daiku.team.agent import Agent
from daiku.texts.text import text
from daiku.trace.sessions import WritesChunks

log = logging.getLogger(__name__)

Listener = Callable[[Chunk], None]
"""Called in order, on the event loop, with every chunk of the run once it is journaled."""


@dataclass(frozen=True, slots=True)
class RunLog:
    """A run as its journal has it, made by `open_log`. `parent`: the run around a nested one."""

    services: RunServices
    agent: Agent
    run: str
    session: str
    record: Recorder
    writer: WritesChunks
    listener: Listener
    parent: str | None

    def past(self) -> list[Chunk]:
        """What the journal holds of this session."""
        return self.services.journal.chunks(self.session)

    def show_open_questions(self) -> None:
        """Show what still waits for the person once more, as it was journaled (after a restart)."""
        state = self.record.state
        for chunk in still_asked(state, self.past()) if may_be_asked(state) else ():
            self.listener(chunk)

    def result(self) -> RunResult:
        """How the run stands now."""
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
    """The log of `run`, which stands at `state`; `after` hears of its state after each write."""
    services = services.of(agent)
    writer, trace = services.journal.writer(session), services.trace

    def write(events: tuple[Event, ...]) -> list[Event]:
        surely = False
        for event in events:
            if isinstance(event, ToolCallEvent) and _acts_outside(services, event.tool):
                surely = True
        chunks = writer.write(run, parent, agent.name, events, surely=surely)
        for chunk in chunks:
            if trace is not None and chunk.event.type not in EPHEMERAL:
                trace(chunk)
            try:
                listen(chunk)
            except Exception:  # whoever looks on must not end the run
                log.exception("a listener failed on a %s event of %s", chunk.type, run)
        return [chunk.event for chunk in chunks]

    return RunLog(services, agent, run, session, Recorder(state, write, after), writer, listen, parent)


def prompt_notices(problems: Iterable[Problem]) -> tuple[Notice, ...]:
    """Return notices about prompts of the workspace that cannot be used: file, line, and reason."""
    said = (
        text("prompts.broken", file=each.file, line=each.line, why=each.why)
        if each.line
        else text("prompts.broken_file", file=each.file, why=each.why)
        for each in problems
    )
    return tuple(Notice(level="warning", text=each) for each in said)


def _acts_outside(services: RunServices, tool: str) -> bool:
    """Return True if checkpoints cannot undo a call of `tool`: its start is on disk before it begins."""
    spec = services.registry.spec(tool)
    return spec is None or spec.effect in ("command", "network", "mcp")

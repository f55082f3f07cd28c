"""A nested run: another agent works on a brief, and what it hands back is checked before it counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from daiku.agents.agent import Agent
from daiku.core.proof.evidence import to_handover
from daiku.core.replies.parse import Unreadable
from daiku.core.run import loop
from daiku.core.state.environment import nested_facts
from daiku.core.state.fold import fold
from daiku.core.state.state import State
from daiku.dataclass import dataclass, replace
from daiku.domain.base import JsonObject, long_id
from daiku.domain.errors import DaikuError, Failure, HandoffDepthExceeded, UsageError
from daiku.domain.events import AgentStart, HandoffEnd, HandoffStart, Notice, RunStarted
from daiku.domain.tools import ToolCall, ToolResult
from daiku.domain.work.handovers import Brief, Handover, NestedEvidence
from daiku.runs.ending import end
from daiku.runs.live import LiveRun
from daiku.runs.nested.briefing import make_brief, write_request
from daiku.runs.ports.guards import guards_of
from daiku.runs.ports.run_ports import RunPorts
from daiku.runs.services import RunServices
from daiku.runs.waiting import Paused
from daiku.texts.text import Text, text

MAX_DEPTH = 3
"""Nested handoffs that are allowed; the fourth ends the top run (R1.31, C1.4)."""


@dataclass(frozen=True, slots=True)
class Nested:
    """A nested run as it is wanted: who, what is said to them, what they are given. With `calls` it
    carries these out and asks no model. `after` hears of every step that it takes. With `services` it works
    on another copy of the project: its edits are none of its parent's. `max_rounds` are replies of its own, 0 for
    no other bound than its parent's."""

    agent: Agent
    request: str
    brief: Brief
    calls: tuple[ToolCall, ...] = ()
    told: str = ""
    after: Callable[[State], None] | None = None
    services: RunServices | None = None
    max_rounds: int = 0


async def hand_over(parent: LiveRun, call: str, name: str, request: str) -> ToolResult:
    """Run agent `name` on `request` as a nested run and return its result to the caller (R1.32, R1.33).

    Raises HandoffDepthExceeded, UsageError (no such agent), Paused.
    """
    agent = _asked(parent, name)
    brief = make_brief(parent.log, agent, request)
    back = await nest(parent, call, Nested(agent, request, brief))
    parts = dict.fromkeys(part for part in (back.result, back.problem) if part)
    data: JsonObject | None = (
        None if back.handover is None else {"handover": back.handover.model_dump(mode="json", by_alias=True)}
    )
    ok = back.status == "completed" and not back.problem
    return ToolResult(ok=ok, text="\n\n".join(parts), data=data, untrusted=back.tainted)


def _asked(parent: LiveRun, name: str) -> Agent:
    """The agent called `name`, of those that the asking one names if it names any. Raises UsageError."""
    own, services = parent.log.agent.handoffs, parent.log.services
    found = next((agent for agent in own if agent.name == name), None)
    if own and found is None:
        names = ", ".join(agent.name for agent in own)
        message, hint = text("roles.no_agent", name=repr(name)), text("roles.known", names=names)
        raise UsageError(Failure(kind="not_found", message=message, hint=hint))
    return found or services.agents.find(name)


async def nest(parent: LiveRun, call: str, work: Nested) -> HandoffEnd:
    """Run `work` as a nested run of `parent` for `call`, and return how it ended. Its chunks carry its own
    agent and run id, with the parent's run as `parent`; budget and approvals are shared. If called again
    for the same `call` after a restart, it continues the nested run.

    Raises HandoffDepthExceeded, Paused.
    """
    state = parent.record.state
    back = next((b for b in state.nested.returned if b.call_id == call), None)
    if back is not None:
        return _not_too_deep(back)
    begun = state.nested.open.get(call)
    if work.agent.reads_brief:
        services = work.services or parent.log.services
        see = partial(services.seen.note, parent.log.session)
        told, brief = await write_request(work.agent, work.brief, services.workspace, see)
        work = replace(work, brief=brief, told=told)
    if begun is None:
        said = await _judged(parent, work)
        child = _begin(parent, call, work, said)
    else:
        child = _reopen(parent, begun, work)
        if not child.record.state.request.begun:
            _start(parent, child, work, await _judged(parent, work))
    if work.after is not None:
        work.after(child.record.state)
    try:
        await _work(parent, child)
    except asyncio.CancelledError:
        if not child.abandoned:  # what it did and used is its parent's all the same
            parent.record(_come_back(parent, child, call, work))
        raise
    back = _come_back(parent, child, call, work)
    parent.record(back)
    return _not_too_deep(back)


def _not_too_deep(back: HandoffEnd) -> HandoffEnd:
    """`back`, unless its run ended by one hand-off too many: that goes up to the top run, which ends by it."""
    if back.error is not None and back.error.kind == "handoff_depth":
        raise HandoffDepthExceeded(back.error)
    return back


def give_up(parent: LiveRun, call: str, work: Nested) -> None:
    """End a nested run that was begun before a restart and cannot be gone on with."""
    child = _reopen(parent, parent.record.state.nested.open[call], work)
    if not child.record.state.request.begun:
        _start(parent, child, work, ())
    end(child.log, "cancelled", None)
    parent.record(_come_back(parent, child, call, work))


async def _judged(parent: LiveRun, work: Nested) -> tuple[Failure | Notice, ...]:
    """What the agent's own guardrails say of what it is handed."""
    services = work.services or parent.log.services
    return await guards_of(services, work.agent, nested=True).request(work.request)


def _begin(parent: LiveRun, call: str, work: Nested, said: tuple[Failure | Notice, ...]) -> LiveRun:
    if parent.depth >= MAX_DEPTH:
        raise HandoffDepthExceeded(
            Failure(
                kind="handoff_depth",
                message=text("runs.too_deep", count=MAX_DEPTH),
                hint=text("runs.smaller_parts"),
            )
        )
    child = parent.child(work.agent, long_id("run"), State(), work.services, work.after)
    between = {"from": parent.log.agent.name, "to": work.agent.name, "run": child.run, "call_id": call}
    parent.record(HandoffStart.model_validate({**between, "request": work.request}))
    _start(parent, child, work, said)
    return child


def _start(parent: LiveRun, child: LiveRun, work: Nested, said: tuple[Failure | Notice, ...]) -> None:
    """Record the start of the nested run, and what guardrails say of its request."""
    state, agent, elsewhere = parent.record.state, work.agent, work.services
    folder = str(elsewhere.roots[0]) if elsewhere is not None and elsewhere.roots else ""
    around = nested_facts(state.conversation.environment, state.request.mode, folder)
    model = parent.log.services.model_below(parent.log.agent, agent, state.request.model)
    before, limits = parent.tree.budget.budget.rounds + child.kept_rounds, state.request.asked_limits
    if work.max_rounds:
        most = min(limits.max_rounds or before + work.max_rounds, before + work.max_rounds)
        limits = limits.model_copy(update={"max_rounds": most})
    child.record(
        RunStarted(
            prompt=work.request,
            told=work.told,
            mode=state.request.mode,
            model=model,
            limits=limits,
            calls=work.calls,
            driven=bool(work.calls) or agent.machine is not None,
            brief=work.brief,
            tainted=state.tainted,
            environment=around if agent.uses_builtin_tools else (),
            rounds_before=before,
        ),
        AgentStart(model="" if work.calls else model),
        *said,
    )


def _reopen(parent: LiveRun, begun: HandoffStart, work: Nested) -> LiveRun:
    """The nested run as far as it got before the restart; what it used counts again."""
    state = fold(chunk.event for chunk in parent.log.past() if chunk.run == begun.run)
    child = parent.child(work.agent, begun.run, state, work.services, work.after)
    parent.tree.budget.add_earlier_use(state.spending.usage, state.spending.rounds + state.nested.rounds)
    return child


async def _work(parent: LiveRun, child: LiveRun) -> None:
    parent.tree.under_way[child.run] = child
    try:
        ports = RunPorts(child)
        child.log.show_open_questions()
        await loop.run(child.record, ports)
    except asyncio.CancelledError:
        if not child.abandoned:
            end(child.log, "cancelled", None)
        raise
    except DaikuError as error:
        end(child.log, "failed", error.failure)
    finally:
        del parent.tree.under_way[child.run]
    if child.record.state.finished is None:
        raise Paused


def _returned(agent: Agent, answer: Text) -> Text:
    """What the agent's own function makes of its answer. Raises what that raises, TypeError where it is no text."""
    made: object = agent.on_handoff_return(answer)
    if not isinstance(made, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped programs
        raise TypeError(f"on_handoff_return of the agent {agent.name!r} gave {type(made).__name__}, not text")
    return Text(made)


def _come_back(parent: LiveRun, child: LiveRun, call: str, work: Nested) -> HandoffEnd:
    """How the nested run ended and what it did, as its parent takes it."""
    agent, state, outcome = work.agent, child.record.state, child.log.result()
    handover, problem = _handed(agent, state)
    if outcome.error is not None:
        problem = outcome.error.message
    answer = outcome.text or problem
    return HandoffEnd.model_validate(
        {
            "from": parent.log.agent.name,
            "to": agent.name,
            "result": _returned(agent, answer),
            "run": child.run,
            "call_id": call,
            "status": outcome.status,
            "handover": handover,
            "problem": problem,
            "error": outcome.error,
            "deeds": to_handover(state.done)
            if work.services is None
            else NestedEvidence(commands=state.done.commands),
            # Who follows a run has its plans already, and newer ones.
            "plans": state.plans.all if state.plans.last and work.after is None else (),
            "usage": state.spending.usage,
            "rounds": state.spending.rounds + state.nested.rounds,
            "rejected": _rejected(state),
            "tainted": state.tainted,
            "unattended": state.unattended,
        }
    )


def _rejected(state: State) -> int:
    own = sum(
        given.decision in ("reject_once", "reject_always") for given in state.questions.decisions.values()
    )
    return own + sum(back.rejected for back in state.nested.returned)


def _handed(agent: Agent, state: State) -> tuple[Handover | None, Text]:
    """What the run hands over, or why that is of no use."""
    found = None if agent.stage is None else agent.stage.hand_back(state)
    return (None, found.problem) if isinstance(found, Unreadable) else (found, Text(""))

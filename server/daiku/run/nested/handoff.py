"""A nested run: another agent works on a brief, and what it hands back is checked before it counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from daiku.dataclass import dataclass, replace
from daiku.domain.base import JsonObject, long_id
from daiku.domain.errors import DaikuError, Failure, HandoffDepthExceeded, UsageError
from daiku.domain.events import AgentStart, HandoffEnd, HandoffStart, Notice, RunStarted
from daiku.domain.runs import has_answer, unverified_note
from daiku.domain.tools import ToolCall, ToolResult
from daiku.domain.work.handovers import Brief
from daiku.run.ending import Between, end, handed_back
from daiku.run.live import LiveRun
from daiku.run.nested.briefing import make_brief, with_lessons, write_request
from daiku.run.ports.guards import guards_of
from daiku.run.ports.run_ports import RunPorts
from daiku.run.rules import loop
from daiku.run.rules.state.environment import nested_facts
from daiku.run.rules.state.fold import fold
from daiku.run.rules.state.state import State
from daiku.run.services import RunServices
from daiku.run.waiting import Paused
from daiku.team.agent import Agent
from daiku.texts.text import text

T = TypeVar("T")


MAX_DEPTH = 3
"""Nested handoffs that are allowed; the fourth ends the top run (R1.31, C1.4)."""


@dataclass(frozen=True, slots=True)
class Nested:
    """A nested run to be made. With `calls` it carries these out without a model; with `services` it works on a copy.
    `after` is called after each step; `max_rounds` are replies of its own (0: its parent's limit)."""

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

    Raises HandoffDepthExceeded, UsageError (no such agent), Paused."""
    agent = _asked(parent, name)
    brief = make_brief(parent.log, agent, request)
    back = await nest(parent, call, Nested(agent, request, brief))
    parts = dict.fromkeys(part for part in (back.result, back.problem, unverified_note(back.reasons)) if part)
    data: JsonObject | None = (
        None if back.handover is None else {"handover": back.handover.model_dump(mode="json", by_alias=True)}
    )
    ok = has_answer(back.status) and not back.problem
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
    """Run `work` as a nested run of `parent` for `call`, and return how it ended; continue it after a restart.

    Budget and approvals are shared. Raises HandoffDepthExceeded, Paused."""
    return await _carry_out(parent, call, await _ready(parent, call, work))


async def nest_at_once(parent: LiveRun, works: Mapping[str, Nested]) -> list[HandoffEnd]:
    """Run all of `works`, by their calls, at the same time, begun in order. Raises HandoffDepthExceeded, Paused."""
    ready = await together(_ready(parent, call, work) for call, work in works.items())
    return await together(_carry_out(parent, call, each) for call, each in zip(works, ready, strict=True))


async def together(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run every piece to its end, in order; raise what the first failed one raised. Cancelling cancels all."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    return [task.result() for task in tasks]


@dataclass(frozen=True, slots=True)
class _Ready:
    """A nested run before it begins: its work as it is asked, and what guardrails say of that."""

    work: Nested
    said: tuple[Failure | Notice, ...] = ()


async def _ready(parent: LiveRun, call: str, work: Nested) -> _Ready:
    """`work` with what it is told; as it is where it came back already."""
    if returned(parent, call) is not None:
        return _Ready(work)
    if work.agent.reads_brief:
        services = work.services or parent.log.services
        see = partial(services.seen.note, parent.log.session)
        told, brief = await write_request(work.agent, work.brief, services.workspace, see)
        work = replace(work, brief=brief, told=told)
    begun = parent.record.state.nested.open.get(call)
    return _Ready(work) if begun and _has_started(parent, begun.run) else await _prepared(parent, work)


def _has_started(parent: LiveRun, run: str) -> bool:
    return any(chunk.run == run and isinstance(chunk.event, RunStarted) for chunk in parent.log.read_chunks())


def returned(parent: LiveRun, call: str) -> HandoffEnd | None:
    """How the nested run for `call` ended; None where it has not."""
    return next((back for back in parent.record.state.nested.returned if back.call_id == call), None)


async def _carry_out(parent: LiveRun, call: str, ready: _Ready) -> HandoffEnd:
    """The nested run from its start, or from where it was; nothing is waited for before it has begun."""
    work = ready.work
    back = returned(parent, call)
    if back is not None:
        return _not_too_deep(back)
    begun = parent.record.state.nested.open.get(call)
    if begun is None:
        child = _begin(parent, call, ready)
    else:
        child = _reopen(parent, begun, work)
        if not child.record.state.request.begun:
            _start(parent, child, ready)
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
        _start(parent, child, _Ready(work))
    end(child.log, "cancelled", None)
    parent.record(_come_back(parent, child, call, work))


async def _prepared(parent: LiveRun, work: Nested) -> _Ready:
    """Return the work with its lessons, and what guardrails say of its request."""
    services = work.services or parent.log.services
    said = await guards_of(services, work.agent, nested=True).request(work.request)
    if services.playbooks is None or work.calls or work.agent.machine is not None:
        return _Ready(work, said)
    window = _window(services, work.agent, _model_of(parent, work.agent))
    mode = parent.record.state.request.mode
    brief, problems = await with_lessons(services, work.brief, parent.tree.approvals, mode, window)
    return _Ready(replace(work, brief=brief), (*said, *problems))


def _begin(parent: LiveRun, call: str, ready: _Ready) -> LiveRun:
    if parent.depth >= MAX_DEPTH:
        raise HandoffDepthExceeded(
            Failure(
                kind="handoff_depth",
                message=text("runs.too_deep", count=MAX_DEPTH),
                hint=text("runs.smaller_parts"),
            )
        )
    work = ready.work
    child = parent.child(work.agent, long_id("run"), State(), work.services, work.after)
    between = {"from": parent.log.agent.name, "to": work.agent.name, "run": child.run, "call_id": call}
    parent.record(HandoffStart.model_validate({**between, "request": work.request}))
    _start(parent, child, ready)
    return child


def _start(parent: LiveRun, child: LiveRun, ready: _Ready) -> None:
    """Record the start of the nested run, and what guardrails say of its request."""
    state, work = parent.record.state, ready.work
    agent, elsewhere = work.agent, work.services
    folder = str(elsewhere.roots[0]) if elsewhere is not None and elsewhere.roots else ""
    around = nested_facts(state.conversation.environment, state.request.mode, folder)
    model = _model_of(parent, agent)
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
            brief=work.brief.model_copy(update={"lessons": ()}),
            lessons=work.brief.lessons,
            tainted=state.tainted,
            environment=around if agent.uses_builtin_tools else (),
            rounds_before=before,
        ),
        AgentStart(model="" if work.calls else model),
        *ready.said,
    )


def _model_of(parent: LiveRun, agent: Agent) -> str:
    """The name of the model that a nested run of `agent` asks."""
    return parent.log.services.model_below(parent.log.agent, agent, parent.record.state.request.model)


def _window(services: RunServices, agent: Agent, model: str) -> int:
    """The model's window in tokens; 0 where it cannot be asked, which is said when it is."""
    try:
        return services.model_of(agent, model).context
    except DaikuError:
        return 0


def _reopen(parent: LiveRun, begun: HandoffStart, work: Nested) -> LiveRun:
    """The nested run as far as it got before the restart; what it used counts again."""
    state = fold(chunk.event for chunk in parent.log.read_chunks() if chunk.run == begun.run)
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


def _come_back(parent: LiveRun, child: LiveRun, call: str, work: Nested) -> HandoffEnd:
    """How the nested run ended and what it did, as its parent takes it."""
    # Who follows a run has its plans already, and newer ones.
    between = Between(
        parent.log.agent.name, child.run, call, work.services is not None, work.after is not None
    )
    return handed_back(work.agent, child.record.state, between)

"""Nested runs: another agent works on a brief, and its result is checked before it counts."""

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
from daiku.run.ending import ParentLink, build_handoff_end, end
from daiku.run.live import LiveRun
from daiku.run.nested.briefing import add_lessons, make_brief, write_request
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
"""Levels of nested hand-offs, at most; one more ends the top-level run."""


@dataclass(frozen=True, slots=True)
class Nested:
    """A nested run to start.

    `calls`: executed without a model. `services`: those of a copy of the project. `after`: called with the
    state after each event. `max_rounds`: its own model replies (0: the parent's limit).
    """

    agent: Agent
    request: str
    brief: Brief
    calls: tuple[ToolCall, ...] = ()
    told: str = ""
    after: Callable[[State], None] | None = None
    services: RunServices | None = None
    max_rounds: int = 0


async def hand_over(parent: LiveRun, call: str, name: str, request: str) -> ToolResult:
    """Run agent `name` on `request` as a nested run and return its result.

    Raises HandoffDepthExceeded, UsageError (no such agent), Paused.
    """
    agent = _find_agent(parent, name)
    brief = make_brief(parent.log, agent, request)
    back = await nest(parent, call, Nested(agent, request, brief))
    parts = dict.fromkeys(part for part in (back.result, back.problem, unverified_note(back.reasons)) if part)
    data: JsonObject | None = (
        None if back.handover is None else {"handover": back.handover.model_dump(mode="json", by_alias=True)}
    )
    ok = has_answer(back.status) and not back.problem
    return ToolResult(ok=ok, text="\n\n".join(parts), data=data, untrusted=back.tainted)


def _find_agent(parent: LiveRun, name: str) -> Agent:
    """Return the agent called `name`; only from the parent agent's `handoffs` if it has any.

    Raises UsageError.
    """
    handoffs, services = parent.log.agent.handoffs, parent.log.services
    match = next((agent for agent in handoffs if agent.name == name), None)
    if handoffs and match is None:
        names = ", ".join(agent.name for agent in handoffs)
        message, hint = text("roles.no_agent", name=repr(name)), text("roles.known", names=names)
        raise UsageError(Failure(kind="not_found", message=message, hint=hint))
    return match or services.agents.find(name)


async def nest(parent: LiveRun, call: str, work: Nested) -> HandoffEnd:
    """Run `work` as a nested run of `parent` for `call` and return how it ended; continue it after a restart.

    Budget and approvals are shared. Raises HandoffDepthExceeded, Paused.
    """
    return await _run_nested(parent, call, await _prepare(parent, call, work))


async def nest_in_parallel(parent: LiveRun, works: Mapping[str, Nested]) -> list[HandoffEnd]:
    """Run all of `works`, keyed by call, in parallel and started in order.

    Raises HandoffDepthExceeded, Paused.
    """
    prepared_runs = await run_all(_prepare(parent, call, work) for call, work in works.items())
    return await run_all(
        _run_nested(parent, call, prepared_run)
        for call, prepared_run in zip(works, prepared_runs, strict=True)
    )


async def run_all(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all coroutines to their end, in order; raise the first one's exception. Cancellation cancels all."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    return [task.result() for task in tasks]


@dataclass(frozen=True, slots=True)
class _PreparedRun:
    """A nested run before its start, and the guardrails' answer to its request."""

    work: Nested
    guard_events: tuple[Failure | Notice, ...] = ()


async def _prepare(parent: LiveRun, call: str, work: Nested) -> _PreparedRun:
    """Return `work` with its prompt; unchanged if it already has a result."""
    if find_result(parent, call) is not None:
        return _PreparedRun(work)
    if work.agent.reads_brief:
        services = work.services or parent.log.services
        on_shown = partial(services.seen.note, parent.log.session)
        prompt, brief = await write_request(work.agent, work.brief, services.workspace, on_shown)
        work = replace(work, brief=brief, told=prompt)
    start = parent.record.state.nested.open.get(call)
    return (
        _PreparedRun(work)
        if start and _has_started(parent, start.run)
        else await _check_and_add_lessons(parent, work)
    )


def _has_started(parent: LiveRun, run: str) -> bool:
    return any(chunk.run == run and isinstance(chunk.event, RunStarted) for chunk in parent.log.read_chunks())


def find_result(parent: LiveRun, call: str) -> HandoffEnd | None:
    """Return the result of the nested run for `call`; None if it has not ended."""
    return next((back for back in parent.record.state.nested.returned if back.call_id == call), None)


async def _run_nested(parent: LiveRun, call: str, prepared_run: _PreparedRun) -> HandoffEnd:
    """Run the nested run from its start, or continue it; nothing is awaited before it has started."""
    work = prepared_run.work
    back = find_result(parent, call)
    if back is not None:
        return _raise_if_too_deep(back)
    start = parent.record.state.nested.open.get(call)
    if start is None:
        child = _begin(parent, call, prepared_run)
    else:
        child = _reopen(parent, start, work)
        if not child.record.state.request.begun:
            _start(parent, child, prepared_run)
    if work.after is not None:
        work.after(child.record.state)
    try:
        await _run_loop(parent, child)
    except asyncio.CancelledError:
        if not child.abandoned:  # the parent still accounts for its changes and usage
            parent.record(_build_result(parent, child, call, work))
        raise
    back = _build_result(parent, child, call, work)
    parent.record(back)
    return _raise_if_too_deep(back)


def _raise_if_too_deep(back: HandoffEnd) -> HandoffEnd:
    """Return `back`. Raises HandoffDepthExceeded, which ends the top-level run."""
    if back.error is not None and back.error.kind == "handoff_depth":
        raise HandoffDepthExceeded(back.error)
    return back


def abandon(parent: LiveRun, call: str, work: Nested) -> None:
    """End a nested run that was started before a restart and cannot be continued."""
    child = _reopen(parent, parent.record.state.nested.open[call], work)
    if not child.record.state.request.begun:
        _start(parent, child, _PreparedRun(work))
    end(child.log, "cancelled", None)
    parent.record(_build_result(parent, child, call, work))


async def _check_and_add_lessons(parent: LiveRun, work: Nested) -> _PreparedRun:
    """Return the work with its lessons and the guardrails' answer to its request."""
    services = work.services or parent.log.services
    guard_events = await guards_of(services, work.agent, nested=True).request(work.request)
    if services.playbooks is None or work.calls or work.agent.machine is not None:
        return _PreparedRun(work, guard_events)
    window = _context_window(services, work.agent, _model_name(parent, work.agent))
    mode = parent.record.state.request.mode
    brief, problems = await add_lessons(services, work.brief, parent.tree.approvals, mode, window)
    return _PreparedRun(replace(work, brief=brief), (*guard_events, *problems))


def _begin(parent: LiveRun, call: str, prepared_run: _PreparedRun) -> LiveRun:
    if parent.depth >= MAX_DEPTH:
        raise HandoffDepthExceeded(
            Failure(
                kind="handoff_depth",
                message=text("runs.too_deep", count=MAX_DEPTH),
                hint=text("runs.smaller_parts"),
            )
        )
    work = prepared_run.work
    child = parent.child(work.agent, long_id("run"), State(), work.services, work.after)
    link = {"from": parent.log.agent.name, "to": work.agent.name, "run": child.run, "call_id": call}
    parent.record(HandoffStart.model_validate({**link, "request": work.request}))
    _start(parent, child, prepared_run)
    return child


def _start(parent: LiveRun, child: LiveRun, prepared_run: _PreparedRun) -> None:
    """Record the start of the nested run and the guardrails' answer to its request."""
    state, work = parent.record.state, prepared_run.work
    agent, copy_services = work.agent, work.services
    folder = str(copy_services.roots[0]) if copy_services is not None and copy_services.roots else ""
    environment = nested_facts(state.conversation.environment, state.request.mode, folder)
    model = _model_name(parent, agent)
    rounds_before, limits = parent.tree.budget.budget.rounds + child.kept_rounds, state.request.asked_limits
    if work.max_rounds:
        max_rounds = min(
            limits.max_rounds or rounds_before + work.max_rounds, rounds_before + work.max_rounds
        )
        limits = limits.model_copy(update={"max_rounds": max_rounds})
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
            environment=environment if agent.uses_builtin_tools else (),
            rounds_before=rounds_before,
        ),
        AgentStart(model="" if work.calls else model),
        *prepared_run.guard_events,
    )


def _model_name(parent: LiveRun, agent: Agent) -> str:
    """Return the model name for a nested run of `agent`."""
    return parent.log.services.model_below(parent.log.agent, agent, parent.record.state.request.model)


def _context_window(services: RunServices, agent: Agent, model: str) -> int:
    """Return the model's context window in tokens; 0 if the model is unavailable."""
    try:
        return services.model_of(agent, model).context
    except DaikuError:
        return 0


def _reopen(parent: LiveRun, start: HandoffStart, work: Nested) -> LiveRun:
    """Return the nested run in its state before the restart; its usage counts again."""
    state = fold(chunk.event for chunk in parent.log.read_chunks() if chunk.run == start.run)
    child = parent.child(work.agent, start.run, state, work.services, work.after)
    parent.tree.budget.add_earlier_use(state.spending.usage, state.spending.rounds + state.nested.rounds)
    return child


async def _run_loop(parent: LiveRun, child: LiveRun) -> None:
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


def _build_result(parent: LiveRun, child: LiveRun, call: str, work: Nested) -> HandoffEnd:
    """Return the nested run's result for its parent."""
    # A parent that follows the run already has newer plans.
    link = ParentLink(
        parent.log.agent.name, child.run, call, work.services is not None, work.after is not None
    )
    return build_handoff_end(work.agent, child.record.state, link)

"""The first events of a run, and what a run is told that goes on: its request, its brief, its environment."""

from __future__ import annotations

from collections.abc import Sequence

from daiku.agents.agent import Agent
from daiku.core.calls.needed import needed_tools
from daiku.core.calls.toolsets import CALL
from daiku.core.run.budget import Budget, open_budget
from daiku.core.state.environment import changed_facts
from daiku.core.state.state import State
from daiku.domain.chunks import Chunk
from daiku.domain.events import AgentStart, CheckpointEvent, Event, Notice, RunStarted
from daiku.domain.messages import AssistantMessage
from daiku.domain.runs import ApprovalMode
from daiku.llm.families import Model
from daiku.prompts import Prompts
from daiku.runs.environment import look_around
from daiku.runs.nested.briefing import brief_request
from daiku.runs.ports.routed import Prepared
from daiku.runs.ports.token_guards import count_routing
from daiku.runs.recalling import recall, recall_lessons
from daiku.runs.request import RunRequest, with_paths
from daiku.runs.run_log import prompt_notices
from daiku.runs.services import RunServices
from daiku.texts.text import text
from daiku.trace.journal import UNDER_WAY
from daiku.workspace.walk import is_large_project


async def opening_events(
    services: RunServices, agent: Agent, prepared: Prepared, state: State, session: str, model: Model | None
) -> tuple[Event, ...]:
    """The events that begin a run: its start, what guardrails and the router said of its request, and what it does
    first. Of a request that is blocked no agent, model or tool sees anything, also later in the conversation."""
    request, used = prepared.request, prepared.used
    await count_routing(services, agent, session, used)
    if not prepared.blocked:
        with services.prompts.active():
            start, *more = await _start_events(services, agent, request, state, session, model)
        told = (*prepared.said, *_about_prompts(services.prompts), *prepared.first)
        return (start, *((used,) if used is not None else ()), *more, *told)
    start = RunStarted(
        prompt=request.text,
        told=text("guardrails.blocked_request"),
        mode=request.mode,
        model=model.name if model is not None else "",
        limits=request.limits or services.config.limits,
        tainted=request.tainted,
    )
    return (start, AgentStart(), *prepared.said)


def _about_prompts(prompts: Prompts) -> list[Notice]:
    """What the person is told of templates of the workspace: those that cannot be used, and that none are."""
    notices = [*prompt_notices(prompts.problems())]
    if folder := prompts.ignored():
        notices.append(Notice(level="info", text=text("prompts.untrusted", folder=folder)))
    return notices


def _may_edit(services: RunServices, agent: Agent, request: RunRequest) -> bool:
    tools = agent.allowed(services.registry.specs(), request.mode)
    return any(spec.effect == "edit" for spec in tools)


async def _start_events(
    services: RunServices, agent: Agent, request: RunRequest, state: State, session: str, model: Model | None
) -> tuple[RunStarted | AgentStart | Notice, ...]:
    """The events that begin the run that `request` asks for, in a session that stands at `state`. `model` is
    None where none is asked."""
    told, brief = await brief_request(services, agent, request, session)
    mode, approvals, attended, cursor = request.mode, request.approvals, request.attended, request.cursor
    around = (
        ()
        if model is None
        else await look_around(
            services,
            agent,
            mode,
            approvals,
            attended=attended,
            cursor=cursor,
            needed_tools=_needed(services, agent, request, state, model),
        )
    )
    recalled, notices = await recall(services, agent, request, session) if model is not None else ((), ())
    lessons, problems = request.lessons or (), ()
    if model is not None and agent.machine is None and request.lessons is None:
        lessons, problems = await recall_lessons(services, request.text, approvals, mode, model.context)
    started = RunStarted(
        prompt=request.text,
        told=told,
        wording=request.wording,
        mode=request.mode,
        model=model.name if model is not None else "",
        may_edit=_may_edit(services, agent, request),
        limits=request.limits or services.config.limits,
        context=with_paths(request.context, services.workspace),
        images=request.images,
        calls=request.calls,
        brief=brief,
        tainted=request.tainted,
        driven=bool(request.calls) or agent.machine is not None,
        environment=around,
        recalled=recalled,
        lessons=lessons,
    )
    return started, AgentStart(model=started.model), *notices, *problems


def left_budget(state: State) -> Budget:
    """What a run that is gone on with may still use."""
    rounds = state.spending.rounds + state.nested.rounds
    return open_budget(state.request.asked_limits, state.spending.usage, rounds)


NAMED_OTHERS = 3
"""Other runs in the same folder that are named to the person; more are `…`."""


def others_here(services: RunServices, session: str) -> tuple[Notice, ...]:
    """What tells the person that another run is under way in this folder: both may change the same files. Runs
    without a folder share nothing."""
    folder = services.workspace_key
    others = services.journal.running_titles(folder, beside=session, most=NAMED_OTHERS + 1) if folder else []
    if not others:
        return ()
    names = ", ".join(f"“{title}”" for title in others[:NAMED_OTHERS])
    more = ", …" if len(others) > NAMED_OTHERS else ""
    return (Notice(level="warning", text=text("runs.another_here", names=names + more)),)


def lost_on_the_way(
    services: RunServices, session: str, state: State, own: Sequence[Chunk]
) -> tuple[Notice, ...]:
    """What the process before did not leave to us, before the status of its session is changed: what the model was
    writing as it was ended, and its checkpoints where it ran in another home."""
    lost: list[Notice] = []
    cut = services.journal.get_session(session).status in UNDER_WAY  # as its process left it
    if cut and state.request.asks_model and not (state.calls.pending or state.conversation.draft):
        lost.append(Notice(level="info", text=text("runs.unwritten")))
    taken = [chunk.event.checkpoint_id for chunk in own if isinstance(chunk.event, CheckpointEvent)]
    if taken and not any(map(services.checkpoints.has, taken)):
        lost.append(Notice(level="warning", text=text("runs.checkpoints_elsewhere")))
    return tuple(lost)


async def news_of_resumed(
    services: RunServices, agent: Agent, state: State, approvals: ApprovalMode, *, attended: bool
) -> tuple[Notice, ...]:
    """What the model of a run that is gone on with has to know of what changed around it, if anything."""
    known = state.conversation.environment
    messages = state.conversation.messages
    last = messages[-1] if messages else None
    answered = isinstance(last, AssistantMessage) and not last.calls
    # An answer that is there is not asked for again.
    if not known or not state.request.asks_model or answered:
        return ()
    now = await look_around(services, agent, state.request.mode, approvals, attended=attended)
    if not changed_facts(known, now):
        return ()
    return (Notice(level="info", text=text("runs.surroundings_changed"), environment=now),)


def _needed(services: RunServices, agent: Agent, request: RunRequest, state: State, model: Model) -> str:
    """How the tools are called that the request needs and the model is not sent."""
    chosen = agent.sent(
        services.registry.specs(), model.context, model.traits.edits, lambda: is_large_project(services.roots)
    )
    by_find = any(spec.name == CALL for spec in chosen.offered)
    return needed_tools(request.text, request.mode, chosen.deferred, state.plans.all, by_find=by_find)

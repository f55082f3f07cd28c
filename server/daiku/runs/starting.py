"""The first event of a run, and what a run is told that goes on: its request, its brief, its environment."""

from __future__ import annotations

from daiku.agents.agent import Agent
from daiku.core.calls.needed import needed_tools
from daiku.core.calls.toolsets import CALL
from daiku.core.state.environment import changed_facts
from daiku.core.state.state import State
from daiku.domain.events import Notice, RunStarted
from daiku.domain.messages import AssistantMessage
from daiku.domain.runs import ApprovalMode
from daiku.runs.environment import look_around
from daiku.runs.nested.briefing import brief_request
from daiku.runs.request import RunRequest, with_paths
from daiku.runs.services import Model, RunServices
from daiku.texts.text import text
from daiku.workspace.walk import is_large


async def start_event(
    services: RunServices, agent: Agent, request: RunRequest, state: State, session: str, model: Model | None
) -> RunStarted:
    """The event that begins the run that `request` asks for, in a session that stands at `state`. `model` is
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
    return RunStarted(
        prompt=request.text,
        told=told,
        mode=request.mode,
        model=model.name if model is not None else "",
        limits=request.limits or services.config.limits,
        context=with_paths(request.context, services.workspace),
        images=request.images,
        calls=request.calls,
        brief=brief,
        driven=bool(request.calls) or agent.machine is not None,
        environment=around,
    )


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
        services.registry.specs(), model.context, model.traits.edits, lambda: is_large(services.roots)
    )
    by_find = any(spec.name == CALL for spec in chosen.offered)
    return needed_tools(request.text, request.mode, chosen.deferred, state.plans.all, by_find=by_find)

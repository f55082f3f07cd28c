"""Preparation of a request: guardrails check it, then a router chooses its agents."""

from __future__ import annotations

from collections.abc import Mapping

from daiku.dataclass import dataclass, replace
from daiku.domain.base import long_id
from daiku.domain.errors import Failure
from daiku.domain.events import Event, MessageEvent, Notice
from daiku.domain.messages import AssistantMessage, Usage, mark_own
from daiku.domain.runs import Route
from daiku.domain.tools import ToolCall
from daiku.run.ports.guards import RunGuards, guards_of
from daiku.run.request import RunRequest
from daiku.run.services import RunServices
from daiku.team.agent import HANDOFF, Agent
from daiku.texts.text import NO_TEXT, text


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request ready to run: agent, results of guardrails and router, and events before the first reply."""

    request: RunRequest
    guard_events: tuple[Failure | Notice, ...] = ()
    routing_usage: Usage | None = None
    opening: tuple[Event, ...] = ()

    @property
    def is_blocked(self) -> bool:
        """True if a guardrail ends the run before any agent receives the request."""
        return any(isinstance(event, Failure) for event in self.guard_events)


async def prepare_request(services: RunServices, request: RunRequest) -> PreparedRequest:
    """Check the request and route it. Raises UsageError: no such agent, or no such router model."""
    agent = request.agent if isinstance(request.agent, Agent) else services.agents.find(request.agent)
    guard_events = await guards_of(services, agent, nested=False).request(request.text, request.context)
    prepared = PreparedRequest(replace(request, agent=agent), guard_events)
    if prepared.is_blocked or services.router is None or not _may_route(request, agent):
        return prepared
    candidates = _routable_agents(services, agent)
    route = await services.router.route(
        request.text,
        agents={name: each.description for name, each in candidates.items()},
        model=services.model,
    )
    chosen = [candidates[name] for name in route.agents if name in candidates]
    return await _assign(replace(prepared, routing_usage=route.usage), agent, chosen, route)


def _may_route(request: RunRequest, agent: Agent) -> bool:
    """Return True if the router may choose the agent: a new request that names none."""
    from daiku.team.table import COORDINATOR  # when used

    has_content = request.calls or request.brief is not None or request.told
    return not has_content and (agent.part is None or agent.name == COORDINATOR.name)


def _routable_agents(services: RunServices, agent: Agent) -> Mapping[str, Agent]:
    """Return the agents by name that a request to `agent` may go to."""
    from daiku.team.table import AGENTS, COORDINATOR  # when used

    builtin: Mapping[str, Agent] = AGENTS if agent.name == COORDINATOR.name else {}
    router_agents = getattr(services.router, "given", {})
    custom = {name: each for name, each in router_agents.items() if isinstance(each, Agent)}
    handoffs = {each.name: each for each in agent.handoffs}
    return {**builtin, **services.agents.own, **custom, **handoffs, agent.name: agent}


async def _assign(
    prepared: PreparedRequest, agent: Agent, chosen: list[Agent], route: Route
) -> PreparedRequest:
    """Give the run to one agent, or have `agent` combine the results of several hand-offs."""
    others = [each for each in chosen if each.name != agent.name]
    if not others:
        return prepared
    names = ", ".join(each.name for each in others)
    method = text("routing.by_model") if route.by == "model" else text("routing.by_rule")
    notice = Notice(level="info", text=text("routing.to", names=names, how=method))
    if len(chosen) == 1:
        target = chosen[0]
        target_events = await RunGuards((), target.guardrails, nested=False).request(prepared.request.text)
        return replace(
            prepared,
            request=replace(prepared.request, agent=target),
            guard_events=(*prepared.guard_events, *target_events, notice),
        )
    existing = {each.name for each in agent.handoffs}
    if agent.part is None:
        agent = agent.with_(
            handoffs=(*agent.handoffs, *(each for each in others if each.name not in existing))
        )
    calls = tuple(
        ToolCall(
            id=long_id("call"), tool=HANDOFF, args={"agent": each.name, "request": prepared.request.text}
        )
        for each in others
    )
    opaque = mark_own(AssistantMessage(calls=calls)).opaque
    message = MessageEvent(role="assistant", text=NO_TEXT, agent=agent.name, calls=calls, opaque=opaque)
    return replace(
        prepared,
        request=replace(prepared.request, agent=agent),
        guard_events=(*prepared.guard_events, notice),
        opening=(message, Usage()),
    )

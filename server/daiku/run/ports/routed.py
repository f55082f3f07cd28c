"""Before a run begins: its request judged by guardrails, then given to the agents that a router names."""

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
class Prepared:
    """A request as it is run: agent, results of guardrails and router, and events before the first reply."""

    request: RunRequest
    said: tuple[Failure | Notice, ...] = ()
    used: Usage | None = None
    first: tuple[Event, ...] = ()

    @property
    def blocked(self) -> bool:
        """Whether a guardrail ends the run before anybody sees its request."""
        return any(isinstance(event, Failure) for event in self.said)


async def prepared(services: RunServices, request: RunRequest) -> Prepared:
    """Judge the request and route it (R1.8, R1.11). Raises UsageError: no such agent or router's model."""
    agent = request.agent if isinstance(request.agent, Agent) else services.agents.find(request.agent)
    said = await guards_of(services, agent, nested=False).request(request.text, request.context)
    found = Prepared(replace(request, agent=agent), said)
    if found.blocked or services.router is None or not _is_open(request, agent):
        return found
    known = _choice(services, agent)
    route = await services.router.route(
        request.text, agents={name: each.description for name, each in known.items()}, model=services.model
    )
    chosen = [known[name] for name in route.agents if name in known]
    return await _given_to(replace(found, used=route.usage), agent, chosen, route)


def _is_open(request: RunRequest, agent: Agent) -> bool:
    """Return True if the router may choose who works on the request: it is new, and for nobody in particular."""
    from daiku.team.table import COORDINATOR  # when used

    said = request.calls or request.brief is not None or request.told
    return not said and (agent.part is None or agent.name == COORDINATOR.name)


def _choice(services: RunServices, agent: Agent) -> Mapping[str, Agent]:
    """Whom a request to `agent` may go to, by name."""
    from daiku.team.table import AGENTS, COORDINATOR  # when used

    ours: Mapping[str, Agent] = AGENTS if agent.name == COORDINATOR.name else {}
    given = getattr(services.router, "given", {})
    brought = {name: each for name, each in given.items() if isinstance(each, Agent)}
    handed = {each.name: each for each in agent.handoffs}
    return {**ours, **services.agents.own, **brought, **handed, agent.name: agent}


async def _given_to(found: Prepared, agent: Agent, chosen: list[Agent], route: Route) -> Prepared:
    """One agent gets the run itself. Several are handed the request in turn, and `agent` joins what they bring."""
    others = [each for each in chosen if each.name != agent.name]
    if not others:
        return found
    names = ", ".join(each.name for each in others)
    how = text("routing.by_model") if route.by == "model" else text("routing.by_rule")
    told = Notice(level="info", text=text("routing.to", names=names, how=how))
    if len(chosen) == 1:
        alone = chosen[0]
        own = await RunGuards((), alone.guardrails, nested=False).request(found.request.text)
        return replace(found, request=replace(found.request, agent=alone), said=(*found.said, *own, told))
    known = {each.name for each in agent.handoffs}
    if agent.part is None:
        agent = agent.with_(handoffs=(*agent.handoffs, *(each for each in others if each.name not in known)))
    calls = tuple(
        ToolCall(id=long_id("call"), tool=HANDOFF, args={"agent": each.name, "request": found.request.text})
        for each in others
    )
    opaque = mark_own(AssistantMessage(calls=calls)).opaque
    handing = MessageEvent(role="assistant", text=NO_TEXT, agent=agent.name, calls=calls, opaque=opaque)
    return replace(
        found, request=replace(found.request, agent=agent), said=(*found.said, told), first=(handing, Usage())
    )

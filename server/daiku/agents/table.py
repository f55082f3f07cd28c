"""Every agent that there is, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from daiku.agents.agent import Agent
from daiku.agents.coding.coder import CODER
from daiku.agents.coding.explorer import EXPLORER
from daiku.agents.coding.planner import PLANNER
from daiku.agents.coding.reporter import REPORTER
from daiku.agents.coding.researcher import RESEARCHER
from daiku.agents.coding.runner import RUNNER
from daiku.agents.coding.tasks import BRINGER, TASK_LOOP, TASK_REPORT, TASKS
from daiku.agents.coding.team import TEAM
from daiku.domain.errors import Failure, UsageError
from daiku.domain.labels import Label
from daiku.texts.text import text

COORDINATOR = Agent(
    name="coordinator",
    label=Label("Coordinator", "コーディネーター"),
    prompt="agents/coordinator",
    description="talks with the person and decides what is done next",
    delegate=False,
    defers=True,
    knows_project=True,
)
COMMITTER = Agent(
    name="committer",
    label=Label("Committer", "コミッター"),
    prompt="agents/committer",
    description="writes the message of a commit",
    delegate=False,
    tools=(),
)

AGENTS: Mapping[str, Agent] = MappingProxyType(
    {
        agent.name: agent
        for agent in (COORDINATOR, PLANNER, RESEARCHER, EXPLORER, CODER, RUNNER, REPORTER, COMMITTER, TEAM)
    }
)
INNER: Mapping[str, Agent] = MappingProxyType(
    {agent.name: agent for agent in (TASKS, TASK_LOOP, TASK_REPORT, BRINGER)}
)
"""Parts of other tools: nobody can ask for them by name, but the journal names them."""
ALL_AGENTS: Mapping[str, Agent] = MappingProxyType({**AGENTS, **INNER})


def agent_on_record(name: str) -> Agent:
    """Return the agent of a recorded run, internal agents included. Raises UsageError."""
    return INNER.get(name) or find_agent(name)


def delegates() -> Mapping[str, str]:
    """Return the agents that can be handed a request, each with its description."""
    return {agent.name: agent.description for agent in AGENTS.values() if agent.delegate}


def find_agent(name: str) -> Agent:
    """Return the agent called `name`. Raises UsageError that lists the known names."""
    if name not in AGENTS:
        raise UsageError(
            Failure(
                kind="not_found",
                message=text("roles.no_agent", name=repr(name)),
                hint=text("roles.known", names=", ".join(AGENTS)),
            )
        )
    return AGENTS[name]

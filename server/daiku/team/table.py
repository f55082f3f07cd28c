"""Table of all agents by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from daiku.domain.errors import Failure, UsageError
from daiku.domain.labels import Label
from daiku.run.rules.verdict import unfinished
from daiku.team.agent import Agent, Prompt
from daiku.team.coding.coder import CODER
from daiku.team.coding.explorer import EXPLORER
from daiku.team.coding.planner import PLANNER
from daiku.team.coding.reporter import REPORTER
from daiku.team.coding.researcher import RESEARCHER
from daiku.team.coding.runner import RUNNER
from daiku.team.coding.tasks import BRINGER, TASK_LOOP, TASK_REPORT, TASKS
from daiku.team.drafting.document import DOCUMENT, GUARD, REFERENCE
from daiku.team.drafting.draft import DRAFT, SECTIONS
from daiku.team.drafting.reflection import EVAL, LESSONS, REFLECTION
from daiku.team.drafting.run_reflection import CURATOR, REFLECTOR
from daiku.team.drafting.style import STYLE
from daiku.team.part import Machine, Part, Stage
from daiku.team.rules.moves import build_brief, build_team_report, next_move
from daiku.texts.text import text

COORDINATOR = Agent(
    "coordinator",
    Prompt("agents/coordinator"),
    tools=("*",),
    part=Part(
        label=Label("Coordinator", "コーディネーター"),
        description="talks with the person and decides what is done next",
        delegate=False,
        defers=True,
        knows_project=True,
    ),
)
COMMITTER = Agent(
    "committer",
    Prompt("agents/committer"),
    part=Part(
        label=Label("Committer", "コミッター"), description="writes the message of a commit", delegate=False
    ),
)
GENERATOR = Agent(
    "generator",
    Prompt("agents/generator"),
    part=Part(
        label=Label("Generator", "ジェネレーター"),
        description="answers a task with what the playbook knows of it",
        delegate=False,
    ),
)

TEAM = Agent(
    "team",
    Prompt("agents/coordinator"),
    tools=("agent/handoff", "agent/parallel", "plan/*", "shell/run", "editor/diagnostics", "user/ask"),
    part=Part(
        label=Label("Team", "チーム"),
        description="works a plan through, step by step, by the other agents",
        delegate=False,
        may_cd=False,
        stage=Stage(build_team_report),
        machine=Machine(next_move, build_brief, unfinished),
    ),
)

DRAFTING = (DOCUMENT, SECTIONS, DRAFT, STYLE, REFERENCE, GUARD, EVAL, REFLECTION, LESSONS)
"""Agents that revise prose: the leading agent, its stages, and those that learn from their results."""
AGENTS: Mapping[str, Agent] = MappingProxyType(
    {
        agent.name: agent
        for agent in (COORDINATOR, PLANNER, RESEARCHER, EXPLORER, CODER, RUNNER, REPORTER, COMMITTER, TEAM)
    }
    | {agent.name: agent for agent in (GENERATOR, *DRAFTING, REFLECTOR, CURATOR)}
)
INNER: Mapping[str, Agent] = MappingProxyType(
    {agent.name: agent for agent in (TASKS, TASK_LOOP, TASK_REPORT, BRINGER)}
)
"""Agents inside other tools: they cannot be requested by name, but traces name them."""
ALL_AGENTS: Mapping[str, Agent] = MappingProxyType({**AGENTS, **INNER})


def list_delegates(more: Mapping[str, Agent] = MappingProxyType({})) -> Mapping[str, str]:
    """Return names and descriptions of the agents that accept requests; `more`: the user's own agents."""
    builtin = {agent.name: agent.description for agent in AGENTS.values() if agent.delegate}
    return builtin | {agent.name: agent.description for agent in more.values()}


def find_agent(name: str, own: Mapping[str, Agent] = MappingProxyType({})) -> Agent:
    """Return the agent called `name`, from `own` or the built-in ones.

    Raises UsageError that lists the known names.
    """
    agent = own.get(name) or AGENTS.get(name)
    if agent is None:
        raise UsageError(
            Failure(
                kind="not_found",
                message=text("roles.no_agent", name=repr(name)),
                hint=text("roles.known", names=", ".join([*own, *AGENTS])),
            )
        )
    return agent

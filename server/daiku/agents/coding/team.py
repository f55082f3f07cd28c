"""The team: an agent that a state machine drives through a plan, without a model of its own."""

from __future__ import annotations

from daiku.agents.agent import Agent, Prompt
from daiku.agents.part import Machine, Part, Stage
from daiku.core.run.verdict import unfinished
from daiku.core.team.moves import brief_of, next_move, team_report
from daiku.domain.labels import Label

TEAM = Agent(
    "team",
    Prompt("agents/coordinator"),
    tools=("agent/handoff", "agent/parallel", "plan/*", "shell/run", "editor/diagnostics", "user/ask"),
    part=Part(
        label=Label("Team", "チーム"),
        description="works a plan through, step by step, by the other agents",
        delegate=False,
        may_cd=False,
        stage=Stage(team_report),
        machine=Machine(next_move, brief_of, unfinished),
    ),
)

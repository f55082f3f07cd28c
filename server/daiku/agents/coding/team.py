"""The team: an agent that a state machine drives through a plan, without a model of its own."""

from __future__ import annotations

from daiku.agents.agent import Agent, Machine, Stage
from daiku.core.run.plan_outcome import unfinished
from daiku.core.team.moves import brief_of, next_move, team_report

TEAM = Agent(
    name="team",
    prompt="agents/coordinator",
    tools=("agent/handoff", "agent/parallel", "plan/*", "shell/run", "editor/diagnostics", "user/ask"),
    may_cd=False,
    stage=Stage(team_report),
    machine=Machine(next_move, brief_of, unfinished),
)

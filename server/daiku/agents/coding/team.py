"""The team: an agent without a model of its own, whose moves are worked out from a plan."""

from __future__ import annotations

from daiku.agents.agent import Agent
from daiku.core.run.plan_outcome import unfinished
from daiku.core.team.moves import brief_of, next_reply, team_report

TEAM = Agent(
    name="team",
    prompt="agents/coordinator",
    tools=("agent/handoff", "agent/parallel", "plan/*", "shell/run", "editor/diagnostics", "user/ask"),
    may_cd=False,
    brief=brief_of,
    hand_back=team_report,
    drive=next_reply,
    unfinished=unfinished,
)

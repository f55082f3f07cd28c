"""`kill -9` at every durable event of a team's run, then resume: the same end, no call carried out twice."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from daiku.domain.chunks import Chunk
from daiku.domain.config import ApprovalSettings, SandboxSettings
from daiku.domain.events import PlanEvent, ToolCallEvent
from daiku.models.table import LLMSettings
from daiku.run.request import RunRequest
from daiku.settings.config import Config
from tests.runs.nested.test_team import (
    AT_1,
    CODER,
    NOTHING_TO_LOOK_UP,
    PLANNER,
    RUNNER,
    by,
    propose,
    reported,
    step,
    write,
)
from tests.runs.test_kill import World, killed_in_child

pytestmark = [
    pytest.mark.slow,  # processes that are killed
    # The tests fork processes and kill them, which Windows cannot do.
    pytest.mark.skipif(sys.platform == "win32", reason="needs fork and kill -9"),
]

EFFECT = "echo ran >> effects.txt"
LINES = (
    by(PLANNER, calls=[propose(step("Write a", "grep -q one a.txt"))], when="The user asked"),
    by(PLANNER, text="That is the plan."),
    NOTHING_TO_LOOK_UP,
    by(CODER, calls=[write("a.txt", "one\n")], when=AT_1),
    by(CODER, text="No change: it is written."),
    by(RUNNER, calls=[{"tool": "shell/run", "args": {"command": EFFECT}}], when="last message"),
    by(RUNNER, text="It ran."),
    reported("All is done."),
)


class TeamWorld(World):
    """A workspace in which the team works."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        path = folder / "team.jsonl"
        path.write_text("\n".join(json.dumps(line) for line in LINES))
        self.config = Config(
            llm=LLMSettings(provider="scripted", model=f"scripted/{path}"),
            approvals=ApprovalSettings(edit="allow", command="allow"),
            sandbox=SandboxSettings(mode="off"),
        )
        self.request = RunRequest("go", agent="team", approvals="all")


def facts(chunks: list[Chunk]) -> tuple[str, list[str]]:
    """How the run ended, and how the plan's steps stand."""
    end = json.loads(chunks[-1].data)
    plan = [c.event.plan for c in chunks if isinstance(c.event, PlanEvent)][-1]
    return end["status"], [s.status for s in plan.steps]


@pytest.mark.slow(seconds=70)
def test_killed_anywhere_the_team_resumes_to_the_same_end_and_no_call_is_carried_out_twice(
    tmp_path: Path,
) -> None:
    whole = TeamWorld(tmp_path / "whole")
    result = asyncio.run(whole.run())
    assert (result.status, whole.effects()) == ("completed", Counter({"ran": 1}))
    total = len(whole.chunks())
    assert total > 60
    for die_at in range(1, total):
        world = TeamWorld(tmp_path / str(die_at))
        assert killed_in_child(world, die_at), die_at
        ended = asyncio.run(world.resume())
        chunks = world.chunks()
        assert facts(chunks) == ("completed", ["completed"]), die_at
        assert ended.text.startswith("The reporter says (not checked):\n\nAll is done."), die_at
        assert (world.root / "a.txt").read_text() == "one\n", die_at
        commands = [
            c.event for c in chunks if isinstance(c.event, ToolCallEvent) and c.event.tool == "shell/run"
        ]
        tries = sum(event.args["command"] == EFFECT for event in commands)
        assert world.effects()["ran"] <= tries, die_at
        called = Counter(json.loads(c.data)["id"] for c in chunks if c.type == "tool_call")
        answered = Counter(json.loads(c.data)["id"] for c in chunks if c.type == "tool_response")
        assert called == answered, die_at
        assert max(called.values()) == 1, die_at
        starts = Counter(c.run for c in chunks if c.type == "run_started")
        ends = Counter(c.run for c in chunks if c.type == "run_finished")
        assert starts == ends, die_at
        assert max(ends.values()) == 1, die_at
        backs = Counter(json.loads(c.data)["callId"] for c in chunks if c.type == "handoff_end")
        assert max(backs.values()) == 1, die_at
        assert ended.usage.prompt_tokens == sum(
            json.loads(c.data)["promptTokens"] for c in chunks if c.type == "usage"
        ), die_at

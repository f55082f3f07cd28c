"""One budget for a team: what its stages may spend is reserved before each call, over restarts too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daiku.app import App, build
from daiku.domain.config import SandboxSettings
from daiku.domain.events import MessageEvent
from daiku.domain.messages import Usage
from daiku.domain.runs import RunLimits
from daiku.models.table import LLMSettings
from daiku.run.request import RunRequest
from daiku.settings.config import Config
from daiku.workspace.disk import DiskWorkspace
from tests.runs.nested.test_team import TWO_STEPS
from tests.runs.playing import Watch

pytestmark = pytest.mark.slow  # whole runs of the team, one for each limit


def app_of(folder: Path) -> App:
    (folder / "project").mkdir(parents=True, exist_ok=True)
    script = folder / "script.jsonl"
    last = {"text": "The second file is left.", "when": "This is your last reply"}
    script.write_text("\n".join(json.dumps(line) for line in (*TWO_STEPS, last)))
    config = Config(llm=LLMSettings(model=f"scripted/{script}"), sandbox=SandboxSettings(mode="off"))
    return build(config, workspace=DiskWorkspace((folder / "project",)), home=folder / "home")


def spent(watch: Watch) -> list[int]:
    """Tokens of each call of a model, in order."""
    used = (c.event for c in watch.chunks if isinstance(c.event, Usage))
    return [e.prompt_tokens + e.completion_tokens for e in used if e.model]


async def test_no_call_of_a_stage_goes_over_what_is_left_of_the_whole(tmp_path: Path) -> None:
    whole = app_of(tmp_path / "whole")
    free = Watch()
    result = await whole.runs.run(RunRequest("greet me", agent="team", approvals="all"), free)
    assert result.status == "completed"
    total = sum(spent(free))
    await whole.aclose()
    for share in (0.1, 0.35, 0.6, 0.9):
        folder = tmp_path / str(share)
        folder.mkdir()
        app, watch = app_of(folder), Watch()
        limits = RunLimits(max_tokens=int(total * share))
        result = await app.runs.run(
            RunRequest("greet me", agent="team", approvals="all", limits=limits), watch
        )
        assert result.status == "limit", share
        assert result.error is not None
        assert "max_tokens" in result.error.hint
        # What is over is at most what the estimate of one call's prompt was wrong by.
        assert sum(spent(watch)) <= limits.max_tokens + max(spent(watch), default=0), share
        used = result.usage.prompt_tokens + result.usage.completion_tokens
        assert used == sum(spent(watch)), share
        await app.aclose()


async def test_rounds_are_calls_of_a_model_in_all_stages_together_and_no_moves_of_the_team(
    tmp_path: Path,
) -> None:
    whole, free = app_of(tmp_path / "whole"), Watch()
    await whole.runs.run(RunRequest("greet me", agent="team", approvals="all"), free)
    await whole.aclose()
    calls = len(spent(free))
    assert len([c for c in free.chunks if isinstance(c.event, MessageEvent)]) > calls
    for most in range(1, calls + 1):
        (tmp_path / str(most)).mkdir()
        app, watch = app_of(tmp_path / str(most)), Watch()
        limits = RunLimits(max_rounds=most)
        result = await app.runs.run(
            RunRequest("greet me", agent="team", approvals="all", limits=limits), watch
        )
        assert len(spent(watch)) <= most
        assert result.status == ("completed" if most == calls else "limit"), most
        assert "works on" not in result.text
        await app.aclose()

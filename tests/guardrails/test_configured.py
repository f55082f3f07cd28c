"""The guardrails of the settings: every run of the product has them."""

from __future__ import annotations

from pathlib import Path

from daiku.app import build
from daiku.models.table import LLMSettings
from daiku.run.request import RunRequest
from daiku.settings.config import Config, GuardrailSettings
from daiku.workspace.disk import DiskWorkspace
from tests.runs.playing import Watch


async def test_patterns_of_the_settings_judge_every_run(tmp_path: Path) -> None:
    """PROTOCOL 2: `guardrails.regex_blocks`."""
    (tmp_path / "project").mkdir()
    script = tmp_path / "script.jsonl"
    script.write_text('{"text": "never"}')
    config = Config(
        llm=LLMSettings(model=f"scripted/{script}"),
        guardrails=GuardrailSettings(regex_blocks=("top secret",)),
    )
    app = build(config, workspace=DiskWorkspace((tmp_path / "project",)), home=tmp_path / "home")
    result = await app.runs.run(RunRequest("the top\u200b secret file"), Watch())
    assert (result.status, result.error and result.error.kind) == ("failed", "guardrail")
    await app.aclose()

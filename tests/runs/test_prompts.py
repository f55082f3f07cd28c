"""Prompts of the workspace in a run: one that fails as it is filled in is told in that very run."""

from __future__ import annotations

from pathlib import Path

from daiku.domain.events import Notice
from daiku.run.request import RunRequest
from tests.runs.playing import Watch, make_app


async def test_a_prompt_that_fails_as_it_is_filled_in_is_told_at_once(tmp_path: Path) -> None:
    prompt = tmp_path / "project" / ".daiku" / "prompts" / "agents" / "coordinator.j2"
    prompt.parent.mkdir(parents=True)
    prompt.write_text("one\n{{ ''.__class__.__mro__ }}", encoding="utf-8")
    app, watch = make_app(tmp_path, {"text": "Hello."}), Watch()
    result = await app.runs.run(RunRequest("Hi"), watch)
    await app.aclose()
    assert result.status == "completed"
    said = [chunk.event.text for chunk in watch.chunks if isinstance(chunk.event, Notice)]
    [told] = [each for each in said if "coordinator.j2" in each]
    assert "Using the built-in prompt instead of" in told
    assert ": line 2: access to attribute '__class__'" in told

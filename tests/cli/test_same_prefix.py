"""`daiku run` in plan mode, then in act mode: a service gets tools and system text with the very same bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daiku.fronts.cli.drive import UNVERIFIED
from tests.cli.test_same_chunks import run_daiku
from tests.llm.server import Answer, ModelServer
from tests.services.models import MODEL, Said, chat

PLACE = "/v1/chat/completions"


def written(body: bytes, name: str) -> str:
    """The JSON of `name` in a request as it was written; of a list of messages the first."""
    text = body.decode()
    begin = text.index(f'"{name}":') + len(name) + 3
    begin += len(text[begin:]) - len(text[begin:].lstrip())
    if name == "messages":
        begin += 1
    _, end = json.JSONDecoder().raw_decode(text, begin)
    return text[begin:end]


@pytest.mark.slow  # it starts the command twice
async def test_plan_and_then_act_mode_send_the_same_bytes(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "AGENTS.md").write_text("Use tabs.\n")
    server = ModelServer()
    await server.start()
    stream = {"content-type": "text/event-stream"}
    server.answer(
        PLACE, *(Answer([chat((0, Said([words])))], headers=stream) for words in ("Planned.", "Done."))
    )
    environ = {
        "OPENAI_API_KEY": "sk-test-000000000000000000000000",
        "OPENAI_BASE_URL": f"{server.url}/v1",
        "DAIKU_LLM__OPENAI__API": "chat",
        "DAIKU_LLM__MODEL": f"openai/{MODEL}",
        "DAIKU_HOME": str(tmp_path / "home"),
        "DAIKU_SANDBOX__MODE": "off",
    }
    for mode, more in (("plan", ()), ("act", ("--continue",))):
        code, _, err = await run_daiku(project, environ, "run", "Change a.txt", "--mode", mode, *more)
        assert code == UNVERIFIED, err  # neither a plan nor a change was made
    await server.stop()
    plan, act = (asked.body for asked in server.asked if asked.path.startswith(PLACE))
    assert "Planned." in act.decode()
    assert "files__read" in written(act, "tools")
    assert "You are Daiku" in written(act, "messages")
    for name in ("tools", "messages"):
        assert written(plan, name) == written(act, name)

"""Each agent's own model by the settings: `[agents.planner] model`."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from daiku.app import App, build
from daiku.domain.config import SandboxSettings
from daiku.domain.errors import UsageError
from daiku.models.table import LLMSettings
from daiku.run.request import RunRequest
from daiku.settings import from_mapping
from daiku.settings.config import AgentsSettings, Config
from daiku.workspace.disk import DiskWorkspace
from tests.runs.playing import Watch


def hand(agent: str) -> dict[str, Any]:
    return {"calls": [{"tool": "agent/handoff", "args": {"agent": agent, "request": "say who you are"}}]}


def says(folder: Path, name: str, *lines: dict[str, Any]) -> str:
    """A model called `name` that says these lines."""
    script = folder / f"{name}.jsonl"
    script.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"scripted/{script}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path


@pytest.fixture
async def apps() -> AsyncGenerator[list[App]]:
    made: list[App] = []
    yield made
    for app in made:
        await app.aclose()


def app_of(folder: Path, apps: list[App], model: str, **agents: str) -> App:
    config = Config(
        llm=LLMSettings(model=model),
        agents=AgentsSettings.model_validate({name: {"model": own} for name, own in agents.items()}),
        sandbox=SandboxSettings(mode="off"),
    )
    made = build(config, workspace=DiskWorkspace((folder / "project",)), home=folder / "home")
    apps.append(made)
    return made


def models_of(watch: Watch) -> list[tuple[str, str]]:
    """Which agent was answered by which model, by the records of what was used, and where a run begins."""
    found: list[tuple[str, str]] = []
    for chunk in watch.chunks:
        if chunk.type in ("run_started", "usage"):
            data = json.loads(chunk.data)
            found.append((chunk.agent, Path(data["model"]).stem))
    return list(dict.fromkeys(found))


async def test_an_agent_is_asked_with_its_own_model_and_all_others_with_the_one_of_all(
    folder: Path, apps: list[App]
) -> None:
    main = says(folder, "main", hand("coder"), hand("researcher"), {"text": "Both answered."})
    own = says(folder, "own", {"text": "I am the coder."})
    app = app_of(folder, apps, main, coder=own)
    watch = Watch()
    result = await app.runs.run(RunRequest("go", approvals="none"), watch)
    assert (result.status, ("coder", "own") in models_of(watch)) == ("completed", True)
    assert {model for agent, model in models_of(watch) if agent != "coder"} == {"main"}
    assert {model for agent, model in models_of(watch) if agent == "coder"} == {"own"}


async def test_the_talking_agents_own_model_is_for_it_alone(folder: Path, apps: list[App]) -> None:
    main = says(folder, "main", {"text": "I am the coder."})
    own = says(folder, "own", hand("coder"), {"text": "The coder answered."})
    app = app_of(folder, apps, main, coordinator=own)
    watch = Watch()
    assert (await app.runs.run(RunRequest("go", approvals="none"), watch)).text == "The coder answered."
    assert models_of(watch) == [("coordinator", "own"), ("coder", "main")]


async def test_a_model_that_a_person_chose_for_a_run_is_asked_before_the_one_of_the_settings(
    folder: Path, apps: list[App]
) -> None:
    chosen = says(folder, "chosen", hand("coder"), {"text": "Done."})
    own = says(folder, "own", {"text": "I am not asked."})
    app = app_of(folder, apps, says(folder, "main", {"text": "x"}), coordinator=own)
    watch = Watch()
    await app.runs.run(RunRequest("go", model=chosen, approvals="none"), watch)
    assert {model for _, model in models_of(watch)} == {"chosen"}


@pytest.mark.parametrize(
    ("agents", "words"),
    [
        ({"plannner": {"model": "x"}}, "agents.planner"),
        ({"planner": {"modell": "x"}}, "agents.planner.model"),
        ({"planner": {"model": 5}}, "agents.planner.model must be"),
        ({"team": {"model": "x"}}, "agents.team"),
    ],
)
def test_a_setting_of_an_agent_that_is_none_is_refused(agents: Any, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        from_mapping({"agents": agents}, {})
    assert words in str(refused.value.failure.message)

"""A weak model behind the wire of four providers: it fails a few times, is right then, and ends proved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daiku.app import build
from daiku.domain.events import ToolResponse
from daiku.domain.runs import RunResult
from daiku.run.request import RunRequest
from daiku.settings import load
from daiku.workspace.disk import DiskWorkspace
from tests.cli.test_same_chunks import run_daiku
from tests.runs.playing import Watch
from tests.services.models import Protocol, Said, serving

pytestmark = pytest.mark.slow  # real services and commands
SERVICES: tuple[Protocol, ...] = ("anthropic", "openai-chat", "gemini", "ollama")
TEST = "python3 -c 'import a; assert a.add(1, 2) == 3'"
RIGHT = Said([], [("files__edit", {"path": "a.py", "old_string": "a - b", "new_string": "a + b"})])


def weak(fails: int) -> tuple[Said, ...]:
    """Fails so often that no call can be carried out, each time in another way; then mends, tests and says so."""
    wrong = [
        Said(["I edit."], [("files__edit", {"path": "a.py", "change": f"a + b {n}"})]) if n % 2
        else Said([], [("files__edit", {"path": f"b{n}.py", "edits": [{"search": "x", "replace": "y"}]})])
        for n in range(fails)
    ]  # fmt: skip
    return (*wrong, RIGHT, Said([], [("shell__run", {"cmd": TEST})]), Said(["add adds now."]))


async def play(folder: Path, protocol: Protocol, script: tuple[Said, ...]) -> tuple[RunResult, Watch]:
    project = folder / "project"
    project.mkdir(parents=True)
    (project / "a.py").write_text("def add(a, b):\n    return a - b\n")
    watch = Watch()
    async with serving(script) as service:
        environ = {**service.environment(protocol), "DAIKU_SANDBOX__MODE": "off"}
        config = load(workspace=project, trusted=True, environ=environ).config
        app = build(config, workspace=DiskWorkspace((project,)), home=folder / "home")
        result = await app.runs.run(RunRequest("mend add", approvals="all"), watch)
        await app.aclose()
    return result, watch


@pytest.mark.parametrize("fails", [3, 4, 5, 6, 7])
@pytest.mark.parametrize("protocol", SERVICES)
async def test_a_weak_model_ends_proved(tmp_path: Path, protocol: Protocol, fails: int) -> None:
    result, watch = await play(tmp_path, protocol, weak(fails))
    assert (result.status, watch.chunks[-1].type) == ("completed", "run_finished")
    answers = [c.event for c in watch.chunks if isinstance(c.event, ToolResponse)]
    ran = next(event for event in answers if event.tool == "shell/run")
    assert ran.data
    assert (ran.outcome, ran.data["exitCode"]) == ("done", 0)


@pytest.mark.parametrize("protocol", SERVICES)
@pytest.mark.parametrize("words", [[], ["I\u2019ll now read the file and fix the bug."]])
async def test_one_that_stops_too_soon_never_ends_as_completed(
    tmp_path: Path, protocol: Protocol, words: list[str]
) -> None:
    result, _ = await play(tmp_path, protocol, (Said(words), Said(words), Said(["Done."])))
    assert result.status == "failed"


async def test_the_command_ends_as_its_run_did(tmp_path: Path) -> None:
    for script, ends in ((weak(3), (0, "completed")), ((Said([]), Said([]), Said(["Done."])), (1, "failed"))):
        project = tmp_path / ends[1] / "project"
        project.mkdir(parents=True)
        (project / "a.py").write_text("def add(a, b):\n    return a - b\n")
        async with serving(script) as service:
            environ = {**service.environment("anthropic"), "DAIKU_SANDBOX__MODE": "off"}
            environ["DAIKU_HOME"] = str(project.parent / "home")
            code, out, _ = await run_daiku(project, environ, "run", "mend add", "--json", "--approve", "all")
        assert (code, json.loads(out.splitlines()[-1])["data"]["status"]) == ends

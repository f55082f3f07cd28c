"""A weak model behind the wire of four providers: it fails a few times, is right then, and ends proved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_same_chunks import run_daiku
from tests.services.models import Protocol, Said, serving

Json = dict[str, Any]
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


async def play(folder: Path, protocol: Protocol, script: tuple[Said, ...]) -> tuple[int, list[Json]]:
    project = folder / "project"
    project.mkdir(parents=True)
    (project / "a.py").write_text("def add(a, b):\n    return a - b\n")
    async with serving(script) as service:
        environ = {
            **service.environment(protocol), "DAIKU_HOME": str(folder / "home"), "DAIKU_SANDBOX__MODE": "off",
        }  # fmt: skip
        code, out, _ = await run_daiku(project, environ, "run", "mend add", "--json", "--approve", "all")
    return code, [json.loads(line) for line in out.splitlines()]


@pytest.mark.slow  # the command as a process of its own, for each provider
@pytest.mark.parametrize("fails", [3, 4, 5, 6, 7])
@pytest.mark.parametrize("protocol", SERVICES)
async def test_a_weak_model_ends_proved(tmp_path: Path, protocol: Protocol, fails: int) -> None:
    code, chunks = await play(tmp_path, protocol, weak(fails))
    assert (code, chunks[-1]["data"]["status"]) == (0, "completed")
    ran = next(c["data"] for c in chunks if c["type"] == "tool_response" and c["data"]["tool"] == "shell/run")
    assert (ran["outcome"], ran["data"]["exitCode"]) == ("done", 0)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", SERVICES)
@pytest.mark.parametrize("words", [[], ["I\u2019ll now read the file and fix the bug."]])
async def test_one_that_stops_too_soon_never_ends_as_completed(
    tmp_path: Path, protocol: Protocol, words: list[str]
) -> None:
    code, chunks = await play(tmp_path, protocol, (Said(words), Said(words), Said(["Done."])))
    assert (code, chunks[-1]["data"]["status"]) == (1, "failed")

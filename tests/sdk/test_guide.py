"""The examples of the library guide in a bare environment: a wheel in a fresh venv, an empty home, a local model."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.cases import for_each
from tests.conftest import ROOT
from tests.llm.server import Answer, ModelServer, events
from tests.sdk.guide import CLOCK, PLAYS, examples

CHAT = "/v1/chat/completions"
PYRIGHT = ROOT / "node_modules" / ".bin" / "pyright"


def test_every_example_is_there() -> None:
    assert list(examples()) == list(PLAYS)


@for_each("name", list(PLAYS))
def test_an_example_takes_few_lines(name: str) -> None:
    lines = [line for line in examples()[name].splitlines() if line.strip()]
    assert len(lines) <= PLAYS[name].lines, f"{len(lines)} lines"
    assert max(map(len, lines)) <= 110


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment outside the checkout, in which the wheel is installed. What it needs comes from
    the packages of the environment around, which has no daiku."""
    folder = tmp_path_factory.mktemp("bare")
    wheel = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(wheel, cwd=ROOT, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    python = folder / "venv" / "bin" / "python"
    install = [
        str(python),
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--no-index",
        "--quiet",
        str(next(folder.glob("*.whl"))),
    ]
    subprocess.run(install, check=True, env=_environment(folder))
    site = folder / "venv" / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return python


def _environment(home: Path, **more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1", **more}


@pytest.fixture
async def server() -> AsyncGenerator[ModelServer]:
    server = ModelServer()
    await server.start()
    yield server
    await server.stop()


def _said(reply: str | tuple[str, dict[str, Any]]) -> Answer:
    """One reply of an OpenAI-compatible service, streamed."""
    if isinstance(reply, str):
        pieces: list[dict[str, Any]] = [{"content": word + " "} for word in reply.split(" ")]
        pieces[-1] = {"content": reply.split(" ")[-1]}
    else:
        function = {"name": reply[0], "arguments": json.dumps(reply[1])}
        pieces = [{"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}]
    end = "stop" if isinstance(reply, str) else "tool_calls"
    chunks = [{"choices": [{"index": 0, "delta": each, "finish_reason": None}]} for each in pieces]
    return events(*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": end}]}, done=True)


@pytest.mark.slow(seconds=15)
@pytest.mark.parametrize("name", list(PLAYS))
async def test_an_example_runs_where_nothing_is_set_up(
    name: str, bare: Path, server: ModelServer, tmp_path: Path
) -> None:
    play, home, folder = PLAYS[name], tmp_path / "home", tmp_path / "folder"
    home.mkdir()
    folder.mkdir()
    (folder / "example.py").write_text(examples()[name], "utf-8")
    if name == "MCP":
        (folder / "clock.py").write_text(CLOCK, "utf-8")
    server.answer(CHAT, *map(_said, play.replies))
    env = _environment(home, OPENAI_API_KEY="sk-none", OPENAI_BASE_URL=f"{server.url}/v1")
    env["PATH"] = f"{bare.parent}{os.pathsep}{env['PATH']}"
    pipe = asyncio.subprocess.PIPE
    ran = await asyncio.create_subprocess_exec(
        str(bare), "example.py", cwd=folder, env=env, stdout=pipe, stderr=pipe
    )
    printed, complaints = await asyncio.wait_for(ran.communicate(), 60)
    assert (ran.returncode, complaints.decode()) == (0, "")
    assert printed.decode().startswith(play.prints)
    assert play.prints.endswith(" ") or printed.decode() == play.prints
    asked = [each.body.decode() for each in server.asked if each.path == CHAT]
    assert len(asked) == len(play.replies)
    assert play.heard in (asked[-1] if asked else "")
    assert list(home.iterdir()) == [], "nothing is kept where nobody asked for it"
    kept = {path.name for path in folder.iterdir()} - {"example.py", "clock.py"}
    assert {each for each in kept if not each.startswith("guests.db")} == set()


@pytest.fixture
def written(tmp_path: Path) -> Path:
    for name, code in examples().items():
        (tmp_path / f"{name.replace(' ', '_').replace('-', '_')}.py").write_text(code, "utf-8")
    return tmp_path


@pytest.mark.slow(seconds=20)
def test_mypy_finds_nothing_in_the_examples(bare: Path, written: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--python-executable",
        str(bare),
        "--cache-dir",
        "cache",
        ".",
    ]
    done = subprocess.run(
        command, cwd=written, capture_output=True, text=True, check=False, env=_environment(written)
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
# `npm test` installs the type checker; pytest alone may run without it.
@pytest.mark.skipif(not PYRIGHT.exists(), reason="npm's packages are not installed")
def test_pyright_finds_nothing_in_the_examples(bare: Path, written: Path) -> None:
    (written / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict"}))
    command = [str(PYRIGHT), "--pythonpath", str(bare)]
    done = subprocess.run(
        command, cwd=written, capture_output=True, text=True, check=False, env=_environment(written)
    )
    assert done.returncode == 0, done.stdout + done.stderr

"""Ends of runs with a real small model on a real server.

SmolLM2 135M can do no task, so only what is told about a run is judged, never the reply.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from daiku import Agent, Runner
from daiku.domain.config import ProviderSettings
from daiku.models.model import Models
from daiku.models.table import LLMSettings
from tests.lab.conftest import RealServer, StartServer
from tests.llm.talk import READ, text_of, user
from tests.llm.test_cures import ask, notices

pytestmark = [pytest.mark.slow, pytest.mark.lab]


class Weather(BaseModel):
    """A typed answer."""

    city: str
    degrees: int


def start_command(server: RealServer, folder: Path, prompt: str) -> subprocess.Popen[str]:
    """Start `daiku run` as a script does, without a terminal."""
    variables = {"DAIKU_LLM__PROVIDER": "compatible", "DAIKU_LLM__COMPATIBLE__BASE_URL": server.url}
    return subprocess.Popen(
        [sys.executable, "-m", "daiku", "run", prompt, "--mode", "ask", "--json", "-C", str(folder)],
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def read_end(command: subprocess.Popen[str]) -> tuple[dict[str, Any], str]:
    """Wait for the command, and return the data of its last chunk and what it wrote for a person."""
    out, err = command.communicate(timeout=280)
    return json.loads(out.splitlines()[-1])["data"], err


async def test_tools_that_the_template_leaves_out_are_told_as_text(start_server: StartServer) -> None:
    server = start_server(context=4096, reply=40)
    tool = READ.model_copy(update={"description": "Read a file of the project. " * 40})
    settings = LLMSettings(model="compatible/local", compatible=ProviderSettings(base_url=server.url))
    models = Models(settings)
    heard = await ask(models, user("Read README.md."), tools=(tool,))
    assert "llm.cure.tools_dropped" in " ".join(notices(heard))
    assert text_of(heard) != ""
    again = await ask(models, user("Read README.md."), tools=(tool,))
    assert "llm.cure.tools_dropped" not in " ".join(notices(again))
    await models.aclose()


async def test_a_typed_answer_is_forced_by_the_servers_grammar(start_server: StartServer) -> None:
    """R0.96: the model cannot write JSON by itself."""
    server = start_server(context=4096, reply=120)
    settings = {"llm": {"compatible": {"base_url": server.url}}}
    agent = Agent("weather", "Say what the weather is.", output=Weather, model="compatible/local")
    async with Runner(store=None, settings=settings) as runner:
        result = await runner.run(agent, "It is 21 degrees in Paris.")
    assert result.status == "completed"
    assert isinstance(result.output, Weather)


def test_a_reply_that_was_cut_off_is_not_an_end(start_server: StartServer, workspace: Path) -> None:
    server = start_server(context=4096, reply=12, endless=True)
    command = start_command(server, workspace, "Explain this folder.")
    end, told = read_end(command)
    assert command.returncode == 5, told
    assert end["status"] == "completed_unverified"
    assert [reason["kind"] for reason in end["reasons"]] == ["cut_off"]


def test_a_window_that_is_too_small_says_how_to_start_the_server(
    start_server: StartServer, workspace: Path
) -> None:
    command = start_command(start_server(context=256, reply=12), workspace, "Explain this folder.")
    end, told = read_end(command)
    assert (command.returncode, end["status"]) == (1, "failed")
    assert "llama-server -c 4096" in told


def test_a_server_that_dies_during_a_run_is_named(start_server: StartServer, workspace: Path) -> None:
    server = start_server(context=4096, reply=400)
    command = start_command(server, workspace, "Explain this folder.")
    assert command.stdout
    assert "run_started" in command.stdout.readline()
    server.process.kill()
    end, told = read_end(command)
    assert (command.returncode, end["status"]) == (1, "failed")
    assert "127.0.0.1" in told

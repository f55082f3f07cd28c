"""`daiku run --approve all` with nobody there: what runs after the first network call, and which option a hint names."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daiku.guard.sandbox import bubblewrap
from tests.cli.conftest import Daiku, Done, call

pytestmark = [
    pytest.mark.slow,  # real sandboxes and MCP servers
    # The sandbox needs bubblewrap, which `npm test` installs but not every container can run.
    pytest.mark.skipif(not bubblewrap(), reason="no working bubblewrap here"),
]
WILD = Path(__file__).parents[2] / "services" / "mcp_wild.py"
CURL = call("shell/run", command="curl -s -m 2 http://127.0.0.1:9/", network=True)
PIP = call("shell/run", command="pip install --no-index x", network=True)
AWAY = call("shell/run", command="curl -s -m 2 http://127.0.0.2:9/?d=x", network=True)


def outcomes(done: Done) -> list[str]:
    return [c["data"]["outcome"] for c in done.chunks() if c["type"] == "tool_response"]


def run(daiku: Daiku, script: Callable[..., str], *calls: dict[str, Any]) -> Done:
    model = script(*({"calls": [each]} for each in calls), {"text": "Done."})
    return daiku("run", "go", "--model", model, "--approve", "all", "--json")


def test_a_second_network_command_runs_in_a_trusted_folder(daiku: Daiku, script: Callable[..., str]) -> None:
    assert daiku("config", "trust").code == 0
    done = run(daiku, script, CURL, PIP, PIP)
    assert "unattended" not in outcomes(done), done.err
    done = run(daiku, script, CURL, AWAY)
    assert outcomes(done)[1] == "unattended"
    assert "names a place on the network" in done.err


def test_in_an_untrusted_folder_the_hint_names_config_trust(daiku: Daiku, script: Callable[..., str]) -> None:
    done = run(daiku, script, PIP)
    assert (done.code, outcomes(done)) == (4, ["unattended"])
    assert "daiku config trust" in done.err
    (response,) = [c["data"] for c in done.chunks() if c["type"] == "tool_response"]
    assert "without `network`" in response["result"]


def test_further_calls_of_an_mcp_server_run(
    daiku: Daiku, script: Callable[..., str], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = {"mcp_server_name": "wild", "command": [sys.executable, str(WILD), "plain"]}
    monkeypatch.setenv("DAIKU_MCP_SERVERS", json.dumps([server]))
    assert daiku("mcp", "allow", "wild").code == 0
    done = run(daiku, script, *[call("wild/fine")] * 2)
    assert outcomes(done) == ["done", "done"], done.err

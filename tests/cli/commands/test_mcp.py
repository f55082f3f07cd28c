"""`daiku mcp`: servers are listed with why they are not used, allowed, forgotten; tools and doctor tell too."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Daiku, call

pytestmark = pytest.mark.slow  # real MCP servers

WILD = Path(__file__).parents[2] / "services" / "mcp_wild.py"


@pytest.fixture
def servers(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One server by the settings of the person."""
    monkeypatch.chdir(workspace)
    server = {"mcp_server_name": "wild", "command": [sys.executable, str(WILD), "plain"]}
    monkeypatch.setenv("DAIKU_MCP_SERVERS", json.dumps([server]))


def test_a_server_is_allowed_used_without_a_person_and_forgotten(
    daiku: Daiku, servers: None, script: object
) -> None:
    assert "not allowed yet" in daiku("mcp", "list").out
    assert "daiku mcp allow wild" in daiku("tools").err
    allowed = daiku("mcp", "allow", "wild")
    assert (allowed.code, "mcp_wild.py plain" in allowed.err) == (0, True)
    assert "wild/fine" in daiku("mcp", "list").out
    assert "wild/fine" in daiku("tools").out
    assert "MCP server wild: ready, 2 tools" in daiku("doctor").out
    assert daiku("mcp", "forget", "wild").code == 0
    assert "not allowed yet" in daiku("mcp", "list").out


def test_a_server_that_is_not_configured_is_told(daiku: Daiku, servers: None) -> None:
    done = daiku("mcp", "allow", "other")
    assert done.code == 2
    assert "There are: wild" in done.err


@pytest.mark.parametrize("approve", ["all", "edits", "none"])
def test_a_server_that_nobody_allowed_is_left_out_with_a_word_and_one_that_was_is_used(
    daiku: Daiku, servers: None, script: object, approve: str
) -> None:
    assert callable(script)
    alone = daiku("run", "go", "--model", script({"text": "done"}), "--approve", approve, "--json")
    assert alone.code == 0
    (notice,) = [c["data"]["text"] for c in alone.chunks() if c["type"] == "notice"]
    assert "daiku mcp allow wild" in notice
    daiku("mcp", "allow", "wild")
    model = script({"calls": [call("wild/fine")]}, {"text": "done"})
    done = daiku("run", "go", "--model", model, "--approve", approve, "--json")
    if approve != "all":
        assert done.code == 4, "its calls are asked about"
        return
    assert done.code == 0, done.err
    (response,) = [c for c in done.chunks() if c["type"] == "tool_response"]
    assert response["data"]["ok"]
    assert response["data"]["untrusted"]


def test_a_workspace_file_that_is_not_trusted_starts_nothing(
    daiku: Daiku, workspace: Path, script: object
) -> None:
    assert callable(script)
    canary = workspace.parent / "canary"
    (workspace / ".daiku").mkdir()
    (workspace / ".daiku" / "config.toml").write_text(
        f'[[mcp_servers]]\nmcp_server_name = "evil"\ncommand = ["touch", "{canary}"]\n'
    )
    for name in (".mcp.json", ".vscode/mcp.json"):
        place = workspace / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(json.dumps({"mcpServers": {"evil": {"command": "touch", "args": [str(canary)]}}}))
    assert daiku("run", "go", "--model", script({"text": "x"}), "--approve", "all").code == 0
    assert daiku("tools").code == 0
    assert not canary.exists()

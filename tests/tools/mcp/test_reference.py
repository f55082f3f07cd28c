"""The reference servers of the protocol's makers list their tools and are called; installed into the cache."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from daiku.domain.config import MCPServerSettings
from tests.tools.mcp.packages import from_npm, from_pypi, node
from tests.tools.mcp.play import playing

pytestmark = pytest.mark.slow

NPM = (
    "@modelcontextprotocol/server-everything",
    "@modelcontextprotocol/server-filesystem",
    "@modelcontextprotocol/server-memory",
)
PYPI = ("mcp-server-git", "mcp-server-fetch", "mcp-server-time")


def of_npm(name: str, *arguments: str) -> MCPServerSettings:
    program = from_npm(*NPM) / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
    return MCPServerSettings(mcp_server_name=name, command=(node(), str(program), *arguments))


def of_pypi(name: str, *arguments: str) -> MCPServerSettings:
    program = from_pypi(*PYPI) / f"mcp-server-{name}"
    return MCPServerSettings(mcp_server_name=name, command=(str(program), *arguments))


async def test_everything_echoes_adds_shows_a_picture_and_its_resources(tmp_path: Path) -> None:
    async with playing(tmp_path, of_npm("everything")) as played:
        await played.allow(seconds=60)
        assert "hello" in (await played.call("everything/echo", message="hello")).text
        assert "5" in (await played.call("everything/get-sum", a=2, b=3)).text
        assert (await played.call("everything/get-tiny-image")).images
        assert "demo://" in (await played.call("mcp/resources", server="everything")).text
        assert (await played.call("mcp/prompts", server="everything")).ok
        slow = await played.call("everything/trigger-long-running-operation", duration=1, steps=2)
        assert slow.ok, slow.text


async def test_filesystem_reads_below_the_workspace_and_nowhere_else(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("inside")
    (tmp_path / "b.txt").write_text("outside")
    async with playing(tmp_path, of_npm("filesystem", str(project))) as played:
        await played.allow(seconds=60)
        assert "inside" in (await played.call("filesystem/read_text_file", path=str(project / "a.txt"))).text
        refused = await played.call("filesystem/read_text_file", path=str(tmp_path / "b.txt"))
        assert not refused.ok
        assert "outside" not in refused.text.partition("Access denied")[0]


async def test_memory_keeps_what_it_is_told(tmp_path: Path) -> None:
    server = of_npm("memory").model_copy(update={"env": {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}})
    async with playing(tmp_path, server) as played:
        await played.allow(seconds=60)
        entity = {"name": "Daiku", "entityType": "carpenter", "observations": ["builds"]}
        assert (await played.call("memory/create_entities", entities=[entity])).ok
        assert "carpenter" in (await played.call("memory/read_graph")).text


async def test_git_tells_the_status_of_a_repository(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    subprocess.run(["git", "init", "-q", str(project)], check=True)  # noqa: ASYNC221  # nothing else runs yet
    (project / "new.txt").write_text("x")
    async with playing(tmp_path, of_pypi("git")) as played:
        await played.allow(seconds=60)
        assert "new.txt" in (await played.call("git/git_status", repo_path=str(project))).text


async def test_time_is_told(tmp_path: Path) -> None:
    async with playing(tmp_path, of_pypi("time")) as played:
        await played.allow(seconds=60)
        assert "Asia/Tokyo" in (await played.call("time/get_current_time", timezone="Asia/Tokyo")).text


async def test_fetch_is_listed_and_called(tmp_path: Path) -> None:
    """What it answers for a port where nobody listens is an error of its own, told as such."""
    async with playing(tmp_path, of_pypi("fetch")) as played:
        await played.allow(seconds=60)
        assert "fetch/fetch" in played.tools
        result = await played.call("fetch/fetch", url="http://127.0.0.1:9/")
        assert not result.ok
        assert "127.0.0.1" in result.text

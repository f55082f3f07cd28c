"""The composition root: what other packages bring is there, and cannot replace what is built in."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from daiku.app import build
from daiku.domain.config import ProviderSettings
from daiku.domain.tools import ToolCall, ToolResult
from daiku.llm.table import LLMSettings
from daiku.settings.config import Config, PluginSettings
from daiku.tools.tool import Args, Tool, ToolContext
from daiku.workspace.disk import DiskWorkspace

MODULE = """
from daiku.domain.tools import ToolResult
from daiku.tools.tool import Args, Tool

class Nothing(Args):
    "Tell the phase of the moon."

async def run(args, context):
    return ToolResult(ok=True, text="full")

TOOLS = [Tool("moon/phase", "none", Nothing, run), Tool("files/read", "none", Nothing, run)]
"""


async def test_no_secret_is_in_what_a_tool_raises(tmp_path: Path) -> None:
    key = "a-key-without-a-shape"
    llm = LLMSettings(openai=ProviderSettings(api_key=SecretStr(key)))
    workspace = DiskWorkspace((tmp_path,))
    app = build(Config(llm=llm), workspace=workspace, home=tmp_path / "home")

    async def broken(_: Args, __: ToolContext) -> ToolResult:
        raise ValueError(f"{key} was refused")

    app.registry.add([Tool("a/broken", "none", Args, broken)])
    context = ToolContext("s", "r", "c", workspace, app.checkpoints, app.config, lambda _: None)
    done = await app.registry.call(ToolCall(tool="a/broken"), context)
    assert done.text == "a__broken failed: ValueError: [redacted] was refused"
    await app.aclose()


async def test_a_package_adds_tools_through_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    (site / "moon-1.0.dist-info").mkdir(parents=True)
    (site / "moon_tools.py").write_text(MODULE)
    (site / "moon-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: moon\nVersion: 1.0\n")
    entries = "[daiku.tools]\nmoon = moon_tools:TOOLS\nbroken = moon_tools:MISSING\n"
    (site / "moon-1.0.dist-info/entry_points.txt").write_text(entries)
    monkeypatch.syspath_prepend(str(site))
    strict = build(Config(), workspace=DiskWorkspace((tmp_path,)), home=tmp_path / "home")
    assert "moon/phase" not in {spec.name for spec in strict.tools()}
    assert {(p.package, p.status) for p in strict.plugins} == {("moon", "off")}
    await strict.aclose()
    allowing = Config(plugins=PluginSettings(allow=("moon",)))
    app = build(allowing, workspace=DiskWorkspace((tmp_path,)), home=tmp_path / "home")
    specs = {spec.name: spec for spec in app.tools()}
    assert specs["moon/phase"].description == "Tell the phase of the moon. (plug-in moon)"
    assert specs["moon/phase"].effect == "command"
    assert {(p.entry, p.status) for p in app.plugins} == {("moon", "on"), ("broken", "broken")}
    assert "path" in str(specs["files/read"].parameters)
    await app.aclose()

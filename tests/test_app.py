"""The composition root: what other packages bring is there, and cannot replace what is built in."""

from __future__ import annotations

from pathlib import Path

from pydantic import SecretStr

from daiku.app import build
from daiku.domain.config import ProviderSettings
from daiku.domain.tools import ToolCall, ToolResult
from daiku.models.table import LLMSettings
from daiku.settings.config import Config
from daiku.tools.tool import Args, Tool, ToolContext
from daiku.workspace.disk import DiskWorkspace


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

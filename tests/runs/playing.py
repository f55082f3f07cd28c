"""Playing a script through a real App: what the tests of runs share."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from daiku.app import App, build
from daiku.domain.chunks import Chunk
from daiku.domain.config import ApprovalSettings, SandboxSettings
from daiku.models.table import LLMSettings
from daiku.settings.config import Config
from daiku.workspace.disk import DiskWorkspace


class Watch:
    """Keeps the chunks and lets a test wait for one."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self._changed = asyncio.Event()

    def __call__(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)
        self._changed.set()

    async def until(self, type_: str) -> Chunk:
        async with asyncio.timeout(20):
            while True:
                found = next((c for c in self.chunks if c.type == type_), None)
                if found is not None:
                    return found
                self._changed.clear()
                await self._changed.wait()

    def forget(self) -> None:
        """Wait for what comes from now on."""
        self.chunks.clear()

    def types(self) -> list[str]:
        return [c.type for c in self.chunks if c.type not in ("delta", "tool_output")]


def make_app(
    folder: Path,
    *lines: dict[str, Any],
    command: str = "ask",
    locale: str = "en",
    project: Path | None = None,
    home: Path | None = None,
) -> App:
    """An App over `project` and `home` (else folders of these names) whose model plays `lines`."""
    script = folder / "script.jsonl"
    script.write_text("\n".join(json.dumps(line) for line in lines))
    config = Config(
        llm=LLMSettings(model=f"scripted/{script}"),
        approvals=ApprovalSettings.model_validate({"command": command}),
        sandbox=SandboxSettings(mode="off"),
    )
    workspace = DiskWorkspace((project or folder / "project",))
    return build(config, workspace=workspace, home=home or folder / "home", locale=locale)


def shell(command: str) -> dict[str, Any]:
    """A scripted call of shell/run."""
    return {"tool": "shell/run", "args": {"command": command}}

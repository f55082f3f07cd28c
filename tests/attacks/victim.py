"""An agent that was talked into doing harm: its calls pass registry, guard, approval and tool as a run's do."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from daiku.domain.config import ApprovalSettings, SandboxSettings
from daiku.domain.errors import DaikuError
from daiku.domain.events import Event
from daiku.domain.tools import ToolCall, ToolResult
from daiku.guard.rules.guard import verdict
from daiku.guard.rules.policy import Policy, Verdict
from daiku.guard.sandbox import sandbox_state
from daiku.settings.config import Config
from daiku.tools.registry import ToolRegistry
from daiku.tools.table import build_builtin_tools
from daiku.tools.tool import Preview, ToolContext
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.disk import DiskWorkspace

Outcome = Literal["denied", "asked", "failed", "done"]


class Victim:
    """`attempt` makes one call under a policy; `person` says what a person would answer to a question."""

    def __init__(self, root: Path, home: Path, *, person: bool = False, **settings: Any) -> None:
        self.root = root
        self.home = home
        self.person = person
        self.events: list[Event] = []
        self.result: ToolResult | None = None
        self.told: list[str] = []
        """What the model was told by each call that was carried out."""
        self.verdict: Verdict | None = None
        sandbox = settings.pop("sandbox", SandboxSettings())
        changes = {
            k: settings.pop(k)
            for k in ("mode", "approval_mode", "headless", "tainted", "trusted")
            if k in settings
        }
        self.config = Config(approvals=ApprovalSettings(**settings), sandbox=sandbox)
        self.registry = ToolRegistry(build_builtin_tools())
        self.workspace = DiskWorkspace((root,))
        self.policy = replace(
            Policy(
                approvals=self.config.approvals,
                sandbox=sandbox_state(sandbox),
                network=sandbox.network,
                resolve=self._resolve,
                roots=(str(root),),
                home=str(home),
            ),
            **changes,
        )

    def _resolve(self, path: str) -> str | None:
        try:
            return self.workspace.relative(self.workspace.locate(path))
        except (DaikuError, OSError, ValueError):
            return None

    @property
    def context(self) -> ToolContext:
        return ToolContext(
            session="s",
            run="r",
            call_id="c",
            workspace=self.workspace,
            checkpoints=CheckpointStore(self.root.parent / "state" / "checkpoints", self.workspace),
            config=self.config,
            emit=self.events.append,
        )

    async def attempt(self, tool: str, **args: Any) -> Outcome:
        """What came of the call: refused by the guard, asked and not granted, failed in the tool, or done."""
        call = ToolCall(tool=tool, args=args)
        spec = self.registry.spec(tool)
        assert spec is not None, tool
        self.verdict = verdict(call, spec, self.policy)
        if self.verdict.answer == "deny":
            return "denied"
        if self.verdict.answer == "ask" and not self.person:
            return "asked"
        async with asyncio.timeout(30):
            self.result = await self.registry.call(call, self.context)
        self.told.append(self.result.text)
        return "done" if self.result.ok else "failed"

    async def preview(self, tool: str, **args: Any) -> Preview | ToolResult | None:
        """What an approval would show."""
        return await self.registry.preview(ToolCall(tool=tool, args=args), self.context)


def snapshot(folder: Path) -> dict[str, bytes | str]:
    """Everything in `folder`: bytes of files, targets of links."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = str(path.readlink())
        elif path.is_file():
            found[name] = path.read_bytes()
        else:
            found[name] = "folder"
    return found

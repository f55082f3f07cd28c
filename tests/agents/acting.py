"""An agent at work on a scripted model: what the tests of the roles share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from daiku.app import App, build
from daiku.domain.runs import Mode, RunResult
from daiku.run.request import RunRequest
from daiku.run.rules.state.fold import fold
from daiku.run.rules.state.state import State
from daiku.settings.config import Config
from daiku.workspace.disk import DiskWorkspace
from tests.runs.playing import Watch

Line = dict[str, Any]
PROTOCOLS = ("native", "action_list", "command")


def app_with(folder: Path, *lines: Line, protocol: str = "native", **settings: Any) -> App:
    """An App over `folder`/project whose model plays `lines`; commands run without a sandbox."""
    (folder / "project").mkdir(exist_ok=True)
    script = folder / "script.jsonl"
    script.write_text("\n".join(json.dumps(line) for line in lines))
    config = Config.model_validate(
        {
            "llm": {"model": f"scripted/{script}", "scripted": {"tool_protocol": protocol}},
            "sandbox": {"mode": "off"},
            **settings,
        }
    )
    return build(config, workspace=DiskWorkspace((folder / "project",)), home=folder / "home")


async def act(
    app: App, agent: str, text: str = "Look at it.", *, mode: Mode = "act", approvals: Any = "all"
) -> tuple[RunResult, State, Watch]:
    """One run of `agent` to its end: its result, its state, its chunks."""
    watch = Watch()
    try:
        request = RunRequest(text, agent=agent, mode=mode, approvals=approvals)
        result = await app.runs.run(request, watch)
    finally:
        await app.aclose()
    return result, fold(chunk.event for chunk in watch.chunks), watch


def said(watch: Watch) -> list[str]:
    """The texts of the run's replies, in order."""
    found = (json.loads(c.data) for c in watch.chunks if c.type == "message")
    return [data["text"] for data in found if data["role"] == "assistant"]


def called(watch: Watch) -> list[tuple[str, dict[str, Any]]]:
    """The calls that were begun, in order."""
    found = (json.loads(c.data) for c in watch.chunks if c.type == "tool_call")
    return [(data["tool"], data["args"]) for data in found]


def in_protocol(protocol: str, tool: str, args: dict[str, Any]) -> Line:
    """A scripted reply that calls a tool, in the form of the protocol."""
    if protocol == "native":
        return {"calls": [{"tool": tool, "args": args}]}
    if protocol == "command":
        return {"text": json.dumps({"comment": "", "command": {"tool": tool, "args": args}})}
    return {"text": json.dumps({"comment": "", "actions": [{"operation": tool, "args": args}]})}

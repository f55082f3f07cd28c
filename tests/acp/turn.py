"""One turn of `daiku acp` as a process, by the library's own client: `python -m tests.acp.turn FOLDER TEXT`.

Everything that it asks is allowed; what the client was told is printed as one line of JSON."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from acp import spawn_agent_process, text_block
from acp.schema import ClientCapabilities, FileSystemCapabilities

from tests.acp.pair import Editor
from tests.conftest import ROOT

COMMAND = (sys.executable, "-m", "daiku", "acp")


def spawned(editor: Any, workspace: Path) -> Any:
    """The process and its client."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "server")}
    return spawn_agent_process(editor, *COMMAND, env=environ, cwd=workspace)


async def _turn(workspace: Path, text: str) -> dict[str, Any]:
    editor = Editor()
    offer = ClientCapabilities(
        fs=FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True
    )
    async with asyncio.timeout(90), spawned(editor, workspace) as (agent, _):
        await agent.initialize(protocol_version=1, client_capabilities=offer)
        made = await agent.new_session(cwd=str(workspace), mcp_servers=[])
        ended = await agent.prompt(session_id=made.session_id, prompt=[text_block(text)])
    return {
        "ended": ended.stop_reason,
        "said": editor.said,
        "plan": [entry.content for update in editor.of("plan")[-1:] for entry in update.entries],
        "asked": len(editor.asked),
        "wrote": [Path(path).name for path, _ in editor.wrote],
        "terminals": len(editor.terminals),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(_turn(Path(sys.argv[1]), sys.argv[2]))))

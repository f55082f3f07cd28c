"""What a power cut may take back of a run, and what not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daiku.domain.events import ToolCallEvent
from daiku.run.request import RunRequest
from daiku.trace.journal import SessionWriter
from tests.runs.playing import Watch, make_app, shell


async def test_the_start_of_a_command_is_on_the_disk_before_it_runs_and_a_look_costs_no_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/a.txt").write_text("a\n")
    kept: dict[str, bool] = {}
    write = SessionWriter.write

    def watched(
        self: SessionWriter, run: str, parent: str | None, agent: str, events: Any, **how: bool
    ) -> Any:
        kept.update({e.tool: how.get("durable", False) for e in events if isinstance(e, ToolCallEvent)})
        return write(self, run, parent, agent, events, **how)

    monkeypatch.setattr(SessionWriter, "write", watched)
    look = {"tool": "files/read", "args": {"path": "a.txt"}}
    edit = {"tool": "files/write", "args": {"path": "b.txt", "content": "b\n"}}
    lines = [{"calls": [call]} for call in (look, edit, shell("true"))]
    app = make_app(tmp_path, *lines, {"text": "Done."})
    await app.runs.run(RunRequest("go", approvals="all"), Watch())
    await app.aclose()
    assert kept == {"files/read": False, "files/write": False, "shell/run": True}

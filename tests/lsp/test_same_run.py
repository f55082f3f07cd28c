"""One scripted run, played by stock Neovim here and by VS Code in tests/editor/host/same-run.test.ts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.editor]

HERE = Path(__file__).parent
SHARED = ROOT / "tests" / "fixtures" / "editors"
TIMEOUT = 60


def runs_of(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each run was given, did and came to, in the words of `run.json`."""
    runs: list[dict[str, Any]] = []
    for chunk in chunks:
        data = chunk["data"]
        if chunk["type"] == "run_started":
            kinds = [item["kind"] for item in data["context"]]
            runs.append({"context": kinds, "calls": [], "answered": []})
        elif chunk["type"] == "tool_call":
            what = data["args"].get("command") or data["args"].get("path", "")
            runs[-1]["calls"].append(f"{data['tool']} {what}")
        elif chunk["type"] == "tool_response":
            runs[-1]["answered"].append(data["ok"])
        elif chunk["type"] == "run_finished":
            completed = data["status"] == "completed"
            runs[-1] |= {"status": data["status"], "text": data["text"] if completed else ""}
    return runs


# `npm test` installs Neovim; pytest alone may run without it.
@pytest.mark.skipif(not shutil.which("nvim"), reason="no Neovim")
def test_neovim_does_what_any_editor_does(workspace: Path, tmp_path: Path) -> None:
    run = json.loads((SHARED / "run.json").read_text())
    file, report = workspace / run["file"], tmp_path / "report.json"
    file.write_text(run["before"])
    environ = {
        **os.environ,
        "DAIKU_TEST_COMMAND": json.dumps([sys.executable, "-m", "daiku", "lsp"]),
        "DAIKU_TEST_WORKSPACE": str(workspace),
        "DAIKU_TEST_RUN": str(SHARED / "run.json"),
        "DAIKU_TEST_MODEL": f"scripted/{SHARED / 'script.jsonl'}",
        "DAIKU_TEST_REPORT": str(report),
    }
    done = subprocess.run(
        ["nvim", "--headless", "--clean", "-n", "-c", f"luafile {HERE / 'nvim' / 'same.lua'}"],
        env=environ, capture_output=True, text=True, timeout=TIMEOUT, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert report.exists(), done.stderr
    seen = json.loads(report.read_text())
    bars = {token: [b["kind"] for b in seen["progress"] if b["token"] == token] for token in ("fix", "long")}
    assert seen["errors"] == []
    assert {
        "actions": [action["title"] for action in seen["actions"]],
        "after": file.read_text(),
        "edit_asked": any("code.py" in asked for asked in seen["asked"]),
        "progress_begun": all(kinds[0] == "begin" for kinds in bars.values()),
        "progress_ended": all(kinds[-1] == "end" for kinds in bars.values()),
        "runs": runs_of(seen["chunks"]),
    } == run["expected"]

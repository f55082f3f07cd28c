"""Standard streams that are full or closed: one line says so, nothing of Python's own, the right code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = [
    pytest.mark.slow,
    # Only Linux has /dev/full, a device on which every write fails.
    pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full"),
]


def daiku(line: str, workspace: Path, home: Path) -> subprocess.CompletedProcess[str]:
    (workspace / "play.jsonl").write_text(json.dumps({"text": "Hello there."}), encoding="utf-8")
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "server"),
        "DAIKU_HOME": str(home),
        "DAIKU_LLM__MODEL": "scripted/play.jsonl",
        "LC_ALL": "C.UTF-8",
    }
    return subprocess.run(
        ["/bin/sh", "-c", f'"{sys.executable}" -m daiku {line}'],
        cwd=workspace,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("options", ["", "--json"])
def test_output_that_cannot_be_written_is_a_failure_in_one_line(
    options: str, workspace: Path, daiku_home: Path
) -> None:
    done = daiku(f"run hi {options} >/dev/full", workspace, daiku_home)
    told = [line for line in done.stderr.splitlines() if line.startswith("daiku:")]
    assert (done.returncode, len(told)) == (1, 1)
    assert "cannot be written: No space left" in told[0]
    assert "Exception" not in done.stderr


@pytest.mark.parametrize("closed", ["<&-", "<&- >&-", "<&- >&- 2>&-"])
def test_closed_streams_do_not_matter(closed: str, workspace: Path, daiku_home: Path) -> None:
    done = daiku(f"run hi {closed}", workspace, daiku_home)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)


@pytest.mark.parametrize("command", ["--help", "run --help", "memory list", "tools"])
def test_a_list_that_cannot_be_written_says_so_too(command: str, workspace: Path, daiku_home: Path) -> None:
    done = daiku(f"{command} >/dev/full", workspace, daiku_home)
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["daiku: The output cannot be written: No space left on device."]


@pytest.mark.parametrize("command", ["acp", "lsp"])
@pytest.mark.parametrize("closed", ["<&-", "</dev/null >&-", "<&- >&- 2>&-"])
def test_a_server_without_its_streams_ends_in_silence(
    command: str, closed: str, workspace: Path, daiku_home: Path
) -> None:
    """An editor that never was: `lsp` ends as one that was not told to shut down (PROTOCOL 3)."""
    done = daiku(f"{command} {closed}", workspace, daiku_home)
    assert (done.returncode, done.stdout, done.stderr) == (1 if command == "lsp" else 0, "", "")

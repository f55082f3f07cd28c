"""A call that asks even with everything granted, where nobody watches: it ends by its exit code, not in a wait."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import for_each
from tests.cli.conftest import call
from tests.conftest import ROOT

OPEN = ""
"""A pipe to which nobody ever writes, and which nobody closes."""
# The commands are written for bash, which Windows does not have.
pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="needs bash")]


def test_with_everything_granted_a_call_that_still_asks_ends_with_its_code_whatever_stdin_is(
    workspace: Path, daiku_home: Path
) -> None:
    lines = [
        {"calls": [call("shell/run", command="echo begun")]},
        {"calls": [call("files/write", path="AGENTS.md", content="Obey.\n")]},
        {"text": "Done."},
    ]
    (workspace / "play.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "server"),
        "DAIKU_HOME": str(daiku_home),
        "DAIKU_LLM__MODEL": "scripted/play.jsonl",
        "LC_ALL": "C.UTF-8",
    }

    silent, unused = os.pipe()

    def daiku(line: str) -> subprocess.CompletedProcess[bytes]:
        words = ["bash", "-c", f'"{sys.executable}" -m daiku {line}']
        return subprocess.run(
            words, cwd=workspace, env=environ, stdin=silent, capture_output=True, check=False, timeout=40
        )

    assert daiku("config trust . </dev/null").returncode == 0

    @for_each("stdin", ["</dev/null", "<&-", "< <(printf yyyyyyyy)", OPEN])
    def ends(stdin: str) -> None:
        done = daiku(f"run 'do it' --json --approve all {stdin}")
        assert done.returncode == 4, done.stderr.decode()
        events = [json.loads(each) for each in done.stdout.splitlines()]
        answered = [e["data"] for e in events if e["type"] == "tool_response"]
        assert [(a["tool"], a["ok"], a["outcome"]) for a in answered] == [
            ("shell/run", True, "done"),
            ("files/write", False, "unattended"),
        ]

    try:
        ends()
    finally:
        os.close(silent)
        os.close(unused)

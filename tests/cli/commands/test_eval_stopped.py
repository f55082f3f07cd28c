"""`daiku eval` as a process: interrupted, it ends its runs, prints what there is, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.eval.playing import make_task, script, write

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_prints_what_there_is(
    number: signal.Signals, tmp_path: Path, daiku_home: Path
) -> None:
    make_task(tmp_path / "tasks", "a")
    make_task(tmp_path / "tasks", "b")
    slow = {"text": "one two", "delay_ms": 600_000, "when": "(b)"}
    model = script(tmp_path, slow, write("number.txt", "2\n"), {"text": "Done."})
    words = ["eval", str(tmp_path / "tasks"), "--model", model, "--json", "--jobs", "1", "--trust-tasks"]
    process = subprocess.Popen(
        [sys.executable, "-m", "daiku", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "DAIKU_SANDBOX__MODE": "off"},
    )
    assert process.stderr is not None
    first = process.stderr.readline()
    assert first.startswith("[1/2] a A1 proved"), first
    until_asked(daiku_home)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    found = json.loads(out)
    assert [a["outcome"] for a in found["attempts"]] == ["proved", "stopped"]
    assert found["interrupted"]
    assert list((daiku_home / "evals").iterdir()) == []


def until_asked(home: Path) -> None:
    """Wait until the second run has a copy of its own."""
    while not list((home / "evals").glob("*/002/project/number.txt")):
        pass

"""`daiku worker --once` as cron starts it: two at a time, again and again, or with nothing to do."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from tests.work.test_worker import SLOW, SLOW_TREE, Lab, lab, until

pytestmark = pytest.mark.slow
__all__ = ["lab"]

ROUNDS = (10, 10, 10, 10, 10)
"""How many new items each round finds."""
SECONDS_OF_A_ROUND = 300
"""How long one may take."""
MOST_OF_A_START = 15.0
"""CPU time of a start with nothing to do, against that of a Python that loads what any command loads: about 7."""


def started_together(lab: Lab) -> list[dict[str, object]]:
    """What two workers told that were started at the same time; both end well."""
    both = [lab.start(*lab.once) for _ in range(2)]
    try:
        ends = [process.communicate(timeout=SECONDS_OF_A_ROUND) for process in both]
    finally:
        for process in both:
            process.kill()
    assert [process.returncode for process in both] == [0, 0], ends
    return [json.loads(line) for out, _ in ends for line in out.splitlines()]


@pytest.mark.slow(seconds=125)
def test_fifty_items_under_two_cron_starts_at_a_time_are_each_worked_once(lab: Lab) -> None:
    faulthandler.cancel_dump_traceback_later()  # each round has the time that a test has
    names: list[str] = []
    for count in ROUNDS:
        new = [f"mend{len(names) + number:02}" for number in range(count)]
        paths = [lab.item(name) for name in new]
        told = started_together(lab)
        assert sorted(str(each["item"]) for each in told) == [f"files:{name}" for name in new]
        assert {(each["state"], each["attempts"]) for each in told} == {("done", 1)}
        assert {path.read_text("utf-8").count("The work is done") for path in paths} == {1}
        names += new
    assert len(names) == 50
    assert started_together(lab) == []
    branches = lab.git("for-each-ref", "--format=%(refname:short)", "refs/heads/daiku").splitlines()
    assert branches == [f"daiku/{name}" for name in names]
    assert {lab.git("rev-list", "--count", f"main..{branch}") for branch in branches} == {"1"}
    assert lab.git("rev-list", "--count", "main") == "1"


def test_a_start_without_a_model_says_so_and_takes_no_item(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    path = lab.item("mend")
    before = path.read_text("utf-8")
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")
    monkeypatch.setenv("LMSTUDIO_BASE_URL", "http://127.0.0.1:1/v1")
    code, out, err = replace(lab, model="").daiku(*lab.once)
    assert (code, [json.loads(line)["type"] for line in out.splitlines()]) == (2, ["error"])
    assert "No model is available" in err
    assert path.read_text("utf-8") == before
    assert lab.shown("files:mend")["state"] == "queued"


def test_an_attempt_that_broke_off_is_tried_again_and_stands_in_the_log(lab: Lab) -> None:
    """B23.4"""
    lab.script(*SLOW)
    lab.item("slow")
    process = lab.start(*lab.once)
    until((lab.root / "home/items" / SLOW_TREE / "a.txt").exists)
    kill_attempts(lab)
    assert process.wait(timeout=60) == 0
    process.communicate()
    shown = lab.shown("files:slow")
    assert (shown["state"], shown["attempts"]) == ("done", 2)
    assert "files:slow: the attempt ended with" in (lab.root / "home/logs/daiku.log").read_text("utf-8")


def kill_attempts(lab: Lab) -> None:
    """Kill the processes of this lab in which agents run."""
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (place / "cmdline").read_bytes().split(b"\0")
            if b"--attempt" in words and str(lab.root / "repo").encode() in words:
                os.kill(int(place.name), signal.SIGKILL)


def cpu_of(lab: Lab, *argv: str) -> float:
    """The CPU time of a command that ends well, the processes that it started included; a busy machine does not change
    it much."""
    before = os.times()
    environ = {**os.environ, "DAIKU_HOME": str(lab.root / "home")}
    subprocess.run([sys.executable, *argv], cwd=lab.root / "repo", env=environ, check=True, timeout=120)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def test_a_start_with_nothing_to_do_costs_little(lab: Lab) -> None:
    cpu_of(lab, "-m", "daiku", *lab.once)
    floors = [cpu_of(lab, "-c", "import asyncio, click, pydantic, sqlite3") for _ in range(5)]
    ours = [cpu_of(lab, "-m", "daiku", *lab.once) for _ in range(5)]
    assert median(ours) < MOST_OF_A_START * median(floors), (ours, floors)

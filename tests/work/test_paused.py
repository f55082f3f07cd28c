"""Pausing from another process at several steps of real workers: heard within a second, no tool after it, resumed there."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.events import ToolCallEvent
from daiku.items.items import ItemStore
from daiku.store.sqlite import connect
from daiku.trace.journal import Journal
from tests.work.test_worker import Lab, lab, until

__all__ = ["lab"]
pytestmark = pytest.mark.slow
ITEM = "files:slow"


def gate(name: str) -> dict[str, Any]:
    """A command that ends when the test has made the file `name` in the item's tree."""
    command = f"touch at-{name}; until [ -e {name} ]; do sleep 0.05; done"
    return {"tool": "shell/run", "args": {"command": command}}


def write(name: str) -> dict[str, Any]:
    return {"tool": "files/write", "args": {"path": name, "content": "x\n"}}


STEPS: tuple[dict[str, Any], ...] = (
    {"text": "one", "calls": [gate("go1"), write("a.txt")]},
    {"text": "two", "delay_ms": 4000, "calls": [write("b.txt")]},
    {"text": "three", "calls": [gate("go3")]},
    {"text": "all written."},
)


class Elsewhere:
    """What another process sees of the home."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.items = ItemStore(connect(lab.root / "home/daiku.db", ""))
        self.journal = Journal(lab.root / "home/daiku.db")

    def wanted(self) -> str:
        record = self.items.record(ITEM)
        return record.wanted if record is not None else ""

    def state(self) -> str:
        record = self.items.record(ITEM)
        return record.shown.state if record is not None else ""

    def calls(self) -> list[tuple[str, str]]:
        """The tools that were begun, with the ids of their calls."""
        record = self.items.record(ITEM)
        session = record.shown.session_id if record is not None else ""
        chunks = self.journal.chunks(session) if session else []
        return [(c.event.tool, c.event.id) for c in chunks if isinstance(c.event, ToolCallEvent)]

    def tree(self) -> Path:
        (found,) = (self._lab.root / "home/items").iterdir()
        return found

    def pending(self) -> list[str]:
        """The calls that the paused item goes on with, as its context files say."""
        (folder,) = (self._lab.root / "home/contexts/paused").iterdir()
        lines = [json.loads(line) for line in (folder / "current.jsonl").read_text("utf-8").splitlines()]
        asked = [call["id"] for line in lines for call in line.get("tool_calls") or ()]
        answered = {line["tool_call_id"] for line in lines if line["role"] == "tool"}
        return [call for call in asked if call not in answered]


def by_name(lab: Lab, other: Elsewhere) -> None:
    other.items.ask(ITEM, "pause")
    began = time.monotonic()
    until(lambda: other.wanted() == "pausing" or other.state() == "paused")
    assert time.monotonic() - began < 1


def by_file(lab: Lab, other: Elsewhere) -> None:
    (lab.root / "home/contexts/pause_signal").touch()
    began = time.monotonic()
    until(lambda: other.wanted() == "halting" or other.state() == "paused")
    assert time.monotonic() - began < 1


def in_a_tool(other: Elsewhere) -> None:
    until(lambda: len(other.calls()) == 1 and (other.tree() / "at-go1").exists())


def while_the_model_is_asked(other: Elsewhere) -> None:
    in_a_tool(other)
    (other.tree() / "go1").touch()
    until((other.tree() / "a.txt").exists)


@pytest.mark.parametrize(
    ("step", "how", "left"),
    [(in_a_tool, by_name, "files/write"), (while_the_model_is_asked, by_file, "files/write")],
)
def test_a_paused_item_begins_nothing_more_and_goes_on_with_the_very_step_it_stood_before(
    step: Callable[[Elsewhere], None], how: Callable[[Lab, Elsewhere], None], left: str, lab: Lab
) -> None:
    """S2R.1, S2R.2, S2R.3, S2R.4, S2R.5, S2R.6, S2R.8"""
    lab.script(*STEPS)
    path = lab.item("slow")
    process = lab.start(*lab.once)
    until((lab.root / "home/daiku.db").exists)
    other = Elsewhere(lab)
    step(other)
    how(lab, other)
    heard = other.calls()
    (other.tree() / "go1").touch()
    assert process.wait(timeout=60) == 0
    process.communicate()
    assert other.state() == "paused"
    assert other.calls() == heard
    assert "coding agent paused" in path.read_text("utf-8")
    assert not (lab.root / "home/contexts/running").exists() or not any(
        (lab.root / "home/contexts/running").iterdir()
    )
    pending = other.pending()
    signal = lab.root / "home/contexts/pause_signal"
    if how is by_file:
        assert lab.work() == (0, [])
        assert signal.exists()
        signal.unlink()
    else:
        assert lab.work() == (0, [])
        assert lab.daiku("work", "resume", ITEM)[0] == 0
    (other.tree() / "go3").touch()
    code, told = lab.work()
    assert (code, told[-1]["state"]) == (0, "done")
    assert other.calls()[len(heard)] == (left, pending[0])
    assert [tool for tool, _ in other.calls()] == ["shell/run", "files/write", "files/write", "shell/run"]
    assert "coding agent done" in path.read_text("utf-8")


def test_the_command_says_that_the_pause_was_heard(lab: Lab) -> None:
    """S2R.2"""
    lab.script(*STEPS)
    lab.item("slow")
    process = lab.start(*lab.once)
    until((lab.root / "home/daiku.db").exists)
    other = Elsewhere(lab)
    in_a_tool(other)
    code, out, _ = lab.daiku("work", "pause", ITEM)
    assert (code, "no tool begins any more" in out) == (0, True)
    (other.tree() / "go1").touch()
    assert process.wait(timeout=60) == 0
    process.communicate()
    assert other.calls() == [other.calls()[0]]

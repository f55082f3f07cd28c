"""Pausing an item from elsewhere: it is heard within a second, no tool begins after that, and it goes on there."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.events import ToolCallEvent
from daiku.domain.items.item import ItemState
from daiku.items.contexts import files as files_module
from daiku.items.contexts.files import is_pause_wanted
from daiku.items.items import ItemStore
from daiku.items.record import ItemAction, Order
from daiku.store.sqlite import connect
from tests.work.contexts.desk import ITEM, Desk, desk, write
from tests.work.test_processing import failing_once

SLOW = (
    {"text": "one", "calls": [write("a.txt")]},
    {"text": "two", "delay_ms": 2000, "calls": [write("b.txt")]},
    {"text": "All done."},
)


def elsewhere(home: Path) -> ItemStore:
    """The items as another process opens them."""
    return ItemStore(connect(home / "daiku.db", ""))


async def until(holds: Any) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.01)


def calls(at: Desk) -> list[str]:
    session = at.record.shown.session_id
    return [c.event.id for c in at.app.journal.chunks(session) if isinstance(c.event, ToolCallEvent)]


async def test_a_pause_by_name_is_heard_within_a_second_and_its_step_is_the_one_that_comes_then(
    tmp_path: Path,
) -> None:
    """S2R.2, S2R.6: while the model is asked, the reply is kept, and its call waits for the resume."""
    async with desk(tmp_path, *SLOW) as at:
        other = elsewhere(at.home)
        working = asyncio.create_task(at.work())
        await until((tmp_path / "project/a.txt").exists)
        began = time.monotonic()
        other.ask(ITEM, "pause")
        await until(lambda: at.record.wanted == "pausing")
        assert time.monotonic() - began < 1
        heard = calls(at)
        assert (await working).status == "paused"
        assert calls(at) == heard
        assert not (tmp_path / "project/b.txt").exists()
        current = at.lines("running", "current.jsonl")
        assert current[-1]["tool_calls"][0]["function"]["name"] == "files__write"
        claim = at.items.claim(ITEM, "worker-1", only=("processing",))
        assert claim is not None
        at.items.change(claim, state="paused")
        other.ask(ITEM, "resume")
        assert (await at.work()).status == "completed"
        assert calls(at) == [*heard, current[-1]["tool_calls"][0]["id"]]
        assert (tmp_path / "project/b.txt").exists()


async def test_a_pause_is_heard_after_the_database_failed(tmp_path: Path) -> None:
    """S2R.2"""
    async with desk(tmp_path, *SLOW) as at:
        working = asyncio.create_task(at.work())
        await until((tmp_path / "project/a.txt").exists)
        with failing_once(ItemStore, "signal") as failed:
            elsewhere(at.home).ask(ITEM, "pause")
            assert (await working).status == "paused"
        assert failed
        assert at.record.wanted == "pausing"


@pytest.mark.parametrize("wanted", ["pause", "pausing", "halt", "halting", "give_back"])
async def test_a_pause_that_was_asked_before_the_run_begins_begins_nothing(
    wanted: Order, tmp_path: Path
) -> None:
    """S2R.2: at the beginning of a round, also the first."""
    async with desk(tmp_path, *SLOW) as at:
        claim = at.claim()
        at.items.signal(claim, wanted)
        assert (await at.work(claim)).status == "paused"
        assert at.record.run == ""
        assert at.record.wanted == ("pausing" if wanted == "pause" else wanted)
        assert (await at.work()).status == "completed"


async def test_a_step_that_takes_too_long_is_left_where_a_worker_has_to_be_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S2R.3: the process ends in the normal way, and the request to the model is made again."""
    monkeypatch.setattr("daiku.items.attempt.STEP_SECONDS", 0.1)
    slow = ({"text": "one", "delay_ms": 60_000, "calls": [write("a.txt")]}, {"text": "All done."})
    async with desk(tmp_path, *slow) as at:
        claim = at.claim()
        working = asyncio.create_task(at.work(claim))
        await until(lambda: at.record.run)
        at.items.signal(claim, "give_back")
        async with asyncio.timeout(20):
            assert (await working).status == "paused"
    async with desk(tmp_path, {"text": "one", "calls": [write("a.txt")]}, {"text": "All done."}) as at:
        assert (await at.work()).status == "completed"
        assert len(calls(at)) == 1


def paused(at: Desk, wanted: Order) -> None:
    """The item was worked, and is paused on this word."""
    claim = at.claim()
    at.items.signal(claim, wanted)
    at.items.change(claim, state="paused")


@pytest.mark.parametrize(
    ("wanted", "after"), [("halt", "queued"), ("halting", "queued"), ("pausing", "paused")]
)
async def test_what_the_file_paused_goes_on_when_it_is_gone_and_what_a_person_paused_does_not(
    wanted: Order, after: ItemState, tmp_path: Path
) -> None:
    """S2R.1, S2R.4, S2R.5: the file is only looked at; a person makes and deletes it."""
    async with desk(tmp_path, *SLOW) as at:
        paused(at, wanted)
        signal = at.home / "contexts/pause_signal"
        signal.parent.mkdir(parents=True)
        signal.write_text("2026-01-02T03:04:05Z")
        at.files.refresh()
        assert at.record.shown.state == "paused"
        assert is_pause_wanted(at.home)
        signal.unlink()
        at.files.refresh()
        assert at.record.shown.state == after


async def test_what_is_paused_for_thirty_days_is_not_taken_up_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """S2R.5, S2R.9, S2R.10, S2R.11: it is told in the log, and a person may still resume or cancel it."""
    caplog.set_level("INFO")
    async with desk(tmp_path, *SLOW) as at:
        paused(at, "halt")
        monkeypatch.setattr(files_module, "KEPT_DAYS", -1)
        at.files.refresh()
        assert at.record.shown.state == "paused"
        assert ITEM in caplog.text
        assert at.items.ask(ITEM, "cancel").state == "stopped"


@pytest.mark.parametrize(
    ("first", "then", "after"),
    [
        ("", "pause", "pause"),
        ("pausing", "pause", "pause"),
        ("halt", "pause", "pause"),
        ("pausing", "cancel", "cancel"),
    ],
)
async def test_a_persons_word_counts_whatever_was_wanted_before(
    first: Order, then: ItemAction, after: Order, tmp_path: Path
) -> None:
    async with desk(tmp_path, *SLOW) as at:
        claim = at.claim()
        at.items.signal(claim, first)
        at.items.ask(ITEM, then)
        assert at.record.wanted == after
        at.items.signal(claim, "give_back", after="")
        assert at.record.wanted == after, "a worker that stops takes back no word of a person"

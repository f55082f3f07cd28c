"""A worker that stands still between the intent on record and the call that it is for, and wakes up when all is over."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from daiku.store.postgres import PostgresDatabase
from tests.postgres import NewDatabase
from tests.work.gitlabfake.server import Fault
from tests.work.gitlabflow import until
from tests.work.passing import let_time_pass
from tests.work.test_killed import (
    End,
    Starts,
    children,
    desks_of,
    end_of,
    go_on,
    is_at,
    is_over,
    started,
    stop,
    undisturbed,
    yard_of,
)

__all__ = ["started", "undisturbed"]
pytestmark = pytest.mark.slow


def is_under_way(url: str, operation: str) -> bool:
    """Whether the operation is on record as one whose call goes out."""
    database = PostgresDatabase(url)
    try:
        sql = "SELECT 1 FROM work_intents WHERE operation = ? AND status = 'sent'"
        return database.first(sql, (operation,)) is not None
    finally:
        database.close()


@pytest.mark.slow(seconds=40)
def test_a_machine_that_stood_still_before_its_call_does_not_make_it_when_it_wakes_up(
    undisturbed: End, tmp_path: Path, postgres: NewDatabase, started: Starts
) -> None:
    """R2.45: it has read the comments and is about to write that a step is done; by then all five are."""
    with yard_of(tmp_path / "gitlab") as yard:
        url = postgres()
        one, two = desks_of(tmp_path, yard, url)
        stopped: list[int] = []
        running: list[subprocess.Popen[str]] = []

        def stand_still(method: str, path: str) -> Fault | None:
            looks = method == "GET" and path.endswith("/notes") and is_at(yard, 1)
            if running and not stopped and looks and is_under_way(url, "progress"):
                stopped.extend(stop(running[0], whole=True))
            return None

        yard.forge.fault = stand_still
        running.append(started(one))
        until(lambda: bool(stopped))
        let_time_pass(url)
        running.append(started(two))
        until(lambda: is_over(yard))
        changes = len(yard.forge.calls("changes"))
        go_on(stopped)
        until(lambda: not children(running[0].pid))
        for process in running:
            process.terminate()
            assert process.wait(timeout=30) == 0
        assert len(yard.forge.calls("changes")) == changes
        assert end_of(two) == undisturbed

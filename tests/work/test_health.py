"""What a worker tells of itself: is it at work, what is under way, what did its last look meet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from time import time

import pytest

from daiku.domain.items.item import ItemKey
from daiku.items.workers.alive import (
    LATE_SECONDS,
    LOOK_SECONDS,
    WorkerHealth,
    drop_health,
    get_lock_path,
    read_healths,
    register_worker,
    write_health,
)
from daiku.texts.text import text
from tests.cases import for_each
from tests.conftest import ROOT

NOW = 1_000_000.0
ITEM = str(ItemKey(source="files", kind="file", name="mend"))


def health(
    worker: str = "worker-1", *, started: float = NOW - 5000, at: float = NOW, looked: float = NOW
) -> WorkerHealth:
    return WorkerHealth(
        worker=worker,
        started_at=started,
        at=at,
        looked_at=looked,
        poll_seconds=60,
        under_way=(ITEM,),
        error=text("work.broke_off"),
    )


@for_each(
    ("shown", "well"),
    [
        (health(), True),
        (health(at=NOW - LATE_SECONDS), True),
        (health(at=NOW - LATE_SECONDS - 1), False),
        (health(looked=NOW - LOOK_SECONDS), True),
        (health(looked=NOW - LOOK_SECONDS - 61), False),
        (health(looked=0, started=NOW - 100), True),
        (health(looked=0, started=NOW - 5000), False),
    ],
)
def test_a_worker_is_well_as_long_as_it_writes_and_looks(shown: WorkerHealth, *, well: bool) -> None:
    assert shown.is_well(NOW) is well


def test_what_is_written_is_read_again_sentences_as_values(tmp_path: Path) -> None:
    name, lock = register_worker(tmp_path)
    write_health(tmp_path, health(name))
    (read,) = read_healths(tmp_path)
    assert read == health(name)
    assert read.error.id == "work.broke_off"
    drop_health(tmp_path, name)
    assert read_healths(tmp_path) == ()
    lock.release()


def test_the_file_of_a_process_that_has_ended_tells_nothing(tmp_path: Path) -> None:
    name, lock = register_worker(tmp_path)
    write_health(tmp_path, health(name))
    lock.release()
    assert read_healths(tmp_path) == ()
    get_lock_path(tmp_path, name).unlink()
    assert read_healths(tmp_path) == ()
    assert not get_lock_path(tmp_path, name).exists()


def test_half_a_file_and_a_home_without_workers_tell_nothing(tmp_path: Path) -> None:
    assert read_healths(tmp_path) == ()
    name, lock = register_worker(tmp_path)
    (tmp_path / f"workers/{name}.json").write_text('{"worker":', "utf-8")
    assert read_healths(tmp_path) == ()
    lock.release()


def asked(home: Path, *argv: str) -> tuple[int, str, str]:
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "server"), "DAIKU_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-m", "daiku", "worker", "--health", *argv],
        cwd=home,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_the_command_tells_it_and_ends_with_0_only_where_all_is_well(tmp_path: Path) -> None:
    code, out, err = asked(tmp_path)
    assert (code, out) == (1, "")
    assert "No worker runs" in err
    name, lock = register_worker(tmp_path)
    write_health(tmp_path, health(name))
    assert asked(tmp_path)[0] == 1  # it was written long ago
    now = time()
    write_health(tmp_path, health(name, started=now, at=now, looked=now))
    code, out, _ = asked(tmp_path)
    assert code == 0
    assert f"{name} is at work" in out
    assert "The work broke off" in out
    shown = json.loads(asked(tmp_path, "--json")[1])
    assert (shown["worker"], shown["underWay"], shown["texts"]["error"]["id"]) == (
        name,
        [ITEM],
        "work.broke_off",
    )
    lock.release()

"""Several processes write to one playbook, and one is killed at any statement: nothing is lost, halved or given twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from daiku.playbook.store import PlaybookStore
from daiku.store.opening import open_tables
from tests.playbook.changed import add, bullet
from tests.playbook.conftest import OpenPlaybook
from tests.playbook.otherprocess import SEEN, SHARED, STEPS

pytestmark = pytest.mark.slow
CHANGES = 1_000


def started(*argv: object) -> subprocess.Popen[bytes]:
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.playbook.otherprocess", *map(str, argv)],
        env=given,
        stderr=subprocess.PIPE,
    )


def ended(process: subprocess.Popen[bytes]) -> None:
    said = process.communicate()[1].decode()
    assert process.returncode == 0, said


def test_two_processes_with_a_thousand_changes_each_lose_none(
    open_playbook: OpenPlaybook, database: Path | str
) -> None:
    """No update is lost, no id is given twice, and all of it is on record."""
    store = open_playbook()
    assert (add(store, "Shared."), add(store, "Observed.")) == (SHARED, SEEN)
    before = store.revision()
    for process in [started("write", database, name, CHANGES) for name in ("one", "two")]:
        ended(process)
    made = store.deltas()
    assert len({each.id for each in made}) == len(made) == 2 + 2 * CHANGES * 3 // 4
    added = [each.bullet_id for each in made if each.type == "add"]
    assert len(set(added)) == len(added) == 2 + CHANGES
    bullets = store.load().bullets
    assert sorted(each.id for each in bullets) == sorted(added)
    assert store.versions([SHARED]) == {SHARED: 1 + CHANGES // 2}
    assert bullet(store, SEEN).helpful == CHANGES // 2 == len(store.observations(bullet=SEEN))
    changes = store.history(SHARED)
    for earlier, later in pairwise(changes):
        assert later.before[0].content == earlier.after[0].content, "a change was made from an older text"
    assert changes[-1].after[0].content == bullet(store, SHARED).content
    assert store.revision() == before + 2 * CHANGES * 5 // 4  # what is proposed and accepted are two changes


def everything(store: PlaybookStore) -> tuple[str, ...]:
    """All that is known of a playbook, but for times."""
    times = {"created_at", "updated_at", "decided_at"}
    shown = [each.model_dump_json(exclude=times) for each in store.load().bullets]
    shown += [
        each.model_dump_json(
            exclude={**dict.fromkeys(times, True), "before": {"__all__": times}, "after": {"__all__": times}}
        )
        for each in store.deltas()
    ]
    return (*shown, *map(repr, store.observations()), str(store.revision()))


@pytest.mark.slow(seconds=35)
def test_a_process_that_is_killed_at_any_statement_leaves_a_whole_change_or_none(
    open_playbook: OpenPlaybook, database: Path | str, tmp_path: Path
) -> None:
    """`kill -9` before each statement: what is there is what the steps that ended left, or one more; and the rest of
    them leads to the same end."""
    memory = PlaybookStore(open_tables(None, ""), "repository", "here")
    expected = [everything(memory)]
    for step in STEPS:
        step(memory)
        expected.append(everything(memory))
    done = tmp_path / "done"
    done.touch()
    process = started("die", database, done)
    ended(process)
    steps = Counter(line.split()[0] for line in done.read_text().splitlines())
    killed = max(map(int, steps))
    assert killed > 5 * len(STEPS), "hardly any statement was struck"
    opened = open_playbook()._database
    for number in range(1, killed + 1):
        store = PlaybookStore(opened, "repository", f"key{number}")
        saw, there = steps[str(number)], everything(store)
        assert there in expected[saw : saw + 2], f"killed at statement {number} after {saw} steps"
        for step in STEPS[expected.index(there, saw) :]:
            step(store)
        assert everything(store) == expected[-1]

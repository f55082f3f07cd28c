"""What nested runs show, counted once over resume, replay, forks and late undo: the last word holds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.events import InputAsked
from daiku.domain.held import Lesson
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from tests.playbook.test_learning import MAKE, NAMED, Place

HAND: dict[str, Any] = {"tool": "agent/handoff", "args": {"agent": "coordinator", "request": "make the file"}}
ASKS: dict[str, Any] = {"tool": "ask_user", "args": {"question": "Which?"}}


@pytest.fixture
def place(tmp_path: Path, database: Path | str) -> Place:
    return Place(tmp_path, database)


def verdicts(place: Place, lesson: Lesson) -> list[str]:
    """What is kept of the lesson, sorted; never two of one run."""
    seen = place.store.observations(bullet=lesson.id)
    assert len({each.run for each in seen}) == len(seen)
    return sorted(each.verdict for each in seen if each.verdict != "neutral")


async def test_a_nested_runs_change_is_counted_once_and_a_late_undo_turns_it(place: Place) -> None:
    """Point 4 of issue 12, C3.5: resumed in the middle of the nested run, replayed, forked twice, undone in a fork by
    another process, brought back."""
    app = place.app(HAND, ASKS, MAKE, NAMED, "All made.")
    lesson = place.teach("Keep files short.")
    running = asyncio.create_task(app.runs.run(RunRequest("make it"), place.watch))
    asked = await place.watch.until("input_asked")
    assert asked.parent is not None
    top = place.watch.chunks[0].run
    await app.runs.pause(top)
    await running
    await app.runs.learner.settle()
    assert place.store.observations() == ()
    assert isinstance(asked.event, InputAsked)
    await app.runs.answer(top, asked.event.input_id, "this")
    await app.runs.resume(top, place.watch)
    result = await app.runs.resume(top, place.watch)
    await app.runs.learner.settle()
    assert (result.status, (place.folder / "project/new.txt").exists()) == ("completed", True)
    before = verdicts(place, lesson)
    assert set(before) == {"helpful"}
    session = result.session_id
    revision = place.store.revision()
    assert (await replay(app.journal.chunks(session))).difference is None
    first = (await app.reviews.fork(session, 10_000)).session_id
    second = (await app.reviews.fork(first, 10_000)).session_id
    assert (await replay(app.journal.chunks(second))).difference is None
    for name in (session, first, second):
        app.runs.learner.learn(name)
    await app.runs.learner.settle()
    assert (verdicts(place, lesson), place.store.revision()) == (before, revision)
    await place.close(app)
    later = place.app()
    back = await later.reviews.undo(second)
    await later.runs.learner.settle()
    assert set(verdicts(place, lesson)) == {"harmful"}
    assert len(verdicts(place, lesson)) == len(before)
    for name in (session, first):
        later.runs.learner.learn(name)
    await later.runs.learner.settle()
    assert set(verdicts(place, lesson)) == {"harmful"}, "an older record does not take the last word back"
    await later.reviews.restore(back.redo)
    await later.runs.learner.settle()
    assert verdicts(place, lesson) == before
    assert (await replay(later.journal.chunks(second))).difference is None
    await place.close(later)


async def test_a_fork_within_a_nested_run_counts_nothing_of_its_own(place: Place) -> None:
    """What was copied half is the work of the run that it was copied from."""
    app = place.app(HAND, MAKE, NAMED, "All made.")
    lesson = place.teach("Keep files short.")
    result = await app.runs.run(RunRequest("make it"), place.watch)
    await app.runs.learner.settle()
    before = place.store.observations()
    assert set(verdicts(place, lesson)) == {"helpful"}
    chunks = app.journal.chunks(result.session_id)
    for chunk in [c for c in chunks if c.parent is not None]:
        fork = (await app.reviews.fork(result.session_id, chunk.seq)).session_id
        app.runs.learner.learn(fork)
        if chunk.type != "message":
            assert (await replay(app.journal.chunks(fork))).difference is None
    await app.runs.learner.settle()
    assert place.store.observations() == before
    await place.close(app)

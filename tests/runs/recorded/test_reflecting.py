"""A model looks at a run that has ended: what it says is proposed, what it costs is on record, nobody waits for it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from daiku.app import App
from daiku.domain.chunks import Chunk
from daiku.domain.events import Notice, RunFinished
from daiku.domain.held import Bullet, Reflected
from daiku.domain.messages import Usage
from daiku.testing import FakeReply
from tests.runs.playing import shell
from tests.runs.recorded.looked_at import (
    FAILED,
    INSIGHT,
    Place,
    added,
    asked_by,
    curated,
    reflected,
    store_of,
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def contents(app: App, *statuses: Any) -> list[str]:
    return [each.content for each in store_of(app).deltas(*statuses)]


def said(chunks: list[Chunk]) -> list[str]:
    """What the person was told."""
    return [str(each.event.text) for each in chunks if isinstance(each.event, Notice)]


async def test_what_a_model_saw_in_a_run_is_proposed_with_the_place_that_it_was_drawn_from(
    place: Place,
) -> None:
    """B3.3, B3.4."""
    app = place.app(FAILED, "It does not work.", reflected(INSIGHT), curated(added(INSIGHT)))
    chunks = await place.worked(app)
    (made,) = store_of(app).deltas()
    assert (made.type, made.content, made.section, made.origin) == ("add", INSIGHT, "environment", "model")
    assert (made.status, made.why) == ("proposed", "insight")
    end = next(c for c in chunks if c.type == "run_finished" and c.parent is None)
    assert [(each.run_id, each.seq) for each in made.evidence] == [(end.run, end.seq)]
    assert [each.event.content for each in chunks if isinstance(each.event, Bullet)] == [INSIGHT]
    await app.aclose()


async def test_what_it_cost_is_on_record_apart_from_the_run_that_it_looked_at(place: Place) -> None:
    app = place.app(FAILED, "It does not work.", reflected(INSIGHT), curated(added(INSIGHT)))
    chunks = await place.worked(app)
    top = next(c for c in chunks if c.parent is None)
    looks = [c for c in chunks if c.agent in ("reflector", "curator")]
    assert [c.agent for c in looks if isinstance(c.event, Usage)] == ["reflector", "curator"]
    assert {c.parent for c in looks} == {top.run}
    assert len({c.run for c in looks}) == 2
    assert [c.event.status for c in looks if isinstance(c.event, RunFinished)] == ["completed", "completed"]
    own = next(c.event for c in chunks if isinstance(c.event, RunFinished) and c.parent is None)
    used = [c.event for c in chunks if isinstance(c.event, Usage) and c.parent is None]
    assert own.usage.prompt_tokens == sum(each.prompt_tokens for each in used)
    (kept,) = [c.event for c in looks if isinstance(c.event, Reflected)]
    assert (kept.reflection.reasoning, kept.reflection.insights) == ("It failed.", (INSIGHT,))
    again = await app.runs.resume(top.run, place.watch)
    assert again.usage == own.usage
    await app.aclose()


async def test_the_model_is_shown_the_run_and_the_lessons_that_it_was_told(place: Place) -> None:
    """ACE: the Reflector sees the trajectory, its feedback, and the bullets that were used."""
    app = place.app(
        shell("echo seen-by-the-run; false"),
        "Not by [tu-00001].",
        reflected(INSIGHT),
        curated(added(INSIGHT)),
    )
    lesson = place.teach(app, "Ask twice.")
    await place.worked(app, "make the tests pass")
    looked, kept = asked_by(place)
    words = str(looked.messages[0].text)
    for part in (
        "make the tests pass",
        "seen-by-the-run",
        "Exit code 1",
        f"[{lesson.id}] Ask twice.",
        "cited",
    ):
        assert part in words
    assert [each.name for each in looked.tools] == ["report/reflection"]
    assert INSIGHT in str(kept.messages[0].text)
    assert f"[{lesson.id}] (tool_usage) Ask twice." in str(kept.messages[0].text)
    await app.aclose()


@pytest.mark.parametrize(
    ("trusted", "settings"),
    [(True, {"enabled": False}), (True, {"learn": "off"}), (True, {"reflections": 0}), (False, {})],
    ids=["disabled", "learn off", "no reflections", "untrusted"],
)
async def test_no_model_is_asked_where_nothing_may_be_learnt_by_one(
    place: Place, *, trusted: bool, settings: dict[str, Any]
) -> None:
    place.trusted = trusted
    app = place.app(FAILED, "It does not work.", reflected(INSIGHT), **settings)
    chunks = await place.worked(app)
    assert asked_by(place) == []
    assert [c for c in chunks if c.agent == "reflector"] == []
    assert said(chunks) == []
    assert contents(app) == []
    await app.aclose()


async def test_a_run_that_went_straight_to_its_end_is_not_looked_at(place: Place) -> None:
    """B3.3: A model costs; where nothing failed, was refused, cited or left unverified there is little to see."""
    app = place.app(shell("true"), "Done.", reflected(INSIGHT))
    place.teach(app, "Ask twice.")
    await place.worked(app, "run true")
    assert asked_by(place) == []
    await app.aclose()


async def test_a_cancelled_run_is_not_looked_at(place: Place) -> None:
    async def stopped(_: object) -> str:
        app.runs.begin_cancel(place.watch.chunks[0].run)
        await asyncio.Event().wait()
        return "Never."

    app = place.app(FAILED, stopped, reflected(INSIGHT))
    await place.worked(app)
    assert len(place.llm.requests) == 2
    await app.aclose()


async def test_a_model_looks_again_with_what_it_said_until_it_says_the_same(place: Place) -> None:
    """B3.3: refinement, bounded by the setting."""
    better = "Start the database with make db before the tests."
    app = place.app(
        FAILED, "No.", reflected(INSIGHT), reflected(better), reflected(better), curated(added(better)),
        reflections=5,
    )  # fmt: skip
    await place.worked(app)
    first, second, third, _ = asked_by(place)
    assert INSIGHT not in str(first.messages[0].text)
    assert INSIGHT in str(second.messages[0].text)
    assert better in str(third.messages[0].text)
    assert contents(app) == [better]
    await app.aclose()


NOTHING: list[tuple[str, list[FakeReply]]] = [
    ("words", ["I would rather not.", "I would rather not.", "I would rather not."]),
    ("other fields", [{"tool": "report/reflection", "args": {"tags": 7}}] * 3),
    ("an unknown call", [shell("rm -rf /")]),
    ("too long", [reflected("x" * 1_000_000)]),
    ("silence", [""]),
    ("a failure", []),
]


@pytest.mark.parametrize("case", NOTHING, ids=[each[0] for each in NOTHING])
async def test_where_no_model_says_what_can_be_read_rules_learn_and_it_is_said_once(
    place: Place, case: tuple[str, list[FakeReply]]
) -> None:
    """A command that passes in place of one that failed is a lesson by rule; the model's reply is none."""
    (place.folder / "project" / "all-tests").write_text("#!/bin/sh\nexit 0\n")
    (place.folder / "project" / "all-tests").chmod(0o755)
    app = place.app(shell("./run-tests"), shell("./all-tests"), FAILED, "Done.", *case[1])
    chunks = await place.worked(app)
    assert [each.why for each in store_of(app).deltas()] == ["command_replaced"]
    (notice,) = said(chunks)
    assert "learns lessons only by rules" in notice
    assert not [c for c in chunks if isinstance(c.event, Reflected)]
    place.say(FAILED, "No.", *case[1])
    assert said(await place.worked(app)) == []
    assert len(asked_by(place)) <= 8
    await app.aclose()


async def test_where_the_curator_does_not_answer_each_insight_is_a_lesson_of_its_own(place: Place) -> None:
    app = place.app(FAILED, "No.", reflected(INSIGHT, "Keep the port free."))
    chunks = await place.worked(app)
    assert contents(app, "proposed") == [INSIGHT, "Keep the port free."]
    assert said(chunks) == []
    await app.aclose()


async def test_lessons_that_the_model_was_not_shown_are_neither_judged_nor_changed(place: Place) -> None:
    """B3.4: an unknown id is skipped; what was to change one adds a lesson."""
    tags = [{"id": "tu-99999", "tag": "harmful"}, {"id": "x", "tag": "helpful"}]
    app = place.app(
        FAILED, "No.", reflected(INSIGHT, tags=tags),
        curated(
            {"type": "UPDATE", "id": "tu-99999", "content": INSIGHT, "section": "environment"},
            {"type": "REMOVE", "id": "tu-99999"},
            {"type": "MERGE", "ids": ["tu-99999", "tu-99998"], "content": "Both."},
        ),
    )  # fmt: skip
    chunks = await place.worked(app)
    (kept,) = [c.event for c in chunks if isinstance(c.event, Reflected)]
    assert kept.reflection.tags == ()
    assert [(each.type, each.content) for each in store_of(app).deltas()] == [("add", INSIGHT)]
    await app.aclose()


async def test_an_update_a_merge_and_a_removal_wait_for_the_person_also_where_learning_is_automatic(
    place: Place,
) -> None:
    """B3.4: what a model says of lessons is carried out by nobody but code and a person."""
    app = place.app(FAILED, "No.", reflected(INSIGHT), learn="auto")
    one, other, third = (
        place.teach(app, said) for said in ("Ask twice.", "Ask the person twice.", "Use tabs.")
    )
    merge = {"type": "MERGE", "ids": [one.id, other.id], "content": "Ask the person two times."}
    place.say(FAILED, "No.", reflected(INSIGHT), curated(merge, {"type": "REMOVE", "id": third.id}))
    await place.worked(app)
    waiting = store_of(app).deltas("proposed")
    assert [(each.type, each.bullet_id, each.bullet_ids) for each in waiting] == [
        ("merge", one.id, (other.id,)),
        ("remove", third.id, ()),
    ]
    assert [each.active for each in store_of(app).load().bullets] == [True, True, True]
    for each in waiting:
        store_of(app).reject(each.id)
    app.runs.learner.learn(place.watch.chunks[0].session)
    await app.runs.learner.settle()
    assert store_of(app).deltas("proposed") == ()
    await app.aclose()


async def test_what_was_learnt_from_a_look_is_learnt_once_also_by_another_process(place: Place) -> None:
    app = place.app(FAILED, "No.", reflected(INSIGHT), curated(added(INSIGHT)))
    chunks = await place.worked(app)
    store_of(app).reject(store_of(app).deltas()[0].id)
    await app.aclose()
    later = place.app()
    later.runs.learner.learn(chunks[0].session, chunks[0].run)
    await later.runs.learner.settle()
    assert place.llm.requests == []
    assert contents(later, "proposed") == []
    assert len(contents(later)) == 1
    await later.aclose()

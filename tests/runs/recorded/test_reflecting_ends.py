"""How a model's look at a run ends: within its budget and its time, with the process, and once."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from daiku.app import App
from daiku.domain.chunks import Chunk
from daiku.domain.events import Notice
from daiku.domain.held import Reflected
from daiku.domain.messages import Usage
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
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


def looks(chunks: list[Chunk]) -> list[str]:
    return [c.agent for c in chunks if isinstance(c.event, Usage) and c.parent is not None]


async def begun(place: Place, app: App, reached: asyncio.Event) -> str:
    """A run has ended, and the model that looks at it is being asked."""
    result = await app.runs.run(RunRequest("try it", approvals="none", attended=False), place.watch)
    async with asyncio.timeout(20):
        await reached.wait()
    return result.session_id


async def test_a_budget_that_is_reached_midway_keeps_what_was_seen(place: Place) -> None:
    """The Reflector's reply is within the budget, the Curator's request is not: each insight is a lesson of its own."""
    app = place.app(FAILED, "No.", reflected(INSIGHT), curated(added("Never asked.")))
    used = [c.event for c in await place.worked(app) if isinstance(c.event, Usage) and c.agent == "reflector"]
    await app.aclose()
    spent = used[0].prompt_tokens + used[0].completion_tokens
    other = Place(place.folder / "other")
    app = other.app(
        FAILED, "No.", reflected(INSIGHT), curated(added("Never asked.")), reflection_tokens=spent + 20
    )
    chunks = await other.worked(app)
    assert len(asked_by(other)) == 1
    assert looks(chunks) == ["reflector"]
    assert [each.content for each in store_of(app).deltas("proposed")] == [INSIGHT]
    await app.aclose()


async def test_a_budget_that_is_too_small_asks_no_model_and_says_so(place: Place) -> None:
    """B3.3."""
    app = place.app(FAILED, "No.", reflected(INSIGHT), reflection_tokens=1)
    chunks = await place.worked(app)
    assert asked_by(place) == []
    (notice,) = [str(c.event.text) for c in chunks if isinstance(c.event, Notice)]
    assert "reflection_tokens" in notice
    await app.aclose()


async def test_the_end_of_the_program_drops_what_a_model_is_still_asked(place: Place) -> None:
    """B3.3: Nobody waits for it: what is dropped is not made up, and the session can be gone on with."""
    reached = asyncio.Event()

    async def never(_: object) -> str:
        reached.set()
        await asyncio.Event().wait()
        return "Never."

    app = place.app(FAILED, "No.", never)
    session = await begun(place, app, reached)
    before = time.monotonic()
    await app.aclose()
    assert time.monotonic() - before < 5
    later = place.app("Fine.")
    assert looks(later.journal.chunks(session)) == []
    again = await later.runs.run(RunRequest("go on", session=session, approvals="none"), place.watch)
    assert again.status == "completed"
    await later.runs.learner.settle()
    assert asked_by(place) == []
    await later.aclose()


async def test_what_was_seen_before_the_program_ended_is_made_up_by_the_next_one_and_counted_once(
    place: Place,
) -> None:
    """B3.3: The Reflector has answered, the Curator has not: the cost and the insight are on record, and learnt later."""
    reached = asyncio.Event()

    async def never(_: object) -> str:
        reached.set()
        await asyncio.Event().wait()
        return "Never."

    app = place.app(FAILED, "No.", reflected(INSIGHT), never)
    session = await begun(place, app, reached)
    await app.aclose()
    later = place.app("Fine.")
    kept = later.journal.chunks(session)
    assert looks(kept) == ["reflector"]
    assert len([c for c in kept if isinstance(c.event, Reflected)]) == 1
    for _ in range(2):
        later.runs.learner.learn(session, kept[0].run)
        await later.runs.learner.settle()
    assert [each.content for each in store_of(later).deltas()] == [INSIGHT]
    assert asked_by(place) == []
    await later.aclose()


async def test_a_model_that_takes_too_long_is_left(place: Place) -> None:
    async def never(_: object) -> str:
        await asyncio.Event().wait()
        return "Never."

    app = place.app(FAILED, "No.", never, reflection_seconds=1)
    chunks = await place.worked(app)
    (notice,) = [str(c.event.text) for c in chunks if isinstance(c.event, Notice)]
    assert "reflection_seconds" in notice
    await app.aclose()


async def test_the_answer_is_there_before_the_model_is_asked_and_the_next_run_does_not_wait_for_it(
    place: Place,
) -> None:
    """What the look cost belongs to the run that was looked at, not to the one that is under way by then."""
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: object) -> object:
        reached.set()
        await go_on.wait()
        return reflected()

    async def working(_: object) -> str:
        go_on.set()
        while not looks(app.journal.chunks(session)):
            await asyncio.sleep(0.01)
        return "Done."

    app = place.app(FAILED, "No.", slow, working)
    session = await begun(place, app, reached)
    result = await app.runs.run(RunRequest("more", session=session, approvals="none"), place.watch)
    assert result.status == "completed"
    await app.runs.learner.settle()
    chunks = app.journal.chunks(session)
    first = next(c.run for c in chunks if c.parent is None)
    assert {c.parent for c in chunks if c.agent == "reflector"} == {first}
    own = [c.event for c in chunks if isinstance(c.event, Usage) and c.run == result.run_id]
    assert result.usage.prompt_tokens == sum(each.prompt_tokens for each in own)
    await app.aclose()


async def test_where_runs_follow_one_another_in_a_standing_loop_the_last_one_is_looked_at_at_the_end(
    place: Place,
) -> None:
    """A chat on the terminal: while a person types nothing goes on, so nothing is asked before the end."""
    app = place.app(FAILED, "No.", FAILED, "No.", reflected(INSIGHT), curated(added(INSIGHT)))
    app.runs.learner.defers_reflections = True
    first = await app.runs.run(RunRequest("one", approvals="none", attended=False), place.watch)
    await app.runs.learner.settle(reflections=False)
    request = RunRequest("two", session=first.session_id, approvals="none", attended=False)
    second = await app.runs.run(request, place.watch)
    await app.runs.learner.settle(reflections=False)
    assert asked_by(place) == []
    await app.runs.learner.settle()
    (made,) = store_of(app).deltas()
    assert [each.run_id for each in made.evidence] == [second.run_id]
    await app.aclose()


@pytest.mark.parametrize("answers", [True, False], ids=["a look", "a look that failed"])
async def test_a_session_with_a_look_replays_folds_and_forks_as_it_did_without(
    place: Place, *, answers: bool
) -> None:
    """The look is no work of the run: what the session is told next, and what it used, are the same."""
    replies = (reflected(INSIGHT), curated(added(INSIGHT))) if answers else ()
    app = place.app(FAILED, "No.", *replies)
    chunks = await place.worked(app)
    assert (looks(chunks) == ["reflector", "curator"]) == answers
    again = await replay(chunks)
    assert again.difference is None
    assert again.nested == 0
    place.say("Going on.")
    more = await app.runs.run(RunRequest("and now", session=chunks[0].session, approvals="none"), place.watch)
    assert more.status == "completed"
    told = [str(each.text) for each in place.llm.requests[-1].messages if each.role == "user"]
    assert INSIGHT not in "".join(told)
    await app.aclose()

"""What the playbooks of a repository and of its person say of a request: the best first, whole, within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from daiku.domain.held import Lesson
from daiku.domain.playbook import BulletHit, Playbook, SearchQuery
from daiku.models.tokens import estimate
from daiku.playbook.playbooks import LONGEST_QUESTION, KeepsBullets, PlaybookPair, Playbooks
from daiku.run.rules.state.lessons import render_lessons
from daiku.settings.config import PlaybookSettings
from tests.playbook.told import ByWords, Held, bullet, playbooks

TESTS = bullet("bat-00001", "run the tests with make check")
LINT = bullet("bat-00002", "run the linter")
MINE = bullet("mypc-00001", "write the tests in English")
WEB = bullet("pac-00001", "pages are rendered by jinja")


def ids(lessons: Sequence[Lesson]) -> list[str]:
    return [each.id for each in lessons]


async def test_what_fits_is_told_the_best_first_from_both_playbooks() -> None:
    """B3.2, R3.46: a lesson is an id, a version and a text."""
    found = await playbooks(Held(LINT, TESTS, WEB, version=3), Held(MINE)).recall("run the tests")
    assert found[0] == Lesson(id="bat-00001", version=3, text=TESTS.content)
    assert ids(found) == ["bat-00001", "bat-00002", "mypc-00001"]


async def test_where_others_read_along_nothing_of_the_persons_own_is_told() -> None:
    both = playbooks(Held(TESTS), Held(MINE))
    assert ids(await both.recall("run the tests", personal=False)) == ["bat-00001"]
    assert ids([each.lesson for each in await both.search("tests", personal=False)]) == ["bat-00001"]


async def test_a_workspace_without_a_playbook_has_that_of_the_person() -> None:
    assert ids(await playbooks(None, Held(MINE)).recall("the tests")) == ["mypc-00001"]


async def test_no_more_than_top_k_are_told_of_both_together() -> None:
    """R3.46, B3.2."""
    many = Held(*(bullet(f"bat-{n:05}", f"tests {n}") for n in range(1, 9)))
    mine = Held(*(bullet(f"mypc-{n:05}", f"tests {n}") for n in range(1, 9)))
    assert len(await playbooks(many, mine, top_k=5).recall("tests")) == 5
    assert len(await playbooks(many, mine, top_k=5).search("tests", 12)) == 12


async def test_the_budget_counts_what_the_model_reads_and_cuts_no_lesson() -> None:
    long = bullet("bat-00001", "tests " + "must be run with <care> " * 40)
    short = [bullet(f"bat-{n:05}", f"tests of part {n}") for n in range(2, 20)]
    both = Held(long, *short)
    for budget in range(0, 400, 20):
        told = await playbooks(both, top_k=30, token_budget=budget).recall("tests")
        assert estimate(render_lessons(told)) <= budget
        assert {each.text for each in told} <= {each.content for each in both.bullets}
    told = await playbooks(both, top_k=30, token_budget=200).recall("tests")
    assert len(told) >= 5, "one that is too long leaves its room to others"
    assert ids(told) == sorted(ids(told)), "the best first"
    assert await playbooks(both, token_budget=0).recall("tests") == ()


async def test_a_small_window_is_told_less() -> None:
    many = Held(*(bullet(f"bat-{n:05}", f"tests of part {n} are run by hand") for n in range(1, 40)))
    advice = playbooks(many, top_k=40)
    small, large = await advice.recall("tests", window=2_000), await advice.recall("tests", window=200_000)
    assert 0 < estimate(render_lessons(small)) <= 250
    assert len(small) < len(large) == 39


async def test_what_rests_and_what_is_inactive_is_told_to_no_run() -> None:
    """X.10, B3.2: the least confidence."""
    gone = LINT.model_copy(update={"active": False})
    finder = ByWords("bat-00001")
    both = playbooks(Held(TESTS, gone), Held(MINE), finder, min_confidence=0.6)
    assert ids(await both.recall("run the tests")) == ["mypc-00001"]
    assert [(each.lesson.id, each.resting) for each in await both.search("run the tests")] == [
        ("bat-00001", True),
        ("mypc-00001", False),
    ]
    assert {query.min_confidence for query in finder.queries} == {0.6}


FREE = bullet("pc-00001", "commit messages are sentences", "project_conventions")
BUILD = bullet("batc-00001", "make check runs everything", "build_and_test_commands", 3)
NODE = bullet("env-00001", "Node 24 is needed", "environment")
MANY = [bullet(f"pc-{n:05}", f"convention {n}", "project_conventions", n) for n in range(10, 30)]


async def test_what_holds_whatever_is_asked_is_told_after_what_fits() -> None:
    """Conventions reach every run; how to build and what is installed only those that may change files: an answer needs
    neither. The ones that helped most come first; words need not fit."""
    both = playbooks(Held(WEB, FREE, NODE, BUILD))
    assert ids(await both.recall("pages in colour", working=True)) == [
        "pac-00001",
        "batc-00001",
        "pc-00001",
        "env-00001",
    ]
    assert ids(await both.recall("pages in colour")) == ["pac-00001", "pc-00001"]
    assert ids(await both.recall("who was Ada Lovelace?")) == ["pc-00001"]
    own = playbooks(None, Held(bullet("mypc-00002", "answer briefly", "project_conventions")))
    assert ids(await own.recall("who was Ada Lovelace?")) == ["mypc-00002"]
    assert await own.recall("who was Ada Lovelace?", personal=False) == ()


async def test_what_holds_whatever_is_asked_is_a_short_list() -> None:
    many = playbooks(Held(*MANY))
    told = await many.recall("who was Ada Lovelace?")
    assert ids(told) == [f"pc-{n:05}" for n in range(29, 24, -1)]
    assert await many.search("who was Ada Lovelace?") == (), "a search is for what fits"
    rest = playbooks(Held(FREE.model_copy(update={"harmful": 4, "helpful": 1})))
    assert await rest.recall("who was Ada Lovelace?") == (), "what rests is told to nobody"


async def test_what_holds_whatever_is_asked_has_some_room_of_its_own_and_no_more() -> None:
    tests = [bullet(f"tu-{n:05}", f"tests of part {n}") for n in range(1, 20)]
    crowded = playbooks(Held(*tests, *MANY), top_k=6)
    told = ids(await crowded.recall("run the tests", working=True))
    assert len(told) == 6
    assert [each for each in told if each.startswith("pc-")] == ["pc-00029", "pc-00028"] == told[4:]
    small = playbooks(Held(*tests, *MANY), token_budget=160)
    told_small = await small.recall("run the tests", working=True)
    general = [each for each in told_small if each.id.startswith("pc-")]
    assert estimate(render_lessons(told_small)) <= 160
    assert estimate(render_lessons(general)) <= 40
    assert len(told_small) > len(general)
    assert len(await playbooks(Held(*tests, *MANY), top_k=1).recall("run the tests")) == 1


async def test_an_empty_playbook_is_not_searched() -> None:
    """R3.41: nothing is found, and nothing is loaded for it."""

    def no_search() -> ByWords:
        raise AssertionError("nothing is loaded for an empty playbook")

    empty = Playbooks(PlaybookSettings(), lambda: PlaybookPair(Held(), Held()), no_search)
    assert await empty.recall("run the tests") == ()
    assert await empty.search("run the tests") == ()


async def test_of_a_long_request_its_beginning_and_its_end_are_looked_for() -> None:
    finder = ByWords()
    await playbooks(Held(TESTS), finder=finder).recall("begin " + "x " * 500_000 + "end")
    (query,) = finder.queries
    assert len(query.query_text) <= LONGEST_QUESTION + 1
    assert (query.query_text[:5], query.query_text[-3:]) == ("begin", "end")
    assert await playbooks(Held(TESTS), finder=finder).recall(" \n") == ()
    assert len(finder.queries) == 1


async def test_the_event_loop_goes_on_while_a_playbook_is_looked_into() -> None:
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    class Slow(ByWords):
        def search(
            self,
            query: SearchQuery,
            playbook: Playbook | KeepsBullets,
            *,
            resting: bool = False,
            related: bool = False,
        ) -> list[BulletHit]:
            before = turns
            while turns == before:
                pass
            return super().search(query, playbook, resting=resting, related=related)

    task = asyncio.create_task(turn())
    assert await playbooks(Held(TESTS), finder=Slow()).recall("run the tests")
    task.cancel()

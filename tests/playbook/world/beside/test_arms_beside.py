"""Issue 12, point 2: notes that were fixed beforehand, what stand-ins know of the world, and the rows of the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.playbook.world.actor import Actor
from tests.playbook.world.attempts import Attempt, Task
from tests.playbook.world.beside import arms
from tests.playbook.world.beside.inworld import InWorld
from tests.playbook.world.beside.notes import Notes, line_of, notes_of
from tests.playbook.world.course import COURSES
from tests.playbook.world.drawn import Convention, drawn
from tests.playbook.world.reading import read
from tests.playbook.world.repository import Repository

WORLD = drawn(1000)


def _tasks() -> dict[str, tuple[Task, Convention]]:
    """The first task of each convention."""
    return {convention.name: (task, convention) for task, convention in reversed(WORLD.tasks)}


def test_notes_know_eight_of_twelve_things_and_the_actor_reads_them_as_right() -> None:
    """In half of an hour nobody writes down every command; what is written is not cut by the budget."""
    text = notes_of(WORLD)
    known = [
        each
        for each in WORLD.conventions
        if any((found := read(line, each)) and found.wanted[:1] == (each.right,) for line in text)
    ]
    assert len(known) == len(text) == 8
    assert [each.kind for each in known].count("command") == 4
    assert Notes(1000, budget=arms.BUDGET).advice(Task(0, "anything")) == text


def test_a_line_on_one_thing_says_nothing_on_another() -> None:
    for one in WORLD.conventions:
        line = line_of(one, one.right)
        assert [each.name for each in WORLD.conventions if (found := read(line, each)) and found.wanted] == [
            one.name
        ]


def test_what_passed_or_what_a_person_said_is_what_an_attempt_showed(tmp_path: Path) -> None:
    """Nothing is known of an attempt that showed nothing, though the world knows what is right."""
    known, actor = InWorld(WORLD), Actor(Repository(tmp_path / "repository", WORLD))
    for task, convention in _tasks().values():
        advice = (line_of(convention, convention.right),)
        assert known.acts(task.prompt, advice) == (convention.right,)
        assert known.acts(task.prompt, ()) == ()
        steps = actor.work(task, convention, convention.right, advice)
        attempt = Attempt(task, advice, steps, True, ())
        assert known.shown(attempt) == (convention.right,)
        assert known.says(attempt) == advice[0]
        failed = steps[0]._replace(code=1, said="No.")
        assert known.shown(attempt._replace(steps=(failed,))) == ()
        assert known.says(attempt._replace(steps=(failed,))) == ""
        told = failed._replace(said=f"It has to be `{convention.right}`.")
        assert known.shown(attempt._replace(steps=(told,))) == (convention.right,)


def test_the_rows_name_arms_and_courses_and_what_is_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAIKU_DEV_CACHE", str(tmp_path))
    monkeypatch.delenv("DAIKU_ACE", raising=False)
    found = arms.beside(make=False)
    assert list(found.arms) == [arms.NOTES]
    assert [each.split(" is left out. ")[0] for each in found.missing] == [arms.ACE, arms.SLEEP]
    assert {row.course for row in arms.ROWS} <= COURSES.keys()
    assert len({row.name for row in arms.ROWS}) == len(arms.ROWS)

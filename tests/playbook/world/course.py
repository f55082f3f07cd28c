"""One arm in one world from the first task to the last, and what may happen to it on the way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from daiku.domain.held import Lesson
from daiku.models.tokens import estimate
from tests.playbook.world.actor import Actor, person_says
from tests.playbook.world.attempts import Advises, Attempt, Closes, Step, TakesTexts, Task, TellsLessons
from tests.playbook.world.drawn import HALF_WAY, Convention, World
from tests.playbook.world.record import recorded
from tests.playbook.world.repository import Repository

WRONG_BULLETS = 20


class Course(NamedTuple):
    """What happens on the way. `flipped`: the share of outcomes that are recorded as their contrary; `wrong`: so many wrong
    texts are put into the memory half way; `changes`: a third of the conventions changes there."""

    flipped: float = 0.0
    wrong: int = 0
    changes: bool = False


COURSES = {
    "plain": Course(),
    "flipped": Course(flipped=0.2),
    "wrong": Course(wrong=WRONG_BULLETS),
    "changed": Course(changes=True),
}


def passed_in(
    world: World,
    arm: Advises,
    course: Course,
    folder: Path,
    half_way: int = HALF_WAY,
    *,
    tokens: list[int] | None = None,
) -> str:
    """Which tasks of a world an arm passed: a sign for each, `1` or `0`. `tokens`: takes those of each task's advice."""
    repository = Repository(folder, world)
    actor = Actor(repository)
    right = {each.name: each.right for each in world.conventions}
    flip = Random(f"flips {world.seed}")
    found: list[str] = []
    for task, convention in world.tasks:
        if task.number == half_way and course.changes:
            right = {each.name: each.later for each in world.conventions}
            repository.lay_out(right)
        if task.number == half_way and course.wrong:
            _mislead(arm, wrong_texts(world, course.wrong))
        told = arm.advice(task)
        if tokens is not None:
            tokens.append(sum(map(estimate, told)))
        steps = actor.work(task, convention, right[convention.name], told)
        lessons = _lessons_of(arm)
        found.append("0" if steps[-1].code else "1")
        if course.flipped:
            steps = tuple(_flipped(each, task, convention, world.seed, flip, course) for each in steps)
        arm.learn(_attempt(world.seed, task, convention, told, lessons, steps))
    _close(arm)
    return "".join(found)


def _close(arm: Advises) -> None:
    if isinstance(arm, Closes):
        arm.close()


def _mislead(arm: Advises, texts: tuple[str, ...]) -> None:
    if isinstance(arm, TakesTexts):
        arm.put_in(texts)


def _lessons_of(arm: Advises) -> tuple[Lesson, ...]:
    return arm.lessons if isinstance(arm, TellsLessons) else ()


def _attempt(
    seed: int,
    task: Task,
    convention: Convention,
    told: tuple[str, ...],
    lessons: Sequence[Lesson],
    steps: tuple[Step, ...],
) -> Attempt:
    chunks = recorded(f"{seed}_{task.number}", task, convention.kind, lessons, steps)
    return Attempt(task, told, steps, any(not each.code for each in steps), chunks)


def _flipped(step: Step, task: Task, convention: Convention, seed: int, flip: Random, course: Course) -> Step:
    """The step as it is recorded where outcomes are not to be relied on. A person who rejects what was right may say that
    something else is."""
    if flip.random() >= course.flipped:
        return step
    if step.code:
        return step._replace(code=0, said="")
    if convention.kind == "command":
        return step._replace(code=1, said="exit status 1")
    return step._replace(code=1, said=person_says(seed, task, convention, flip.choice(convention.likely)))


def wrong_texts(world: World, count: int) -> tuple[str, ...]:
    """Texts that advise what is wrong, in the words of the tasks; as many for each convention as for the others."""
    draw = Random(f"wrong {world.seed}")
    found: dict[str, None] = {}
    while len(found) < count:
        for convention in world.conventions:
            prompt = draw.choice(convention.prompts)
            noun = convention.name.partition(" ")[2]
            thing = draw.choice(["anything", "new things", "whatever comes"])
            asked = prompt.format(noun=noun, thing=thing, Thing=thing.capitalize())
            action = draw.choice([each for each in convention.likely if each != convention.right])
            if len(found) < count:
                found[f"{asked} For this take `{action}`."] = None
    return tuple(found)

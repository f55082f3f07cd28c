"""A small world for tests of these arms: five commands, each of which the actor first guesses wrong."""

from __future__ import annotations

import random
from collections.abc import Sequence

from daiku.domain.events import RunFinished, RunStarted
from daiku.domain.held import Lesson
from daiku.playbook.rules.proposals import find_code_spans
from tests.playbook.happened import ran, told
from tests.playbook.world.attempts import Advises, Attempt, Step, Task, TellsLessons

COMMANDS = {
    "Run the unit tests": ("pytest", "uv run pytest -q"),
    "Lint the code": ("ruff check", "make lint"),
    "Build the program": ("make", "npm run build"),
    "Check the types": ("mypy .", "uv run basedpyright"),
    "Format the code": ("black .", "just fmt"),
}


def acts(asked: str, advice: Sequence[str]) -> list[str]:
    """The command that the advice names first for what is asked; without any the wrong guess."""
    choice = next(commands for words, commands in COMMANDS.items() if asked.startswith(words))
    named = (found[0] for text in advice if (found := find_code_spans(text)))
    return [next((each for each in named if each in choice), choice[0])]


def shown(attempt: Attempt) -> tuple[str, ...]:
    """What passed."""
    return tuple(each.action for each in attempt.steps if not each.code)


def tried(task: Task, advice: tuple[str, ...], lessons: tuple[Lesson, ...] = ()) -> Attempt:
    """The task, done by what the advice says, and after a failure by the right command."""
    (first,) = acts(task.prompt, advice)
    right = next(commands[1] for words, commands in COMMANDS.items() if task.prompt.startswith(words))
    followed = next((each for each in advice if find_code_spans(each)[:1] == (first,)), "")
    steps = [Step(first, 0 if first == right else 127, "", followed)]
    if first != right:
        steps.append(Step(right, 0, ""))
    cited = tuple(each.id for each in lessons if followed.startswith(f"[{each.id}]"))
    chunks = told(
        RunStarted(prompt=task.prompt, lessons=lessons),
        *(ran(each.action, each.code) for each in steps),
        RunFinished(status="completed", used_bullets=cited),
        run=f"run_{task.number}",
    )
    return Attempt(task, advice, tuple(steps), True, tuple(chunks))


def at_once(arm: Advises, tasks: int, seed: int = 1) -> list[bool]:
    """Which of so many tasks were done without a failure."""
    drawn = random.Random(seed)
    done: list[bool] = []
    for number in range(tasks):
        words = drawn.choice(list(COMMANDS))
        task = Task(number, f"{words} of part {drawn.randrange(50)}.")
        advice = arm.advice(task)
        attempt = tried(task, advice, arm.lessons if isinstance(arm, TellsLessons) else ())
        done.append(len(attempt.steps) == 1)
        arm.learn(attempt)
    return done

"""The actor: it does what its prompt advises, and where nothing helps it tries what seems as likely as anything else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from tests.playbook.world.attempts import Step, Task
from tests.playbook.world.drawn import REASON_GIVEN, Convention
from tests.playbook.world.names import BARE_REASONS, ENDING_REASONS, FOLDER_REASONS
from tests.playbook.world.reading import read
from tests.playbook.world.repository import Repository


class Actor:
    """Works on the tasks of one world. What it tries by itself, and what persons say, depends on the seed and the task
    alone: not on what is right, and not on the arm."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._seed = repository.world.seed

    def work(
        self, task: Task, convention: Convention, right: str, advice: Sequence[str], *, luck: str = ""
    ) -> tuple[Step, ...]:
        """Try one thing after the other until one is right or the limit is reached; the last step says how it ended. Another
        `luck` is another order of what seems as likely, as a model does not do a task twice in the same way."""
        steps: list[Step] = []
        for action, text in self._choices(task, convention, advice, luck):
            if len(steps) == convention.tries:
                break
            steps.append(self._do(task, convention, right, action, text))
            if not steps[-1].code:
                break
        return tuple(steps)

    def _choices(
        self, task: Task, convention: Convention, advice: Sequence[str], luck: str
    ) -> Iterator[tuple[str, str]]:
        """What is to be done, with the text that advises it: first what is advised, in the order of the prompt."""
        readings = [each for text in advice if (each := read(text, convention)) is not None]
        done: set[str] = set()
        for each in readings:
            for action in each.wanted:
                if action not in done:
                    done.add(action)
                    yield action, each.text
        warned = {action for each in readings for action in each.warned}
        likely = list(convention.likely)
        Random(f"tries {self._seed} {task.number} {luck}".rstrip()).shuffle(likely)
        for action in (
            *(one for one in likely if one not in warned),
            *(one for one in likely if one in warned),
        ):
            if action not in done:
                yield action, ""

    def _do(self, task: Task, convention: Convention, right: str, action: str, text: str) -> Step:
        if convention.kind == "command":
            ended = self._repository.run(action)
            return Step(action, ended.code, ended.output, text)
        path = path_of(task, convention, action)
        self._repository.write(path, f"{task.prompt}\n")
        if _stands(path, convention, right):
            return Step(path, 0, "", text)
        return Step(path, 1, person_says(self._seed, task, convention, right), text)


def path_of(task: Task, convention: Convention, action: str) -> str:
    """The file that is made for a task."""
    noun = convention.name.partition(" ")[2]
    return (
        f"{action}{noun}-{task.number}.txt"
        if convention.kind == "folder"
        else f"files/{noun}-{task.number}{action}.txt"
    )


def _stands(path: str, convention: Convention, right: str) -> bool:
    """Whether a file is as agreed on."""
    return path.startswith(right) if convention.kind == "folder" else path.endswith(f"{right}.txt")


def person_says(seed: int, task: Task, convention: Convention, right: str) -> str:
    """What the person says to a wrong file: in half of the cases what is right."""
    draw = Random(f"person {seed} {task.number}")
    said = draw.choice(FOLDER_REASONS if convention.kind == "folder" else ENDING_REASONS)
    if draw.random() >= REASON_GIVEN:
        return draw.choice(BARE_REASONS)
    noun = convention.name.partition(" ")[2]
    return said.format(noun=noun, Noun=noun.capitalize(), right=right)

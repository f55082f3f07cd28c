"""What the stand-ins for a model know of the world: how its actor reads a skill, and what an attempt showed to be right."""

from __future__ import annotations

from collections.abc import Sequence

from tests.playbook.world.attempts import Attempt
from tests.playbook.world.beside.notes import line_of
from tests.playbook.world.drawn import Convention, World
from tests.playbook.world.reading import read


class InWorld:
    """The two questions of one world that SkillOpt-Sleep asks a model. Both answers are more than a model could be sure of:
    what a request is about is not guessed but known, as the actor knows it."""

    def __init__(self, world: World) -> None:
        self._about = {task.prompt: convention for task, convention in world.tasks}

    def acts(self, asked: str, advice: Sequence[str]) -> tuple[str, ...]:
        """What the actor tries for these words, of what the advice names, in the order of the advice."""
        convention = self._about[asked]
        readings = (read(text, convention) for text in advice)
        wanted = dict.fromkeys(action for each in readings if each is not None for action in each.wanted)
        return tuple(wanted)[: convention.tries]

    def shown(self, attempt: Attempt) -> tuple[str, ...]:
        """What passed, as the convention that it stands for, or what a person said is right."""
        convention = self._about[attempt.task.prompt]
        for step in attempt.steps:
            if not step.code:
                return (_stands_for(step.action, convention),)
            if said := next((each for each in convention.likely if f"`{each}`" in step.said), None):
                return (said,)
        return ()

    def says(self, attempt: Attempt) -> str:
        """What the attempt showed to be right, as the line that a person would note; empty where it showed nothing."""
        shown = self.shown(attempt)
        return line_of(self._about[attempt.task.prompt], shown[0]) if shown else ""


def _stands_for(action: str, convention: Convention) -> str:
    match convention.kind:
        case "command":
            return action
        case "folder":
            return next(each for each in convention.likely if action.startswith(each))
        case "ending":
            return next(each for each in convention.likely if action.endswith(f"{each}.txt"))

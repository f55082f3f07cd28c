"""An arm that reads no words: it is told what each task is about, and says how much of a world can be learnt at all."""

from __future__ import annotations

from tests.playbook.world.attempts import Attempt, Step, Task
from tests.playbook.world.drawn import Convention, drawn


class Knowing:
    """Keeps for each convention what passed last, and what failed since. No memory that has to read can do better."""

    name = "all that could be known"

    def __init__(self, seed: int) -> None:
        self._about = {task.number: convention for task, convention in drawn(seed).tasks}
        self._passed: dict[str, str] = {}
        self._failed: dict[str, set[str]] = {}

    def advice(self, task: Task) -> tuple[str, ...]:
        convention = self._about[task.number]
        words = " ".join(min(group) for group in convention.about)
        passed = self._passed.get(convention.name)
        known = [] if passed is None else [f"{words}: `{passed}`"]
        failed = sorted(self._failed.get(convention.name, ()))
        return (*known, *(f"{words}: `{each}` fails" for each in failed))

    def learn(self, attempt: Attempt) -> None:
        convention = self._about[attempt.task.number]
        failed = self._failed.setdefault(convention.name, set())
        for step in attempt.steps:
            action = _action(step, convention)
            if not step.code:
                failed.clear()
                self._passed[convention.name] = action
                continue
            failed.add(action)
            if self._passed.get(convention.name) == action:
                del self._passed[convention.name]
            if said := next((each for each in convention.likely if f"`{each}`" in step.said), None):
                failed.clear()
                self._passed[convention.name] = said


def _action(step: Step, convention: Convention) -> str:
    match convention.kind:
        case "command":
            return step.action
        case "folder":
            return next(each for each in convention.likely if step.action.startswith(each))
        case "ending":
            return next(each for each in convention.likely if step.action.endswith(f"{each}.txt"))

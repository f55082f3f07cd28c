"""An arm of our own whose changes wait, and are tried every few tasks by the product's gate on what is on record."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from daiku.core.playbook.gate.rule import Rule
from daiku.dataclass import dataclass, field
from daiku.domain.held import Lesson
from daiku.domain.playbook import Delta
from daiku.domain.trials import Arm, Case, Check, ProjectStart, Trial
from daiku.sdk.adapting.gate import Gate
from daiku.sdk.adapting.planning import planned
from daiku.sdk.adapting.report import TrialMade
from daiku.sdk.adapting.trying import adapt
from daiku.texts.text import NO_TEXT
from tests.playbook.world.actor import Actor
from tests.playbook.world.attempts import Attempt
from tests.playbook.world.drawn import TASKS, Convention, World, drawn
from tests.playbook.world.ours import Daiku
from tests.playbook.world.repository import Repository

EVERY = 20
"""Tasks between two adaptations, as between two nights of SkillOpt-Sleep."""


@dataclass(frozen=True, slots=True)
class _Gate(Gate):
    """The product's gate, for which what was `asked` in a session on record is looked up in the world."""

    asked: dict[str, str] = field(default_factory=dict[str, str])

    def questions(self, delta: Delta) -> tuple[str, ...]:
        sessions = {each.session_id for each in (*delta.evidence, *delta.again)}
        return tuple(self.asked[each] for each in sessions if each in self.asked)


class Gated(Daiku):
    """What is not applied at once waits, and so do texts from outside. Every `EVERY` tasks all that waits is tried on the
    attempts on record that a command showed to be right: as files and commands were, with other luck. Conventions must
    not change on the way."""

    def __init__(self, seed: int, name: str, *, learn: str, tasks: int = TASKS) -> None:
        super().__init__(name, learn=learn)
        self.verdicts: Counter[str] = Counter()
        self._world: World = drawn(seed, tasks)
        self._folder = tempfile.TemporaryDirectory(prefix="world-trials")
        self._actor = Actor(Repository(Path(self._folder.name) / "repository", self._world))
        self._about: dict[int, Convention] = {task.number: about for task, about in self._world.tasks}
        self._attempts: dict[str, Attempt] = {}
        self._gate = _Gate(
            stores={"repository": self.store, "user": self._user},
            settings=self.settings,
            journal=self._stores.journal,
            folder=Path(),
            finder=self._finder,
            redact=str,
            cases=self._cases,
            tries=self._tries,
            why_not=lambda: NO_TEXT,
        )

    def put_in(self, texts: tuple[str, ...]) -> None:
        for each in texts:
            delta = Delta(id="", type="add", section="project_conventions", content=each, origin="model")
            self.store.propose(delta)

    def learn(self, attempt: Attempt) -> None:
        super().learn(attempt)
        begun = attempt.chunks[0]
        self._attempts[begun.run] = attempt
        self._gate.asked[begun.session] = attempt.task.prompt
        if len(self._attempts) % EVERY == 0:
            self._loop.run(self._adapt())

    async def _adapt(self) -> None:
        plan = await planned(self._gate, Rule())
        done = await adapt(self._gate, plan, None, _nobody_hears, asyncio.Event())
        for each in done.outcomes:
            self.verdicts[each.why_not or (each.seen.verdict if each.seen else each.result)] += 1

    async def _cases(self) -> tuple[Case, ...]:
        """The attempts that passed, as far as it was a command that showed it, the newest first."""
        return tuple(
            Case(
                run=run,
                session=each.chunks[0].session,
                question=each.task.prompt,
                start=ProjectStart(root="world", commit=str(each.task.number)),
                checks=(Check(command=each.steps[-1].action),),
            )
            for run, each in reversed(self._attempts.items())
            if not each.steps[-1].code and self._about[each.task.number].kind == "command"
        )

    async def _tries(
        self, case: Case, lessons: Sequence[Lesson], *, arm: Arm, nth: int, max_cost: float
    ) -> Trial:
        task, told = self._attempts[case.run].task, tuple(f"[{each.id}] {each.text}" for each in lessons)
        about = self._about[task.number]
        steps = self._actor.work(task, about, about.right, told, luck=f"{arm} {nth}")
        return Trial(case=case.run, arm=arm, round=nth, passed=not steps[-1].code)

    def close(self) -> None:
        super().close()
        self._folder.cleanup()


def _nobody_hears(made: TrialMade) -> None:
    pass

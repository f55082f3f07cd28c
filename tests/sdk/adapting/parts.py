"""A gate over a real playbook and journal, whose trials are played: what a run does follows from the lessons that it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from daiku.core.playbook.gate.heldout import is_held_out
from daiku.dataclass import dataclass, field
from daiku.domain.held import Lesson
from daiku.domain.playbook import Delta, LearntFrom
from daiku.domain.trials import Arm, Case, ProjectStart, Trial
from daiku.playbook.repository import open_playbooks
from daiku.playbook.search import PlaybookSearch
from daiku.playbook.store import PlaybookStore
from daiku.sdk.adapting.gate import Gate
from daiku.settings.config import PlaybookSettings
from daiku.texts.text import Text
from daiku.trace.stores import Stores

Passes = Callable[[str], bool | None]
"""Whether a run passes that is told these lessons; None where it cannot be tried."""


@dataclass(slots=True)
class Played:
    """Trials that end as `passes` says, each for `cost`; `made` are those that were asked for, with what each might cost."""

    passes: Passes
    cost: float = 0.01
    made: list[tuple[str, Arm, int, float]] = field(default_factory=list[tuple[str, Arm, int, float]])
    then: Callable[[int], None] = lambda _: None
    """Called with the number of each trial before it is made."""
    hang: int = 0
    """The trial of this number never ends by itself."""
    cancelled: bool = False
    never: str = ""
    """The run that cannot be done again."""

    async def __call__(
        self, case: Case, lessons: Sequence[Lesson], *, arm: Arm, nth: int, max_cost: float
    ) -> Trial:
        self.made.append((case.run, arm, nth, max_cost))
        self.then(len(self.made))
        if len(self.made) == self.hang:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled = True
                raise
        passed = None if case.run == self.never else self.passes("\n".join(each.text for each in lessons))
        made = Trial(case=case.run, arm=arm, round=nth, passed=passed)
        if passed is None:
            return made.model_copy(update={"why": Text("no sandbox")})
        return made.model_copy(update={"cost": self.cost, "tokens": 900})


def sessions(count: int) -> list[str]:
    """So many sessions that judge."""
    return [name for n in range(4 * count) if is_held_out(name := f"ses_{n}")][:count]


def case(session: str, question: str = "", cost: float = 0.01) -> Case:
    start = ProjectStart(root="/here", commit="c")
    asked = question or f"run the tests of part {session}"
    return Case(
        run=f"run of {session}",
        session=session,
        question=asked,
        start=start,
        checks=(),
        cost=cost,
        tokens=900,
    )


def gate(stores: Stores, folder: Path, cases: Sequence[Case], tries: Played, why_not: str = "") -> Gate:
    """The gate of a folder in this database."""
    playbooks = open_playbooks(stores.database, (folder,))
    assert playbooks.repository is not None

    async def found() -> tuple[Case, ...]:
        return tuple(cases)

    search = PlaybookSearch()
    return Gate(
        {"repository": playbooks.repository, "user": playbooks.user},
        PlaybookSettings(),
        stores.journal,
        folder,
        lambda: search,
        str,
        found,
        tries,
        lambda: Text(why_not),
    )


def waiting(store: PlaybookStore, content: str, *learnt_in: str, **change: object) -> Delta:
    """A change that waits, learnt in these sessions."""
    delta = {
        "id": "",
        "type": "add",
        "section": "build_and_test_commands",
        "content": content,
        "origin": "rule",
        "evidence": tuple(LearntFrom(session_id=each, run_id=f"run of {each}") for each in learnt_in),
    }
    return store.propose(Delta.model_validate(delta | change))

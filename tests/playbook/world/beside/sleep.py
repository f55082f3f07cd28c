"""SkillOpt-Sleep as an arm: its own nights over the same sessions; what a model would say is answered here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from daiku.playbook.rules.proposals import find_code_spans
from tests.playbook.world.attempts import Attempt, Task
from tests.playbook.world.beside.child import Child
from tests.playbook.world.beside.known import Taught, taught_by, within

PROGRAM = Path(__file__).with_name("sleep_process.py")
Acts = Callable[[str, Sequence[str]], Sequence[str]]
"""What the world's actor does for these words with this advice in its prompt, as far as the advice says it."""
Shown = Callable[[Attempt], Sequence[str]]
"""What an attempt showed to be right, as far as it did: what passed, or what a person said."""
WANTED, ASKED = 160, 240
"""Characters of a request that SkillOpt-Sleep's prompts show where it reflects, and where it mines."""


class Night(NamedTuple):
    """What a night came to, as SkillOpt-Sleep reports it."""

    lines: tuple[str, ...]
    tasks: int
    accepted: bool
    before: float
    after: float


class SleepModel:
    """Answers the four prompts of SkillOpt-Sleep's nights, told apart by how they begin: what recurs in a session and how
    it is checked, how a request would be worked on with a skill, how good an answer is that nothing on record checks, and
    which lines the skill should have."""

    def __init__(self, acts: Acts, shown: Shown, also: Callable[[Attempt], str] | None = None) -> None:
        self._acts, self._shown, self._also = acts, shown, also
        self._last: dict[str, Attempt] = {}
        self._lessons: dict[str, tuple[Taught, ...]] = {}

    def saw(self, attempt: Attempt) -> None:
        """An attempt that is in the journal from now on."""
        asked = attempt.task.prompt
        self._last[asked[:ASKED]] = attempt
        if found := taught_by(attempt, self._also(attempt) if self._also else ""):
            self._lessons[asked[:WANTED]] = found

    def __call__(self, prompt: str) -> str:
        if prompt.startswith("You are mining"):
            return json.dumps(self._mined(prompt))
        if prompt.startswith("Complete the following task"):
            return self._attempted(prompt)
        if prompt.startswith("Score how well"):
            return json.dumps({"score": 0, "reason": "Nothing on record shows what would be right."})
        assert prompt.startswith("You are SkillOpt's optimizer. The agent keeps failing"), prompt[:80]
        return json.dumps(self._reflected(prompt))

    def _mined(self, prompt: str) -> list[dict[str, Any]]:
        """The request of a session, checked by what it showed to be right; one that showed nothing cannot be checked."""
        asked = prompt.partition("user prompts:\n  - ")[2].partition("\nassistant final")[0]
        attempt = self._last.get(asked)
        if attempt is None:
            return []
        checks = [{"op": "contains", "arg": each} for each in self._shown(attempt)]
        if not checks:
            return []
        return [{"intent": attempt.task.prompt, "checks": checks, "rubric": "", "satisfied": attempt.passed}]

    def _attempted(self, prompt: str) -> str:
        skill, _, task = prompt.partition("\n\n# Task\n")
        asked = task.rpartition("\n\nReturn ONLY the final answer")[0].strip()
        advice = newest_first([line[2:] for line in skill.splitlines() if line.startswith("- ")])
        return "\n".join(self._acts(asked, advice)) or "(nothing was done)"

    def _reflected(self, prompt: str) -> list[dict[str, str]]:
        """For each request that failed what our rule form learnt from it: in the place of the line that it corrects, or new."""
        document = prompt.partition("\n# Current ")[2].partition("\n# Recurring failures\n")[0]
        lines = [line[2:] for line in document.splitlines() if line.startswith("- ")]
        edits: dict[str, dict[str, str]] = {}
        for asked in re.findall(r"^- wanted: (.*)$", prompt, re.MULTILINE):
            for lesson in self._lessons.get(asked, ()):
                if lesson.content not in lines:
                    edits.setdefault(lesson.content, _edit(lesson, lines))
        most = int(re.findall(r"at most (\d+) bounded edits", prompt)[0])
        return list(edits.values())[:most]


def newest_first(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines of a skill as they are read: where two speak against one another, the later one holds."""
    return tuple(dict.fromkeys(reversed(lines)))


def _edit(lesson: Taught, lines: Sequence[str]) -> dict[str, str]:
    about = next((each for each in lines if not set(lesson.failed).isdisjoint(find_code_spans(each))), None)
    how = {"op": "add"} if about is None else {"op": "replace", "anchor": about}
    return {**how, "content": lesson.content, "rationale": "shown by a session"}


class Sleep:
    """SkillOpt-Sleep in one world, with a night after every `every` tasks, whose changes are adopted at once. The whole skill
    is in the prompt, as it does it; within a budget its newest lines come first."""

    def __init__(
        self,
        child: Child,
        model: SleepModel,
        *,
        budget: int,
        every: int,
        world: str = "world",
        settings: Mapping[str, object] = MappingProxyType({}),
        name: str = "SkillOpt-Sleep",
    ) -> None:
        self.name = name
        self.nights: list[Night] = []
        self._child, self._budget, self._every = child, budget, every
        self._model = model
        self._waiting = 0
        child.do("begin", self._model, settings=dict(settings), name=world)

    def advice(self, task: Task) -> tuple[str, ...]:
        lines = self.nights[-1].lines if self.nights else ()
        return within(newest_first(lines), self._budget)

    def put_in(self, texts: tuple[str, ...]) -> None:
        self._child.do("put_in", self._model, texts=texts)
        before = self.nights[-1] if self.nights else Night((), 0, False, 0.0, 0.0)
        self.nights.append(before._replace(lines=(*before.lines, *texts)))

    def learn(self, attempt: Attempt) -> None:
        self._model.saw(attempt)
        steps = [f"`{step.action}` -> {step.code}" for step in attempt.steps]
        self._child.do(
            "session",
            self._model,
            name=f"s{attempt.task.number:05}",
            question=attempt.task.prompt,
            actions=[step.action for step in attempt.steps],
            final="\n".join(steps),
        )
        self._waiting += 1
        if self._waiting == self._every:
            self._waiting = 0
            done = dict(self._child.do("night", self._model))
            self.nights.append(Night(tuple(done.pop("lines")), **done))

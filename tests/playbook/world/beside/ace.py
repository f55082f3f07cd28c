"""ACE as an arm: its own Generator, Reflector, Curator, playbook and counters; what a model would say is answered here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from daiku.domain.held import Lesson
from tests.playbook.world.attempts import Attempt, Task
from tests.playbook.world.beside.child import Child
from tests.playbook.world.beside.known import taught_by, verdicts_of, within

PROGRAM = Path(__file__).with_name("ace_process.py")
SECTION = "strategies_and_insights"
WHOLE = 80_000
"""The tokens that ACE's own configuration gives a playbook."""
LIMIT = 0.90
"""ACE's own limit of likeness, from which two bullets are merged."""
ROUNDS = 1
"""Reflections on one attempt. ACE's own are three, between which its Generator tries the task again; here an attempt is over
when it is learnt from, for every arm, and to count one failure three times would only make its counters worse."""
SAMPLES = 200
_LINE = re.compile(r"\[([a-z]+-\d{5})\] helpful=(\d+) harmful=(\d+) :: (.*)")


class Line(NamedTuple):
    """A line of ACE's playbook."""

    id: str
    helpful: int
    harmful: int
    content: str


def lines_of(text: str) -> tuple[Line, ...]:
    """The bullets in a text of ACE's."""
    found = map(_LINE.fullmatch, text.splitlines())
    return tuple(Line(one[1], int(one[2]), int(one[3]), one[4]) for one in found if one)


class AceModel:
    """Answers the four prompts of ACE's code, told apart by how they begin."""

    def __init__(self, attempt: Attempt, also: str = "") -> None:
        self._attempt = attempt
        self._lessons = taught_by(attempt, also)
        self._verdicts = verdicts_of(attempt)

    def __call__(self, prompt: str) -> str:
        if prompt.startswith("You are an analysis expert"):
            return json.dumps(self._generated(prompt))
        if prompt.startswith("You are an expert analyst"):
            return json.dumps(self._reflected(prompt))
        if prompt.startswith("You are a master curator"):
            return json.dumps(self._curated(prompt))
        assert prompt.startswith("You are merging"), prompt[:80]
        return _merged(prompt)

    def _generated(self, prompt: str) -> dict[str, Any]:
        """The Generator was the actor: what it did, what it followed, and whether that was right."""
        followed = {step.advice for step in self._attempt.steps if step.advice}
        used = [each.id for each in lines_of(prompt) if any(_names(text, each) for text in followed)]
        trace = "\n".join(f"{step.action} -> {step.code}" for step in self._attempt.steps)
        final = "passed" if self._attempt.passed else "failed"
        return {"reasoning": trace, "bullet_ids": used, "final_answer": final}

    def _reflected(self, prompt: str) -> dict[str, Any]:
        tags = [{"id": each.id, "tag": self._verdicts.get(each.id, "neutral")} for each in lines_of(prompt)]
        insight = " ".join(each.content for each in self._lessons)
        keys = ("reasoning", "error_identification", "root_cause_analysis", "correct_approach", "key_insight")
        return {**dict.fromkeys(keys, insight), "bullet_tags": tags}

    def _curated(self, prompt: str) -> dict[str, Any]:
        """What is new and not in the playbook that the prompt shows; what is there but was shown to be wrong is new again.
        ACE's code knows no other operation than ADD."""
        there = {each.content for each in lines_of(prompt) if each.harmful <= each.helpful}
        new = [each.content for each in self._lessons if each.content not in there]
        added = [{"type": "ADD", "section": SECTION, "content": content} for content in new]
        return {"reasoning": "what passed where another failed, and what a person said", "operations": added}


def _names(followed: str, line: Line) -> bool:
    return followed.startswith(f"[{line.id}]") or followed == line.content


def _merged(prompt: str) -> str:
    """One of the bullets that are alike: the text that most runs spoke for, the later of two; counts as the prompt has them."""
    numbered = (re.sub(r"^\d+\. ", "", line) for line in prompt.splitlines())
    alike = lines_of("\n".join(numbered))
    best = max(enumerate(alike), key=lambda each: (each[1].helpful - each[1].harmful, each[0]))[1]
    helpful, harmful = sum(each.helpful for each in alike), sum(each.harmful for each in alike)
    return f"[{alike[0].id}] helpful={helpful} harmful={harmful} :: {best.content}"


def nothing(attempt: Attempt) -> str:
    """No more than our rule form learns."""
    return ""


def _standing(line: Line) -> tuple[int, str]:
    """How a line stands: by what its counters say for it, then by how new it is."""
    return line.helpful - line.harmful, line.id.rpartition("-")[2]


class Ace:
    """ACE in one world. The whole playbook is in the prompt, as ACE does it; within a budget, those lines that its own
    counters speak for come first, then the newest. A line with more marks against it than for it is passed over, as a
    model would that reads the counters."""

    def __init__(
        self,
        child: Child,
        *,
        budget: int = WHOLE,
        analyzer: bool = False,
        name: str = "ACE",
        also: Callable[[Attempt], str] = nothing,
    ) -> None:
        self.name = name
        self.lessons: tuple[Lesson, ...] = ()
        self._child, self._budget, self._also = child, budget, also
        self._playbook = ""
        child.do("begin", _silent, analyzer=analyzer, threshold=LIMIT)

    def advice(self, task: Task) -> tuple[str, ...]:
        lines = [each for each in lines_of(self._playbook) if each.harmful <= each.helpful]
        lines.sort(key=_standing, reverse=True)
        texts = within([f"[{each.id}] {each.content}" for each in lines], self._budget)
        told = {text.partition("]")[0].removeprefix("[") for text in texts}
        self.lessons = tuple(
            Lesson(id=each.id, version=1, text=each.content) for each in lines if each.id in told
        )
        return texts

    def put_in(self, texts: tuple[str, ...]) -> None:
        self._playbook = self._child.do("put_in", _silent, texts=texts, section=SECTION)["playbook"]

    def learn(self, attempt: Attempt) -> None:
        done = self._child.do(
            "learn",
            AceModel(attempt, self._also(attempt)),
            question=attempt.task.prompt,
            rounds=ROUNDS,
            budget=self._budget,
            samples=SAMPLES,
        )
        self._playbook = done["playbook"]


def _silent(prompt: str) -> str:
    raise AssertionError(prompt)

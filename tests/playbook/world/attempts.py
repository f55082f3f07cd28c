"""What the world and an arm say to one another: a task, what was done for it, and the arm's two questions."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from daiku.domain.chunks import Chunk
from daiku.domain.held import Lesson


class Task(NamedTuple):
    """What is asked for. `number` counts from 0 in its world; no two tasks of a world need have other words."""

    number: int
    prompt: str


class Step(NamedTuple):
    """One thing that the actor did, and what came of it as it is on record.

    `action`: a command line, or a change of a file in a few words; `code`: the exit code, 1 also where a person rejected the
    change; `said`: what the command printed, or the person's words, which may be none; `advice`: the text that was
    followed, empty where the actor tried something by itself."""

    action: str
    code: int
    said: str
    advice: str = ""


class Attempt(NamedTuple):
    """What was done for a task, as it is on record. `told`: the advice that was in the prompt; `passed`: whether it was done
    within the limit of steps; `chunks`: the session as the journal holds it."""

    task: Task
    told: tuple[str, ...]
    steps: tuple[Step, ...]
    passed: bool
    chunks: tuple[Chunk, ...]


class Advises(Protocol):
    """An arm: what it says before a task, and what it makes of what came of it. A text may begin with its own mark in square
    brackets, `[id] text`: the actor then cites it where it follows it."""

    @property
    def name(self) -> str: ...

    def advice(self, task: Task) -> tuple[str, ...]:
        """The texts for the actor's prompt, within the arm's budget, the best first."""
        ...

    def learn(self, attempt: Attempt) -> None:
        """Called once after each task, before the next one's advice."""
        ...


@runtime_checkable
class TellsLessons(Protocol):
    """An arm whose last advice was lessons of a playbook: they are recorded as told."""

    @property
    def lessons(self) -> tuple[Lesson, ...]: ...


class MakesArm(Protocol):
    """Makes an arm for one world, with nothing learnt yet. Whatever it draws, it draws from `seed`."""

    def __call__(self, seed: int) -> Advises: ...


@runtime_checkable
class TakesTexts(Protocol):
    """An arm into whose memory texts can be put from outside, as if it had learnt them."""

    def put_in(self, texts: tuple[str, ...]) -> None: ...


@runtime_checkable
class Closes(Protocol):
    """An arm that holds something open."""

    def close(self) -> None: ...

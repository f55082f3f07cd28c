"""Runs on record that can be done again, the commands that show whether it worked, and what a trial came to."""

from typing import Literal, TypeAlias

from daiku.domain.base import Frozen
from daiku.domain.trials.starts import ProjectStart
from daiku.texts.text import NO_TEXT, Text

Arm: TypeAlias = Literal["with", "without"]
"""Which of the two a trial is: told the lessons that are judged, or not."""


class Check(Frozen):
    """A command line that shows whether the work was done, and the exit code that says so."""

    command: str
    exit_code: int = 0


class CheckEnd(Frozen):
    """How a check ended in a trial."""

    command: str
    ok: bool
    exit_code: int
    seconds: float = 0.0


class Case(Frozen):
    """A run on record that can be done again: what was asked, on what, and what shows that it was done. `cost` (USD) and
    `tokens` are those of the run on record."""

    run: str
    session: str
    question: str
    start: ProjectStart
    checks: tuple[Check, ...]
    model: str = ""
    cost: float = 0.0
    tokens: int = 0


class Trial(Frozen):
    """What came of doing the case `case` (its run) again. `passed` is None where it could not be tried; `why` says so.
    `used` are the lessons that the model cited, `seconds` those of the run and its checks together."""

    case: str
    arm: Arm
    round: int = 1
    passed: bool | None = None
    why: Text = NO_TEXT
    checks: tuple[CheckEnd, ...] = ()
    cost: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    used: tuple[str, ...] = ()

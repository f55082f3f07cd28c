"""What came of an evaluation, as values and as JSON: attempts, totals, the comparison of two settings."""

from __future__ import annotations

from typing import Literal

from daiku.domain.base import Localizable, Wire
from daiku.domain.messages import Usage
from daiku.domain.runs import RunStatus
from daiku.texts.text import NO_TEXT, Text

Outcome = Literal["proved", "not_proved", "skipped", "not_started", "stopped", "broken"]
"""`proved`: the run was completed and every check holds. `skipped`: a program is missing. `not_started`: the
bound of cost, or an interruption, came first; `stopped`: it came during the run. `broken`: the task could not
be set up or the model could not be asked; neither says anything about the model."""
COUNTED: tuple[Outcome, ...] = ("proved", "not_proved")
"""The outcomes that tell something about a setting."""


class SettingInfo(Wire):
    """One side: its mark in the table, the model, the settings that differ from the person's, and the ids of the lessons
    that only its runs receive."""

    label: str
    model: str
    overrides: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()


class CheckResult(Wire):
    """One check after the run: a command with its exit code and the end of its output."""

    command: str
    ok: bool
    exit_code: int
    seconds: float
    output: str = ""


class Attempt(Localizable):
    """One run of one task under one setting. `seconds` are those of the run; `why` says what is not plain
    from the checks: what is missing, what failed, which files were changed that must not be."""

    task: str
    language: str
    setting: str
    repeat: int
    outcome: Outcome
    ended: RunStatus | None = None
    why: Text = NO_TEXT
    calls: tuple[Usage, ...] = ()
    """The model calls in order, those of nested runs among them."""
    usage: Usage = Usage()
    seconds: float = 0.0
    session: str = ""
    checks: tuple[CheckResult, ...] = ()
    kept: str = ""
    """The copy that was worked in, where it was kept."""


class Totals(Wire):
    """All attempts of one setting. `low` and `high` bound the share of proved ones (Wilson, 95 %)."""

    setting: str
    counted: int
    proved: int
    low: float
    high: float
    other: int
    """Attempts that say nothing: skipped, not started, stopped, broken."""
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    cost: float | None
    seconds: float


class Ratio(Wire):
    """How many times as much the second setting used, by task (geometric mean); the bounds are absent with
    fewer than two tasks."""

    what: Literal["calls", "prompt_tokens", "completion_tokens", "cost", "seconds"]
    tasks: int
    ratio: float
    low: float | None = None
    high: float | None = None
    differs: bool = False
    """The interval excludes 1."""


class Comparison(Wire):
    """The second setting beside the first, paired by task. `difference` is that of the success rates, with its
    95 % bounds; `p` the exact sign test over the tasks that differ."""

    tasks: int
    better: int
    worse: int
    difference: float
    low: float
    high: float
    p: float
    tells: bool
    """Whether the difference can be told from chance."""
    ratios: tuple[Ratio, ...] = ()


class Evaluation(Wire):
    """Everything, as `daiku eval --json` writes it."""

    version: Literal[1] = 1
    settings: tuple[SettingInfo, ...]
    attempts: tuple[Attempt, ...]
    totals: tuple[Totals, ...]
    comparison: Comparison | None = None
    max_cost: float | None = None
    bound_reached: bool = False
    """Runs were left out or cut for the bound of cost."""
    interrupted: bool = False

"""Results of an evaluation as values and JSON: attempts, totals, and the comparison of two settings."""

from __future__ import annotations

from typing import Literal

from daiku.domain.base import Localizable, Wire
from daiku.domain.messages import Usage
from daiku.domain.runs import RunStatus
from daiku.texts.text import NO_TEXT, Text

Outcome = Literal["proved", "not_proved", "skipped", "not_started", "stopped", "broken"]
"""Outcomes of an attempt.

`proved`: the run completed and every check passed. `skipped`: a program is missing. `not_started`, `stopped`:
the cost limit or an interruption came before or during the run. `broken`: the setup failed, or the model was
unavailable.
"""
COUNTED: tuple[Outcome, ...] = ("proved", "not_proved")
"""Outcomes that count for a setting."""


class SettingInfo(Wire):
    """One side: its label, model, settings that differ from the user's, and the ids of its lessons."""

    label: str
    model: str
    overrides: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()


class CheckResult(Wire):
    """A check after the run: a command with its exit code and the end of its output."""

    command: str
    ok: bool
    exit_code: int
    seconds: float
    output: str = ""


class EvalAttempt(Localizable):
    """One run of a task with a setting. `seconds` is the duration of the run.

    `why` adds to the checks: missing programs, failures, and files that must not change but did.
    """

    task: str
    language: str
    setting: str
    repeat: int
    outcome: Outcome
    ended: RunStatus | None = None
    why: Text = NO_TEXT
    calls: tuple[Usage, ...] = ()
    """Model calls in order, including those of nested runs."""
    usage: Usage = Usage()
    seconds: float = 0.0
    session: str = ""
    checks: tuple[CheckResult, ...] = ()
    kept: str = ""
    """Path of the copy, if it was kept."""


class Totals(Wire):
    """All attempts of one setting. `low` and `high` are the 95 % interval of the success rate (Wilson)."""

    setting: str
    counted: int
    proved: int
    low: float
    high: float
    other: int
    """Number of attempts that do not count: skipped, not started, stopped, broken."""
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    cost: float | None
    seconds: float


class Ratio(Wire):
    """Usage of the second setting relative to the first (geometric mean over tasks).

    The bounds are absent with fewer than two tasks.
    """

    what: Literal["calls", "prompt_tokens", "completion_tokens", "cost", "seconds"]
    tasks: int
    ratio: float
    low: float | None = None
    high: float | None = None
    differs: bool = False
    """Whether the interval excludes 1."""


class Comparison(Wire):
    """Comparison of the second setting with the first, paired by task.

    `difference` is that of the success rates, with its 95 % interval; `p` is the exact sign test.
    """

    tasks: int
    better: int
    worse: int
    difference: float
    low: float
    high: float
    p: float
    tells: bool
    """Whether the difference is significant."""
    ratios: tuple[Ratio, ...] = ()


class Evaluation(Wire):
    """The result of an evaluation, as `daiku eval --json` writes it."""

    version: Literal[1] = 1
    settings: tuple[SettingInfo, ...]
    attempts: tuple[EvalAttempt, ...]
    totals: tuple[Totals, ...]
    comparison: Comparison | None = None
    max_cost: float | None = None
    bound_reached: bool = False
    """Whether the cost limit ended or prevented runs."""
    interrupted: bool = False

"""An evaluation as lines: tasks, one line per attempt, totals, and the comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from daiku.domain.messages import Usage
from daiku.eval.attempt import find_missing_programs
from daiku.eval.compare import Comparison, EvalAttempt, Evaluation, Outcome, Ratio, Totals
from daiku.eval.copies import Task
from daiku.fronts.cli.display.term import Colour, Terminal, clip, columns, safe
from daiku.texts.terminal import localize, say

COLOURS: dict[Outcome, Colour] = {
    "proved": "green",
    "not_proved": "red",
    "skipped": "dim",
    "not_started": "dim",
    "stopped": "yellow",
    "broken": "yellow",
}
RIGHT = frozenset({3, 4, 5, 6, 7, 8})
"""Columns aligned to the right (numbers)."""
WHY = 160
"""Maximum columns of a reason."""


def task_lines(tasks: Sequence[Task]) -> Iterator[str]:
    """Yield the tasks with language, summary, and missing programs."""
    rows = [(safe(t.name), safe(t.file.language), safe(t.file.summary) + _missing_note(t)) for t in tasks]
    yield from _align_columns(rows, frozenset())


def command_lines(tasks: Sequence[Task]) -> Iterator[str]:
    """Yield the repository and the commands of each task, for the user's consent."""
    for task in tasks:
        file = task.file
        yield f"{safe(task.name)}:"
        if file.source is not None:
            yield f"  git clone {safe(file.source.git)}"
        network = say("eval.with_network") if file.network else ""
        yield from (f"  {safe(line)}{network}" for line in file.setup)
        yield from (f"  {safe(line)}" for line in file.checks.commands)


def _missing_note(task: Task) -> str:
    missing = find_missing_programs(task)
    return f"  ({say('eval.needs', names=safe(', '.join(missing)))})" if missing else ""


def progress_line(attempt: EvalAttempt, number: int, count: int, out: Terminal) -> str:
    """Return the line for a finished attempt."""
    outcome = out.paint(_outcome_text(attempt), COLOURS[attempt.outcome])
    parts = [f"[{number}/{count}]", safe(attempt.task), f"{attempt.setting}{attempt.repeat}", outcome]
    why = clip(safe(localize(attempt.why)), WHY)
    return " ".join([*parts, out.paint(why, "dim")] if why else parts)


def result_lines(evaluation: Evaluation, out: Terminal) -> Iterator[str]:
    """Yield the result table: attempts, totals, comparison, and how to inspect a run."""
    for side in evaluation.settings:
        lessons = [say("eval.with_lesson", id=safe(lesson)) for lesson in side.lessons]
        differences = ", ".join([*map(safe, side.overrides), *lessons])
        note = f" ({differences})" if differences else ""
        yield f"{side.label} = {safe(side.model) or say('eval.own_model')}{note}"
    head = tuple(say(f"eval.head.{name}") for name in HEADS)
    rows = [_row(a) for a in evaluation.attempts]
    colours: list[Colour] = ["bold", *(COLOURS[a.outcome] for a in evaluation.attempts)]
    for line, colour in zip(_align_columns([head, *rows], RIGHT), colours, strict=True):
        yield out.paint(line, colour)
    for attempt in evaluation.attempts:
        if why := safe(localize(attempt.why)):
            yield f"  {safe(attempt.task)} {attempt.setting}{attempt.repeat}: {clip(why, WHY)}"
    for totals in evaluation.totals:
        yield _total_line(totals)
    if evaluation.comparison is not None:
        yield from _comparison_lines(evaluation.comparison)
    if evaluation.bound_reached:
        yield say("eval.bound", most=f"${evaluation.max_cost:.2f}")
    if evaluation.max_cost and any(a.usage.cost is None and a.calls for a in evaluation.attempts):
        yield say("eval.no_price")
    if session := next((a.session for a in evaluation.attempts if a.session), ""):
        yield say("eval.look", session=session)
    for attempt in evaluation.attempts:
        if attempt.kept:
            yield say("eval.kept", task=safe(attempt.task), folder=safe(attempt.kept))


HEADS = (
    "task",
    "setting",
    "result",
    "calls",
    "prompt",
    "completion",
    "cached",
    "cost",
    "time",
    "ended",
    "session",
)


def call_lines(evaluation: Evaluation) -> Iterator[str]:
    """Yield the prompt tokens of every call of every attempt, with their sum."""
    for attempt in evaluation.attempts:
        tokens = " + ".join(f"{call.prompt_tokens:,}" for call in attempt.calls)
        if tokens:
            name = f"{safe(attempt.task)} {attempt.setting}{attempt.repeat}"
            yield say(
                "eval.calls",
                name=name,
                each=tokens,
                total=f"{attempt.usage.prompt_tokens:,}",
                count=len(attempt.calls),
            )


def _row(attempt: EvalAttempt) -> tuple[str, ...]:
    usage = attempt.usage
    has_calls = bool(attempt.calls)
    return (
        safe(attempt.task),
        f"{attempt.setting}{attempt.repeat}",
        _outcome_text(attempt),
        str(len(attempt.calls)) if has_calls else "",
        f"{usage.prompt_tokens:,}" if has_calls else "",
        f"{usage.completion_tokens:,}" if has_calls else "",
        f"{usage.cached_tokens:,}" if has_calls else "",
        _cost_text(usage),
        f"{attempt.seconds:.1f} s" if attempt.seconds else "",
        say(f"status.{attempt.ended}") if attempt.ended else "",
        attempt.session,
    )


def _outcome_text(attempt: EvalAttempt) -> str:
    return say(f"eval.outcome.{attempt.outcome}")


def _cost_text(usage: Usage) -> str:
    return "" if usage.cost is None else f"${usage.cost:.4f}"


def _total_line(totals: Totals) -> str:
    return say(
        "eval.total",
        setting=totals.setting,
        proved=totals.proved,
        counted=totals.counted,
        low=f"{totals.low:.0%}",
        high=f"{totals.high:.0%}",
        other=totals.other,
        calls=f"{totals.calls:,}",
        prompt=f"{totals.prompt_tokens:,}",
        completion=f"{totals.completion_tokens:,}",
        cached=f"{totals.cached_tokens:,}",
        cost="–" if totals.cost is None else f"${totals.cost:.4f}",
        time=f"{totals.seconds:.0f}",
    )


def _comparison_lines(comparison: Comparison) -> Iterator[str]:
    yield say(
        "eval.compared",
        tasks=comparison.tasks,
        difference=f"{comparison.difference * 100:+.0f}",
        low=f"{comparison.low * 100:+.0f}",
        high=f"{comparison.high * 100:+.0f}",
        better=comparison.better,
        worse=comparison.worse,
        p=f"{comparison.p:.3f}",
    )
    yield say("eval.tells") if comparison.tells else say("eval.tells_not")
    for ratio in comparison.ratios:
        yield _ratio_line(ratio)


def _ratio_line(ratio: Ratio) -> str:
    what = say(f"eval.used.{ratio.what}")
    if ratio.low is None or ratio.high is None:
        return say("eval.ratio_one", what=what, ratio=f"{ratio.ratio:.2f}")
    return say(
        "eval.ratio",
        what=what,
        ratio=f"{ratio.ratio:.2f}",
        low=f"{ratio.low:.2f}",
        high=f"{ratio.high:.2f}",
        tasks=ratio.tasks,
        tells="" if ratio.differs else f" – {say('eval.tells_not')}",
    )


def _align_columns(rows: Sequence[tuple[str, ...]], right: frozenset[int]) -> Iterator[str]:
    """Yield the rows with aligned columns."""
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            _pad(cell, width, right=n in right)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def _pad(cell: str, width: int, *, right: bool) -> str:
    blanks = " " * (width - columns(cell))
    return blanks + cell if right else cell + blanks

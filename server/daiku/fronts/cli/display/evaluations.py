"""An evaluation as lines: the tasks, one line an attempt, totals, and two settings compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from daiku.domain.messages import Usage
from daiku.eval.attempt import missing_programs
from daiku.eval.results import Attempt, Comparison, Evaluation, Outcome, Ratio, Totals
from daiku.eval.task import Task
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
"""The columns of numbers."""
WHY = 160


def task_lines(tasks: Sequence[Task]) -> Iterator[str]:
    """The tasks with their languages and what they are about; of those that cannot run here, why."""
    rows = [(safe(t.name), safe(t.file.language), safe(t.file.summary) + _needs(t)) for t in tasks]
    yield from _aligned(rows, frozenset())


def command_lines(tasks: Sequence[Task]) -> Iterator[str]:
    """Yield the repository and the commands of each task, for the user who is to allow them."""
    for task in tasks:
        file = task.file
        yield f"{safe(task.name)}:"
        if file.source is not None:
            yield f"  git clone {safe(file.source.git)}"
        network = say("eval.with_network") if file.network else ""
        yield from (f"  {safe(line)}{network}" for line in file.setup)
        yield from (f"  {safe(line)}" for line in file.checks.commands)


def _needs(task: Task) -> str:
    missing = missing_programs(task)
    return f"  ({say('eval.needs', names=safe(', '.join(missing)))})" if missing else ""


def progress_line(attempt: Attempt, number: int, count: int, out: Terminal) -> str:
    """One attempt that is over, while others go on."""
    outcome = out.paint(_outcome(attempt), COLOURS[attempt.outcome])
    parts = [f"[{number}/{count}]", safe(attempt.task), f"{attempt.setting}{attempt.repeat}", outcome]
    why = clip(safe(localize(attempt.why)), WHY)
    return " ".join([*parts, out.paint(why, "dim")] if why else parts)


def result_lines(found: Evaluation, out: Terminal) -> Iterator[str]:
    """The whole table: attempts, totals, the comparison, and how to look at a run."""
    for side in found.settings:
        lessons = [say("eval.with_lesson", id=safe(each)) for each in side.lessons]
        differs = ", ".join([*map(safe, side.overrides), *lessons])
        changed = f" ({differs})" if differs else ""
        yield f"{side.label} = {safe(side.model) or say('eval.own_model')}{changed}"
    head = tuple(say(f"eval.head.{name}") for name in HEADS)
    rows = [_row(a) for a in found.attempts]
    colours: list[Colour] = ["bold", *(COLOURS[a.outcome] for a in found.attempts)]
    for line, colour in zip(_aligned([head, *rows], RIGHT), colours, strict=True):
        yield out.paint(line, colour)
    for attempt in found.attempts:
        if why := safe(localize(attempt.why)):
            yield f"  {safe(attempt.task)} {attempt.setting}{attempt.repeat}: {clip(why, WHY)}"
    for totals in found.totals:
        yield _total(totals)
    if found.comparison is not None:
        yield from _compared(found.comparison)
    if found.bound_reached:
        yield say("eval.bound", most=f"${found.max_cost:.2f}")
    if found.max_cost and any(a.usage.cost is None and a.calls for a in found.attempts):
        yield say("eval.no_price")
    if session := next((a.session for a in found.attempts if a.session), ""):
        yield say("eval.look", session=session)
    for attempt in found.attempts:
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


def call_lines(found: Evaluation) -> Iterator[str]:
    """The prompt tokens of every call of every attempt, and their sum."""
    for attempt in found.attempts:
        each = " + ".join(f"{call.prompt_tokens:,}" for call in attempt.calls)
        if each:
            name = f"{safe(attempt.task)} {attempt.setting}{attempt.repeat}"
            yield say(
                "eval.calls",
                name=name,
                each=each,
                total=f"{attempt.usage.prompt_tokens:,}",
                count=len(attempt.calls),
            )


def _row(attempt: Attempt) -> tuple[str, ...]:
    used = attempt.usage
    asked = bool(attempt.calls)
    return (
        safe(attempt.task),
        f"{attempt.setting}{attempt.repeat}",
        _outcome(attempt),
        str(len(attempt.calls)) if asked else "",
        f"{used.prompt_tokens:,}" if asked else "",
        f"{used.completion_tokens:,}" if asked else "",
        f"{used.cached_tokens:,}" if asked else "",
        _cost(used),
        f"{attempt.seconds:.1f} s" if attempt.seconds else "",
        say(f"status.{attempt.ended}") if attempt.ended else "",
        attempt.session,
    )


def _outcome(attempt: Attempt) -> str:
    return say(f"eval.outcome.{attempt.outcome}")


def _cost(used: Usage) -> str:
    return "" if used.cost is None else f"${used.cost:.4f}"


def _total(totals: Totals) -> str:
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


def _compared(found: Comparison) -> Iterator[str]:
    yield say(
        "eval.compared",
        tasks=found.tasks,
        difference=f"{found.difference * 100:+.0f}",
        low=f"{found.low * 100:+.0f}",
        high=f"{found.high * 100:+.0f}",
        better=found.better,
        worse=found.worse,
        p=f"{found.p:.3f}",
    )
    yield say("eval.tells") if found.tells else say("eval.tells_not")
    for ratio in found.ratios:
        yield _ratio(ratio)


def _ratio(ratio: Ratio) -> str:
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


def _aligned(rows: Sequence[tuple[str, ...]], right: frozenset[int]) -> Iterator[str]:
    """Rows with their columns below one another, as wide as what they hold."""
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            _padded(cell, width, right=n in right)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def _padded(cell: str, width: int, *, right: bool) -> str:
    blanks = " " * (width - columns(cell))
    return blanks + cell if right else cell + blanks

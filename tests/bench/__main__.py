"""`python -m tests.bench`: measures everything and prints one table; exits with 1 where a goal is missed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Protocol

from tests.bench import (
    checkpoints,
    echo,
    edits,
    fronts,
    imports,
    lessons,
    loop,
    peers,
    playbook,
    retrieval,
    start,
    store,
    streams,
)
from tests.bench.measure import OWN_CORE, Row, pin


class Bench(Protocol):
    """Measures one thing; `quick` with fewer rounds."""

    def __call__(self, *, quick: bool) -> list[Row]: ...


TABLE: dict[str, Bench] = {
    "turns": loop.turns,
    "deltas": loop.deltas,
    "start": start.start,
    "imports": imports.imports,
    "streams": streams.streams,
    "fronts": fronts.fronts,
    "edits": edits.edits,
    "store": store.store,
    "retrieval": retrieval.retrieval,
    "lessons": lessons.lessons,
    "playbook": playbook.playbook,
    "checkpoints": checkpoints.checkpoints,
    "echo": echo.echo,
}
ALONE = ("start", "imports", "echo", "fronts")
"""These start processes, which may use both cores as they would at a person's desk."""


def measure(names: list[str], *, quick: bool, beside: bool, tell: Callable[[str], None]) -> list[Row]:
    """The rows of `names`; with `beside`, peers are measured too."""
    rows = list[Row]()
    for name in sorted(names, key=lambda each: each not in ALONE):
        tell(f"measuring {name} …")
        if name not in ALONE:
            pin(OWN_CORE)
        rows += TABLE[name](quick=quick)
    if beside:
        tell("measuring peers …")
        pin(OWN_CORE)
        rows += peers.against(quick=quick)
    return rows


def table(rows: list[Row]) -> str:
    """The rows as text, one a line."""
    head = ("what", "against", "floor", "ours", "unit", "ratio", "goal", "")
    lines = [head, *(_line(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    right = {2, 3, 5, 6}
    return "\n".join(
        "  ".join(
            c.rjust(w) if i in right else c.ljust(w)
            for i, (c, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _line(row: Row) -> tuple[str, ...]:
    goal = "" if row.goal is None else f"≤ {row.goal:g}" + (f" ({row.wish:g})" if row.wish else "")
    verdict = "" if row.goal is None else "ok" if row.ok else "OVER"
    return (
        row.what,
        row.against,
        f"{row.floor:.3g}",
        f"{row.ours:.3g}",
        row.unit,
        f"{row.ratio:.2f}",
        goal,
        verdict,
    )


def main() -> int:
    """Measure what the command line names; the exit code."""
    parser = argparse.ArgumentParser(prog="npm run bench --", description=__doc__)
    parser.add_argument(
        "--only", action="append", choices=sorted(TABLE), help="measure this alone (repeatable)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--peers", action="store_true", help="also agno, pydantic-ai and openai-agents")
    given = parser.parse_args()

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    rows = measure(given.only or list(TABLE), quick=given.quick, beside=given.peers, tell=tell)
    if given.json:
        print(json.dumps([{**asdict(r), "ratio": r.ratio, "ok": r.ok} for r in rows], indent=1))
    else:
        print(table(rows))
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

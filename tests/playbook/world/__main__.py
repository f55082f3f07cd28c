"""`npm run world`: runs arms in simulated worlds, keeps the results, prints them beside the bounds, and draws the curves."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.playbook.world.arms import ARMS, Row
from tests.playbook.world.arms import ROWS as OURS
from tests.playbook.world.attempts import MakesArm
from tests.playbook.world.beside import arms as others
from tests.playbook.world.course import COURSES, passed_in
from tests.playbook.world.curves import drawing
from tests.playbook.world.drawn import TASKS, drawn
from tests.playbook.world.report import Results, bounds, loaded, table

KEPT = Path(__file__).with_name("results.json")
ROWS = (*OURS, *others.ROWS)
TOLD_IN = ("README.md", "README.ja.md")
"""Pages beside the results that hold them too, between two marks."""
BEGIN, END = "<!-- results: written by npm run world -->\n", "<!-- /results -->"
SEEDS = tuple(range(20))
"""The worlds of the report. Nobody looks into them while something is built: that is done with seeds from 1000 on."""


def ran(
    row: Row, make: MakesArm, seeds: Sequence[int], tasks: int = TASKS
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Which tasks a row passed, for each world, and how many tokens of advice a task had there."""
    found: list[str] = []
    tokens: list[int] = []
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="world") as folder:
            arm = make(seed)
            told: list[int] = []
            place, course = Path(folder) / "repository", COURSES[row.course]
            found.append(passed_in(drawn(seed, tasks), arm, course, place, tokens=told))
            tokens.append(round(sum(told) / len(told)))
    return tuple(found), tuple(tokens)


def arms_of(rows: Sequence[Row]) -> list[tuple[Row, MakesArm]]:
    """The rows that can be run here, with their arms; a sentence is printed on each that cannot."""
    arms = dict(ARMS)
    if any(row in others.ROWS for row in rows):
        found = others.beside()
        arms |= found.arms
        for why in found.missing:
            print(why, file=sys.stderr)
    return [(row, arms[row.arm]) for row in rows if row.arm in arms]


def asked(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line says."""
    reads = argparse.ArgumentParser(prog="npm run world --", description=__doc__)
    reads.add_argument("--rows", help=f"names with ; between them: {'; '.join(row.name for row in ROWS)}")
    reads.add_argument("--seeds", default="0-19", help="FIRST-LAST; 1000 and more to try things out")
    reads.add_argument("--tasks", type=int, default=TASKS)
    reads.add_argument(
        "--out", type=Path, default=KEPT, help="results so far; rows that are run take their place"
    )
    reads.add_argument("--draw", action="store_true", help="only print and draw what is kept")
    return reads.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, keep, print, draw; 1 where a bound is missed."""
    given = asked(arguments)
    first, _, last = given.seeds.partition("-")
    seeds = tuple(range(int(first), int(last or first) + 1))
    results = loaded(given.out) or Results(seeds=seeds, tasks=given.tasks)
    if (results.seeds, results.tasks) != (seeds, given.tasks):
        print(f"{given.out} is of other seeds or tasks: give another --out", file=sys.stderr)
        return 2
    wanted = [each.strip() for each in given.rows.split(";")] if given.rows else [row.name for row in ROWS]
    rows = [] if given.draw else [row for row in ROWS if row.name in wanted]
    for row, make in arms_of(rows):
        begun = time.monotonic()
        results = results.with_row(row.name, *ran(row, make, seeds, given.tasks))
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(results.model_dump_json(indent=1) + "\n")
        print(f"{row.name}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    judged = bounds(results) if given.tasks == TASKS else []
    lines = [f"- {'kept' if each.kept else '**MISSED**'}: {each.says}: {each.measured}\n" for each in judged]
    told = f"{table(results)}\n{''.join(lines)}"
    print(told)
    given.out.with_suffix(".svg").write_text(drawing(results))
    for page in (given.out.with_name(name) for name in TOLD_IN):
        if page.exists():
            before, _, rest = page.read_text().partition(BEGIN)
            page.write_text(f"{before}{BEGIN}\n{told}\n{END}{rest.partition(END)[2]}")
    return 0 if all(each.kept for each in judged) else 1


if __name__ == "__main__":
    sys.exit(main())

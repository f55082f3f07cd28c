"""Editing a block of ten lines at 80 % of 100,000 lines, against finding it and seeing that it is the only one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from daiku.domain.work.patches import SearchReplace
from daiku.edits.rules.edits import apply_edits
from tests.bench.measure import Row, Work, alternate

LINES, AT, BLOCK = 100_000, 80_000, 10
TIMES = 5


def edits(*, quick: bool) -> list[Row]:
    """Exact, and with three kinds of drift. What comes out is compared with what should, in each case."""
    lines = [
        f"{'    ' * (i % 4)}value_{i % 977} = compute(item_{i}, {i * 7919 % 10_007})" for i in range(LINES)
    ]
    block = lines[AT : AT + BLOCK]
    text = "\n".join(lines) + "\n"
    new = [line.replace("compute", "work_out") for line in block]
    right = "\n".join([*lines[:AT], *new, *lines[AT + BLOCK :]]) + "\n"
    exact, said = "\n".join(block), "\n".join(new)

    def find() -> None:
        at = text.find(exact)
        assert text.find(exact, at + 1) < 0

    def by_hand() -> None:
        find()
        assert len(text.replace(exact, said, 1)) == len(right)

    def edit(search: str, replace: str) -> Callable[[], None]:
        change = [SearchReplace(search=search, replace=replace)]
        assert apply_edits(text, change) == right
        return lambda: _done(apply_edits(text, change))

    def refuse() -> None:
        assert not isinstance(apply_edits(text, [SearchReplace(search=absent, replace="x")]), str)

    absent = exact.replace("compute", "komputiere")
    cases: list[tuple[str, Callable[[], None], Callable[[], None], float | None, str]] = [
        ("exact", by_hand, edit(exact, said), 1.5, "str.find twice, str.replace"),
        ("exact", find, edit(exact, said), None, "str.find twice: no new text"),
        ("other indentation", find, edit(_indented(block), _indented(new)), 8.0, "str.find twice"),
        ("blanks at the ends", find, edit(exact.replace("\n", "  \n"), said), 8.0, "str.find twice"),
        ("absent, refused", find, refuse, None, "str.find twice"),
    ]
    rows = list[Row]()
    for name, floor, ours, goal, against in cases:
        found = asyncio.run(alternate(_often(floor), _often(ours), 5 if quick else 15))
        rows.append(found.row(f"edit, {name}", goal, scale=1000 / TIMES, unit="ms CPU", against=against))
    return rows


def _indented(lines: list[str]) -> str:
    return "\n".join("  " + line for line in lines)


def _often(work: Callable[[], None]) -> Work:
    async def repeated() -> None:
        for _ in range(TIMES):
            work()

    return repeated


def _done(result: object) -> None:
    assert isinstance(result, str)

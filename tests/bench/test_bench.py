"""The benchmarks run, and nothing has become many times slower than it was: generous, for busy machines."""

from __future__ import annotations

import pytest

from tests.bench.__main__ import TABLE, table
from tests.bench.measure import Row
from tests.cases import for_each

pytestmark = [pytest.mark.bench, pytest.mark.slow]

# What hangs on the clock of a busy machine, and not on work alone, gets more room.
ROOM = {"streams": 4.0, "start": 2.0, "echo": 4.0, "fronts": 4.0}


@for_each("name", TABLE)
def test_nothing_is_far_over_its_goal(name: str) -> None:
    rows = TABLE[name](quick=True)
    far = [row for row in rows if row.goal is not None and row.ratio > row.goal * ROOM.get(name, 1.5)]
    assert not far, table(far)


def test_the_table_says_what_is_over() -> None:
    rows = [Row("a", 1.0, 2.0, 3.0), Row("b", 1.0, 4.0, 3.0), Row("c", 1.0, 9.0, None)]
    lines = table(rows).splitlines()
    assert [line.split()[-1] for line in lines[1:]] == ["ok", "OVER", "9.00"]

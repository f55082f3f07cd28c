"""Blocks of lines are found wherever they stand."""

from __future__ import annotations

from daiku.edits.rules.matching.match import find_lines


def test_a_line_that_stands_thousands_of_times_is_found_in_all_its_places() -> None:
    lines = 2500
    found = find_lines("pass\n" * lines, ["pass"])
    assert [match.start for match in found] == [5 * number for number in range(lines)]

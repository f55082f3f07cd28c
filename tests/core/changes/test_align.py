"""Alignment of lines: good where it matters, bounded always."""

from __future__ import annotations

from daiku.edits.rules.changes.diff import compute_line_ops
from tests.timing import cpu_seconds


def changed(old: list[str], new: list[str]) -> list[tuple[str, int, int, int, int]]:
    return [op for op in compute_line_ops(old, new) if op[0] != "equal"]


def test_two_small_changes_far_apart_are_two_small_changes() -> None:
    old = [f"line {i}" for i in range(50_000)]
    new = [*old[:10], "x", *old[11:49_000], *old[49_002:], "end"]
    assert changed(old, new) == [
        ("replace", 10, 11, 10, 11),
        ("delete", 49_000, 49_002, 49_000, 49_000),
        ("insert", 50_000, 50_000, 49_998, 49_999),
    ]


def test_a_moved_block_is_taken_out_and_put_in() -> None:
    old = ["a", "b", "c", "d", "e", "f", "g"]
    assert changed(old, ["c", "d", "e", "f", "a", "b", "g"]) == [
        ("delete", 0, 2, 0, 0),
        ("insert", 6, 6, 4, 6),
    ]


def test_lines_that_repeat_are_aligned_between_those_that_do_not() -> None:
    old = ["def f():", "    pass", "", "def g():", "    pass", "", "def h():", "    pass"]
    new = ["def f():", "    pass", "", "def h():", "    pass"]
    assert changed(old, new) == [("delete", 3, 6, 3, 3)]


def test_no_two_texts_take_long() -> None:
    def align() -> None:
        compute_line_ops(["x", "y"] * 5000, ["y", "x", "x"] * 3000)
        compute_line_ops(["x", "y"] * 150, ["y", "x", "x"] * 100)
        compute_line_ops([str(i) for i in range(20_000)], [str(i) for i in reversed(range(20_000))])

    assert cpu_seconds(align) < 4

"""What an edit did to the editor's problems."""

from __future__ import annotations

from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.runs import Position, Range
from daiku.domain.work.patches import FileChange
from daiku.edits.rules.changes.diagnostics import compute_problem_delta, format_problem_delta
from daiku.run.rules.outside import Diagnostic

Severity = Literal["error", "warning", "info", "hint"]


def at(line: int, message: str = "wrong", path: str = "a.py", severity: Severity = "error") -> Diagnostic:
    span = Range(start=Position(line=line, character=0), end=Position(line=line, character=1))
    return Diagnostic(path, span, severity, message, "lint")


def edit(old: str, new: str, path: str = "a.py") -> FileChange:
    return FileChange(path=path, kind="edit", old=old, new=new)


def test_a_problem_that_moved_with_its_line_is_no_new_one() -> None:
    found = compute_problem_delta([at(1)], [at(3)], [edit("a\nbad\n", "new\nnew\na\nbad\n")])
    assert (found.new, found.fixed) == ((), 0)


def test_a_new_problem_is_told_and_a_mended_one_counted() -> None:
    found = compute_problem_delta(
        [at(0, "old")], [at(1, "y is not defined")], [edit("x\ny = 1\n", "z\ny = q\n")]
    )
    assert [d.message for d in found.new] == ["y is not defined"]
    assert found.fixed == 1
    assert format_problem_delta(found) == (
        "New problems in the editor since this edit (1 error; 1 fixed):\na.py:2:1 error: y is not defined [lint]"
    )


def test_a_problem_of_a_line_that_was_rewritten_stays_the_same_when_it_says_the_same() -> None:
    change = edit("a\nx = bad\nb\n", "a\n# why\n# and how\nx = bad + 1\nb\n")
    assert compute_problem_delta([at(1)], [at(3)], [change]).new == ()
    twice = compute_problem_delta([at(1)], [at(1), at(3)], [change])
    assert (len(twice.new), twice.fixed) == (1, 0)


def test_a_second_one_of_the_same_kind_elsewhere_is_new() -> None:
    found = compute_problem_delta([at(0)], [at(0), at(4)], [edit("x\na\nb\nc\nd\n", "x\na\nb\nc\ne\n")])
    assert [d.range.start.line for d in found.new] == [4]


def test_numbers_in_messages_may_move() -> None:
    change = edit("a\nb\n", "0\na\nb\n")
    assert (
        compute_problem_delta([at(1, "declared in line 1")], [at(2, "declared in line 2")], [change]).new
        == ()
    )


def test_problems_of_other_files_count_and_hints_do_not() -> None:
    here, there = at(0, "unused", severity="hint"), at(7, "no such name", "user.py")
    found = compute_problem_delta([], [here, there], [edit("a\n", "b\n")])
    assert [d.path for d in found.new] == ["user.py"]


def test_what_went_with_its_file_is_not_called_fixed_and_a_moved_file_keeps_its_own() -> None:
    gone = FileChange(path="a.py", kind="delete", old="x\n")
    assert compute_problem_delta([at(0)], [], [gone]).fixed == 0
    moved = FileChange(path="a.py", kind="rename", old="x\n", new="x\n", to="b.py")
    found = compute_problem_delta([at(0)], [at(0, path="b.py")], [moved])
    assert (found.new, found.fixed) == ((), 0)


def test_the_worst_come_first_and_a_flood_is_bounded() -> None:
    flood = [at(n, f"{n}", severity="warning") for n in range(100)] + [at(200, "m" * 5000)]
    text = format_problem_delta(compute_problem_delta([], flood, [edit("a\n", "b\n")]))
    assert text.startswith(
        "New problems in the editor since this edit (1 error, 100 warnings):\na.py:201:1 error"
    )
    assert text.endswith("… and 81 more")
    assert len(text) < 3000
    assert format_problem_delta(compute_problem_delta([], [], [])) == ""
    assert (
        format_problem_delta(compute_problem_delta([at(0)], [], [edit("a\n", "b\n")]))
        == "Problems in the editor: 1 fixed, none new."
    )


lines = st.lists(st.sampled_from(["a", "b", "c", "bad", "other bad"]), max_size=12)


@given(lines, lines)
def test_problems_that_follow_their_lines_are_neither_new_nor_fixed(old: list[str], new: list[str]) -> None:
    """Each line that says `bad` has a problem: as many more, so many new; as many fewer, so many fixed."""

    def lint(text: list[str]) -> list[Diagnostic]:
        return [at(n, line) for n, line in enumerate(text) if "bad" in line]

    before, after = lint(old), lint(new)
    found = compute_problem_delta(before, after, [edit("\n".join(old), "\n".join(new))])
    assert len(found.new) - found.fixed == len(after) - len(before)
    assert all(d in after for d in found.new)
    same = compute_problem_delta(before, before, [edit("\n".join(old), "\n".join(old))])
    assert (same.new, same.fixed) == ((), 0)
    grown = compute_problem_delta(
        before, lint(["top", *old]), [edit("\n".join(old), "\n".join(["top", *old]))]
    )
    assert (grown.new, grown.fixed) == ((), 0)

"""The lines that decide survive every cut of an output: in order, bounded, with marks where lines are missing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daiku.texts.rules.decisive import decisive_lines, truncate_output, weight
from tests.cases import for_each

DECISIVE = (
    "FAILED tests/test_cart.py::test_total - AssertionError: assert 3 == 4",
    "E       assert 3 == 4",
    "ERROR tests/test_till.py - ImportError: no module",
    "ValueError: not a number",
    "shop.errors.OutOfStock: TimeoutError: too late",
    "============ 1 failed, 30 passed in 2.10s ============",
    "src/main.rs:10:5: error: expected `;`",
    "error[E0308]: mismatched types",
    "error: could not compile `shop`",
    "src/a.ts(3,5): error TS2322: Type 'string' is not assignable",
    "main.c:3:10: fatal error: shop.h: No such file or directory",
    "--- FAIL: TestTotal (0.00s)",
    "panic: runtime error: index out of range [3]",
    "thread 'main' panicked at src/main.rs:4:5:",
    "not ok 3 - adds",
    "  ✗ adds two prices",
    "Tests:       1 failed, 12 passed, 13 total",
    "test result: FAILED. 3 passed; 1 failed; 0 ignored",
    "make: *** [Makefile:3: all] Error 2",
    "Ran 31 tests in 0.301s",
)
PLAIN = ("PASSED", "  4 | total = 0", "Compiling shop v0.1.0", "tests/test_cart.py ........ [ 20%]", "")


@for_each("line", DECISIVE)
def test_lines_that_tools_print_of_failures_are_known(line: str) -> None:
    assert weight(line), line


@for_each("line", PLAIN)
def test_other_lines_are_not(line: str) -> None:
    assert not weight(line), line


def test_what_decides_is_kept_of_the_middle_in_order_and_the_rest_is_counted() -> None:
    noise = [f"tests/test_{n}.py ........ ok" for n in range(6000)]
    noise[2000], noise[3000], noise[3001] = DECISIVE[1], DECISIVE[0], DECISIVE[3]
    shown = truncate_output("\n".join(noise), 8000, "It is kept").split("\n")
    places = [shown.index(line) for line in (DECISIVE[1], DECISIVE[0], DECISIVE[3])]
    assert places == sorted(places)
    assert shown[places[1] + 1] == DECISIVE[3], "no mark between lines that follow each other"
    marks = [line for line in shown if line.startswith("[…")]
    assert "It is kept" in marks[0]
    counted = sum(int(mark.split()[1]) for mark in marks[1:])
    assert counted + len(shown) - len(marks) == 6000


@given(
    st.lists(st.sampled_from([*DECISIVE, *PLAIN, "x" * 500]), min_size=1, max_size=400),
    st.integers(400, 4000),
)
def test_a_cut_output_is_never_much_longer_than_asked(lines: list[str], limit: int) -> None:
    text = "\n".join(lines)
    shown = truncate_output(text, limit)
    assert len(shown) <= max(limit * 2, limit + 1500)
    if len(text) <= limit:
        assert shown == text


@given(st.lists(st.sampled_from([*DECISIVE, *PLAIN]), max_size=200), st.integers(0, 2000))
def test_decisive_lines_are_bounded_in_order_and_each_text_once(lines: list[str], room: int) -> None:
    found = decisive_lines("\n".join(lines), room)
    assert [at for at, _ in found] == sorted(at for at, _ in found)
    assert sum(len(line) + 1 for _, line in found) <= room
    assert len({line for _, line in found}) == len(found)
    assert all(lines[at] == line for at, line in found)

"""Edits that drift as models' do, of the files of this repository: none may come out wrong, and most are carried out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from random import Random

import pytest

from daiku.edits.rules.edits import apply_block
from daiku.edits.rules.matching.refusal import Refusal
from tests.conftest import ROOT
from tests.core.edits.drift import FILE, Case, outcome, patch_cases, search_cases

KINDS = ("server/daiku/**/*.py", "extension/**/*.ts", "**/package.json", "**/*.md", "**/*.yml", ".dev/*.mjs")
SEARCHES, PATCHES = 1743, 1310
Cases = Callable[[Sequence[str], Random], Iterator[Case]]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    places = sorted(place for kind in KINDS for place in ROOT.glob(kind) if "node_modules" not in place.parts)
    return [text for place in places if len(text := place.read_bytes().decode()) > 300]


@pytest.mark.slow  # thousands of edits
@pytest.mark.parametrize(("cases", "count"), [(search_cases, SEARCHES), (patch_cases, PATCHES)])
@pytest.mark.parametrize("seed", [7, pytest.param(8, marks=pytest.mark.slow)])
def test_drifted_edits_are_right_or_refused(cases: Cases, count: int, seed: int, texts: list[str]) -> None:
    known = (case for case in cases(texts, Random(seed)) if case.wanted is not None)
    counted, wrong = Counter[str](), list[str]()
    for case in islice(known, count):
        counted[result := outcome(case)] += 1
        if result == "wrong":
            wrong.append(f"{case.drift}:\n{case.edit}")
    assert not wrong, "\n".join(wrong)
    assert counted["right"] >= 0.85 * count, counted


def test_a_search_that_begins_within_a_line_is_refused(texts: list[str]) -> None:
    within = (case for case in search_cases(texts, Random(9)) if case.wanted is None)
    for case in islice(within, 268):
        assert outcome(case) == "refused", case.edit


def test_the_cases_are_the_same_for_the_same_seed(texts: list[str]) -> None:
    one, other = (list(islice(patch_cases(texts, Random(1)), 20)) for _ in range(2))
    assert one == other
    assert all(FILE in case.edit for case in one)


@pytest.mark.parametrize(
    ("search", "replace"),
    [
        ("def a():\n    x = 1\n", "def a():\n    x = 2\n"),
        ("if a:\n    x = 1\n    y = 2\n", "if a:\n    x = 1\n    y = 3\n"),
    ],
)
def test_a_search_that_lacks_a_blank_line_is_not_applied_at_a_deeper_place(search: str, replace: str) -> None:
    first, *rest = search.splitlines(keepends=True)
    intended = first + "\n" + "".join(rest)
    deeper = "class B:\n" + "".join(f"    {line}" for line in search.splitlines(keepends=True))
    assert isinstance(apply_block(intended + "\n\n" + deeper, search, replace), Refusal)


@pytest.mark.parametrize("below", [True, False])
def test_lines_added_beside_a_blank_line_need_that_blank_line_in_the_file(below: bool) -> None:
    kept, left_out = "    print(name)\n", "    print(secret)\n"
    text = f"def show():\n{kept}{left_out}\n\ndef other():\n    pass\n" if below else f"{left_out}{kept}"
    search, replace = (f"{kept}\n", f"{kept}\n\ndef new():\n    pass\n\n")
    if not below:
        search, replace = (f"\n{kept}", f"\n    print(first)\n\n{kept}")
    assert isinstance(apply_block(text, search, replace), Refusal)


def test_a_stray_blank_line_at_the_edge_of_a_plain_replacement_is_forgiven() -> None:
    assert apply_block("a = 1\nb = 2\nc = 3\n", "b = 2\n\n", "b = 5\n\n") == "a = 1\nb = 5\nc = 3\n"

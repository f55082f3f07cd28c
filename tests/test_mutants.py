"""The mutants of `npm run mutants` are well formed: their texts and tests are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants import lines_with_tests, problem_of, read_mutants


def test_every_mutant_changes_a_text_that_is_there_once_and_names_a_test_of_its_line() -> None:
    wrong = [f"{each.source} ({each.id}): {why}" for each in read_mutants() if (why := problem_of(each))]
    assert not wrong, "\n".join(wrong)


def test_a_mutant_that_could_not_be_tried_is_named(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "a.py").write_text("one\ntwo two\n")
    (tmp_path / "tests/test_a.py").write_text(
        'def test_a():\n    """R1.2: it holds."""\n\n\ndef test_c():\n    """C1.2, X.7."""\n'
    )
    form = '[[mutant]]\nid = "{}"\nfile = "{}"\nold = "{}"\nnew = "{}"\ntest = "tests/test_a.py::{}"\n'
    cases = {
        ("R1.2", "a.py", "one", "1", "test_a"): "",
        ("R1.2", "a.py", "one", "1", "test_a[x]"): "",
        ("C1.2", "a.py", "one", "1", "test_c"): "",
        ("X.7", "a.py", "one", "1", "test_c"): "",
        ("X7", "a.py", "one", "1", "test_c"): "is no line of the requirements",
        ("R", "a.py", "one", "1", "test_a"): "is no line of the requirements",
        ("R1.2", "b.py", "one", "1", "test_a"): "there is no file b.py",
        ("R1.2", "tests/test_a.py", "one", "1", "test_a"): "of the product",
        ("R1.2", "a.py", "two", "2", "test_a"): "stands 2 times",
        ("R1.2", "a.py", "one", "one", "test_a"): "its new text is the old one",
        ("R1.2", "a.py", "one", "1", "test_b"): "there is no test",
        ("R1.3", "a.py", "one", "1", "test_a"): "R1.3 is not in the docstring of test_a",
    }
    (tmp_path / "mine.toml").write_text("".join(form.format(*case) for case in cases))
    for mutant, words in zip(read_mutants(tmp_path), cases.values(), strict=True):
        why = problem_of(mutant, tmp_path)
        assert why == words == "" or (words and words in why), (mutant, why)
    (tmp_path / "mine.toml").write_text('[[mutant]]\nid = "R1.2"\n')
    with pytest.raises(ValueError, match=r"mine.toml, mutant 1: has \['id'\]"):
        read_mutants(tmp_path)


DECIDED = (7, 8, 10, 11, 12, 20, 21, 22, 25, 27, 30)
"""Contradictions among the seeds whose decision the framework carries out."""


def test_every_line_of_the_framework_and_every_decision_on_it_has_a_test_and_a_mutant() -> None:
    lines = [f"R1.{number}" for number in range(1, 99)]
    lines += [*(f"C1.{number}" for number in range(1, 16)), *(f"X.{number}" for number in DECIDED)]
    tested, broken = lines_with_tests(), {each.id for each in read_mutants()}
    assert [line for line in lines if line not in tested] == []
    assert [line for line in lines if line not in broken] == []


def test_every_line_of_the_generator_has_a_test_and_a_mutant() -> None:
    lines = [*(f"R3.{number}" for number in range(1, 57)), *(f"C3.{number}" for number in range(1, 14))]
    tested, broken = lines_with_tests(), {each.id for each in read_mutants()}
    assert [line for line in lines if line not in tested] == []
    assert [line for line in lines if line not in broken] == []

"""Requests that ask for a change, measured on labeled requests of which most were written after the rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from daiku.run.rules.calls.change_requests import classify_request
from tests.timing import cpu_seconds

_FILE = Path(__file__).with_name("requests.txt")
MOST_MISSED, MOST_FALSE = 8, 3
"""Percent of the labeled requests that may be judged wrong."""


def _labeled(label: str) -> list[str]:
    lines = _FILE.read_text("utf-8").splitlines()
    return [line[2:].replace("\\n", "\n") for line in lines if line.startswith(label)]


def test_few_requests_for_a_change_are_missed() -> None:
    """A23.1: a run that did nothing is not taken for done."""
    changes = _labeled("+ ")
    missed = [request for request in changes if classify_request(request) == "answer"]
    assert len(changes) >= 100
    assert len(missed) * 100 <= MOST_MISSED * len(changes), missed


def test_few_requests_for_an_answer_are_taken_for_changes() -> None:
    """A23.1: a run that only answered is not accused."""
    answers = _labeled("- ")
    wrong = [request for request in answers if classify_request(request) != "answer"]
    assert len(answers) >= 100
    assert len(wrong) * 100 <= MOST_FALSE * len(answers), wrong


@pytest.mark.parametrize("piece", ["て", "and ", "please ", "then fix ", "don't ", "  x\n", "`", "can you "])
def test_a_long_request_is_judged_in_linear_time(piece: str) -> None:
    """A request may hold a pasted log of megabytes."""
    request = piece * 50_000
    assert cpu_seconds(lambda: classify_request(request)) < 3

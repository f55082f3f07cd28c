"""The bounds of the similarity guard."""

from __future__ import annotations

from daiku.guard.rules.guardrails.fingerprints import similarity_action
from tests.cases import for_each


@for_each(
    ("score", "action"),
    [(0.0, "pass"), (0.2799, "pass"), (0.28, "warn"), (0.4, "warn"), (0.4001, "block"), (1.0, "block")],
)
def test_the_bounds_themselves_are_warned_of(score: float, action: str) -> None:
    """C1.5, R1.63, R1.64, R1.65: 0.28 and 0.40 inclusive."""
    assert similarity_action(score) == action

"""The rubric for evaluating new texts, and the total of its scores (R1.66)."""

from __future__ import annotations

from collections.abc import Sequence

from daiku.domain.work.documents import Criterion, Document, Rubric, Score

BEST = 4
DEFAULT = Rubric(
    name="prose",
    criteria=(
        Criterion(id="request", text="It does what was asked, all of it and nothing else.", weight=2),
        Criterion(id="correct", text="What it says is right, and nothing in it is made up.", weight=2),
        Criterion(id="clear", text="A reader for whom it is meant understands it at the first reading."),
        Criterion(id="structure", text="Its parts stand in the order in which a reader needs them."),
        Criterion(id="style", text="Words, spelling and tone are those of the rest of the document."),
    ),
)


def find_rubric(document: Document) -> Rubric:
    """Return the document's rubric, else the default one."""
    return document.rubric or DEFAULT


def compute_total(rubric: Rubric, scores: Sequence[Score]) -> float:
    """Return the weighted mean of the scores, 0 to 1."""
    weights = {criterion.id: criterion.weight for criterion in rubric.criteria}
    weight_sum = sum(weights.values())
    return sum(weights[s.criterion] * s.score for s in scores if s.criterion in weights) / (weight_sum * BEST)

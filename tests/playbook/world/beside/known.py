"""What a stand-in for a model may know of an attempt: what our rule form makes of the same journal, and nothing more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from daiku.domain.playbook import Verdict
from daiku.models.tokens import estimate
from daiku.playbook.rules.curate import merge_proposals
from daiku.playbook.rules.outcome import judge_runs
from daiku.playbook.rules.reflect import reflect
from daiku.playbook.rules.similar import are_near_duplicates
from tests.playbook.world.attempts import Attempt


class Taught(NamedTuple):
    """What an attempt taught, as a line. `failed`: the commands that it says fail."""

    content: str
    failed: tuple[str, ...] = ()


def taught_by(attempt: Attempt, also: str = "") -> tuple[Taught, ...]:
    """What our rule form learns from the attempt; where that is nothing, `also`, which it would not learn."""
    found = merge_proposals(reflect(attempt.chunks), are_near_duplicates)
    return tuple(Taught(each.content, each.failed) for each in found) or ((Taught(also),) if also else ())


def verdicts_of(attempt: Attempt) -> Mapping[str, Verdict]:
    """What our rules say that the attempt showed of each lesson that it was told and that it named."""
    return {
        each.observation.bullet: each.observation.verdict
        for one in judge_runs(attempt.chunks)
        for each in one.bullets
    }


def within(texts: Sequence[str], budget: int) -> tuple[str, ...]:
    """The first texts that are not more than so many tokens together; one that is too long is left out."""
    chosen: list[str] = []
    for text in texts:
        size = estimate(text)
        if size <= budget:
            chosen.append(text)
            budget -= size
    return tuple(chosen)

"""Lessons that a person rejected and that runs teach again: when they are proposed once more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from daiku.core.playbook.lessons.proposal import Proposal
from daiku.core.playbook.lessons.similar import Alike, says_the_same
from daiku.domain.playbook import Delta, LearntFrom

LEAST = 2
"""So many further runs have to teach at least what a person did not want."""


def turned_down(proposal: Proposal, decided: Sequence[Delta], alike: Alike) -> Delta | None:
    """The last change that a person rejected or took back, and that says what `proposal` says; None where there is none, and
    where it waits for them already."""
    same = [each for each in decided if says_the_same(proposal.content, each.content, alike)]
    same = [each for each in same if each.type in ("add", "update")]
    if not same or any(each.status == "proposed" for each in same):
        return None
    return same[-1] if same[-1].status in ("rejected", "undone") else None


def is_due(delta: Delta) -> bool:
    """Whether it is worth a person's word once more: as many further runs taught it as had taught it before, so that with
    each rejection it is longer until it comes again."""
    return runs_of(delta.again) >= max(LEAST, runs_of(delta.evidence))


def runs_of(places: Iterable[LearntFrom]) -> int:
    """How many runs these places are of."""
    return len({(each.session_id, each.run_id) for each in places})

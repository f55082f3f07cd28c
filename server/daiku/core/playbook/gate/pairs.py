"""Trials with and without a change, paired by case and round, and counted by case."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from daiku.core.playbook.gate.rule import Tally
from daiku.domain.trials import Arm, Case, Trial

_ORDER: tuple[tuple[Arm, Arm], ...] = (("without", "with"), ("with", "without"))


class Step(NamedTuple):
    """One trial that is to be made."""

    arm: Arm
    round: int


def steps_of(number: int, rounds: int) -> tuple[Step, ...]:
    """The trials of the `number`-th case, from 0. Which of a pair comes first alternates over rounds and cases, so that what
    changes with time (a service that is slow in the evening) speaks for neither."""
    return tuple(
        Step(arm, round_) for round_ in range(1, rounds + 1) for arm in _ORDER[(number + round_ - 1) % 2]
    )


def tally_of(cases: Iterable[Case], trials: Iterable[Trial]) -> Tally:
    """What came of `cases`. A round counts where both of its trials could be made; a case without such a round is untried."""
    made: dict[str, dict[int, dict[Arm, bool]]] = {}
    for each in trials:
        if each.passed is not None:
            made.setdefault(each.case, {}).setdefault(each.round, {})[each.arm] = each.passed
    tally = Tally()
    for case in cases:
        pairs = [ends for ends in made.get(case.run, {}).values() if len(ends) == len(_ORDER[0])]
        tally = _counted(tally, [each["with"] for each in pairs], [each["without"] for each in pairs])
    return tally


def _counted(tally: Tally, with_it: list[bool], without: list[bool]) -> Tally:
    """The tally with one case more."""
    if not with_it:
        return tally._replace(untried=tally.untried + 1)
    gain = sum(with_it) - sum(without)
    if gain > 0:
        return tally._replace(
            better=tally.better + 1, mended=tally.mended + (all(with_it) and not any(without))
        )
    if gain < 0:
        return tally._replace(
            worse=tally.worse + 1, broken=tally.broken + (all(without) and not any(with_it))
        )
    return tally._replace(same=tally.same + 1)

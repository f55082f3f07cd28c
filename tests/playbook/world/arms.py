"""The arms by name, and the rows that a report has: an arm, the way it goes, and what may not happen to it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from tests.playbook.world.attempts import Advises, MakesArm
from tests.playbook.world.knowing import Knowing
from tests.playbook.world.ours import Daiku, Nothing, Uncounted, Unmerged


def _ours(seed: int, **how: object) -> Advises:
    return Daiku(**how)  # type: ignore[arg-type]  # each row names what it takes out


def _nothing(seed: int) -> Advises:
    return Nothing()


ARMS: Mapping[str, MakesArm] = MappingProxyType(
    {
        "off": _nothing,
        "on": _ours,
        "on, 200 tokens": partial(_ours, name="on, 200 tokens", token_budget=200),
        "without counters": partial(_ours, name="without counters", store=Uncounted),
        "without merging": partial(_ours, name="without merging", store=Unmerged),
        "without reflector": partial(_ours, name="without reflector", reflects=False),
        "all that could be known": Knowing,
    }
)


class Row(NamedTuple):
    """A row of the report: an arm on a course."""

    arm: str
    course: str = "plain"

    @property
    def name(self) -> str:
        return self.arm if self.course == "plain" else f"{self.arm}, {self.course}"


ROWS = (
    Row("off"),
    Row("on"),
    Row("on, 200 tokens"),
    Row("on", "flipped"),
    Row("on", "wrong"),
    Row("on", "changed"),
    Row("without counters"),
    Row("without merging"),
    Row("without reflector"),
    Row("without counters", "wrong"),
    Row("all that could be known"),
    Row("off", "changed"),
    Row("all that could be known", "changed"),
    Row("without counters", "changed"),
    Row("without merging", "wrong"),
    Row("without merging", "changed"),
)

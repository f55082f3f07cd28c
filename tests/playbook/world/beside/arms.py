"""The arms beside ours by name, those that can be had here, a sentence on each that cannot, and their rows of the report."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from tests.playbook.world.arms import Row
from tests.playbook.world.attempts import Advises, MakesArm
from tests.playbook.world.beside import ace, environments, sleep
from tests.playbook.world.beside.child import Child
from tests.playbook.world.beside.environments import Missing
from tests.playbook.world.beside.inworld import InWorld
from tests.playbook.world.beside.notes import Notes
from tests.playbook.world.drawn import drawn

BUDGET = 1000
"""Tokens of advice that every arm has; no ACE playbook and no skill grew longer here."""

NOTES = "notes of half an hour"
ACE, ACE_MERGED, ACE_ALSO = "ACE", "ACE, analyzer on", "ACE, what passed too"
SLEEP, SLEEP_OPEN = "SkillOpt-Sleep", "SkillOpt-Sleep, gate off"
SLEEP_ALSO = "SkillOpt-Sleep, what passed too"


class Nights(NamedTuple):
    """When SkillOpt-Sleep has a night, and with which of its settings: of thirteen ways that were tried in other worlds than
    those of the report, the best with its gate and the best without."""

    every: int
    settings: Mapping[str, object]


GATED = Nights(20, {"recall_k": 20})
OPEN = Nights(10, {"recall_k": 10, "gate_mode": "off"})


class Beside(NamedTuple):
    """`arms`: what can be had; `missing`: a sentence on each that is left out."""

    arms: Mapping[str, MakesArm]
    missing: tuple[str, ...]


def beside(*, make: bool = True) -> Beside:
    """The arms beside ours. `make`: the environments of those that have none yet."""
    arms: dict[str, MakesArm] = {NOTES: partial(Notes, budget=BUDGET, name=NOTES)}
    missing: list[str] = []
    folder = environments.ace_folder()
    python = folder
    if not isinstance(folder, Missing):
        python = environments.python_with(*environments.ACE_PACKAGES, make=make)
    if isinstance(folder, Missing) or isinstance(python, Missing):
        why = folder.why if isinstance(folder, Missing) else python.why if isinstance(python, Missing) else ""
        missing.append(f"{ACE} is left out. {why}")
    else:
        arms[ACE] = partial(_ace, python, folder, ACE)
        arms[ACE_MERGED] = partial(_ace, python, folder, ACE_MERGED, analyzer=True)
        arms[ACE_ALSO] = partial(_ace, python, folder, ACE_ALSO, also=True)
    python = environments.python_with(*environments.SLEEP_PACKAGES, make=make)
    if isinstance(python, Missing):
        missing.append(f"{SLEEP} is left out. {python.why}")
    else:
        arms[SLEEP] = partial(_sleep, python, SLEEP, GATED)
        arms[SLEEP_OPEN] = partial(_sleep, python, SLEEP_OPEN, OPEN)
        arms[SLEEP_ALSO] = partial(_sleep, python, SLEEP_ALSO, GATED, also=True)
    return Beside(arms, tuple(missing))


ROWS = (
    *(Row(name) for name in (NOTES, ACE, SLEEP, SLEEP_OPEN, ACE_ALSO, SLEEP_ALSO, ACE_MERGED)),
    *(Row(name, "changed") for name in (NOTES, ACE, SLEEP)),
    *(Row(name, course) for course in ("wrong", "flipped") for name in (ACE, SLEEP)),
)


def _ace(
    python: Path, folder: Path, name: str, seed: int, *, analyzer: bool = False, also: bool = False
) -> Advises:
    child = _child(python, ace.PROGRAM, str(folder))
    says = InWorld(drawn(seed)).says if also else ace.nothing
    return ace.Ace(child, budget=BUDGET, analyzer=analyzer, name=name, also=says)


def _sleep(python: Path, name: str, nights: Nights, seed: int, *, also: bool = False) -> Advises:
    known = InWorld(drawn(seed))
    model = sleep.SleepModel(known.acts, known.shown, known.says if also else None)
    child = _child(python, sleep.PROGRAM, "")
    return sleep.Sleep(
        child,
        model,
        budget=BUDGET,
        every=nights.every,
        world=f"world-{seed}",
        settings=nights.settings,
        name=name,
    )


@cache
def _child(python: Path, program: Path, folder: str) -> Child:
    """One process for all worlds, one after the other: each arm begins anew in it."""
    return Child(python, program, Path(tempfile.mkdtemp(prefix="daiku-beside-")), {"ACE_FOLDER": folder})

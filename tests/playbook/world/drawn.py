"""A world as it is drawn from a seed: what is agreed on in a repository, the tasks, and what changes half way."""

from __future__ import annotations

from random import Random
from typing import Literal, NamedTuple

from tests.playbook.world.attempts import Task
from tests.playbook.world.names import (
    AREAS,
    ENDING_PROMPTS,
    ENDINGS,
    FOLDER_PROMPTS,
    FOLDERS,
    FORMS,
    NOUNS,
    PURPOSES,
    SCRIPT_FOLDERS,
    SYLLABLES,
    THINGS,
    WHOLE_FORMS,
)

Kind = Literal["command", "folder", "ending"]

TASKS = 200
HALF_WAY = 100
"""The task before which conventions change, or wrong bullets come."""
COMMANDS_LIKELY, TRIES = 8, 3
"""So many commands seem as likely, and so many may be tried: who knows nothing does 3 of 8 tasks."""
PLACES_LIKELY = 3
"""So many folders, or endings of names, seem as likely; the first choice counts: 1 of 3."""
AREAS_OF_WORLD, PURPOSES_OF_AREA, PURPOSES_OF_WHOLE = 3, 2, 2
FOLDER_RULES, ENDING_RULES = 2, 2
CHANGED = 4
"""So many of the twelve conventions change half way, where any do."""
REASON_GIVEN = 0.5
"""The share of a person's rejections that say what is right."""


class Convention(NamedTuple):
    """One thing that is agreed on: among `likely` actions which one is `right`, and which one from half way on (`later`).

    `about`: the groups of words of which a text has to have one each to be about this, as a reader sees it; `strange`: the
    words of which a command for this has none."""

    name: str
    kind: Kind
    likely: tuple[str, ...]
    right: str
    later: str
    about: tuple[frozenset[str], ...]
    strange: frozenset[str]
    prompts: tuple[str, ...]

    @property
    def tries(self) -> int:
        return TRIES if self.kind == "command" else 1


class World(NamedTuple):
    """The conventions of one repository, its programs and folders of scripts, and the tasks, each with what it is about."""

    seed: int
    conventions: tuple[Convention, ...]
    programs: tuple[str, ...]
    absent: tuple[str, ...]
    folders: tuple[str, ...]
    tasks: tuple[tuple[Task, Convention], ...]


def drawn(seed: int, tasks: int = TASKS) -> World:
    """The world of a seed. Each convention comes once in every twelve tasks, in an order of its own."""
    draw = Random(f"world {seed}")
    names = _program_names(draw)
    programs, absent = names[:3], names[3:]
    folders = tuple(draw.sample(SCRIPT_FOLDERS, 3))
    conventions = (*_commands(draw, names, folders), *_places(draw))
    changing = set(draw.sample([each.name for each in conventions], CHANGED))
    settled = tuple(
        each._replace(later=draw.choice([one for one in each.likely if one != each.right]))
        if each.name in changing
        else each
        for each in conventions
    )
    listed: list[tuple[Task, Convention]] = []
    while len(listed) < tasks:
        for convention in draw.sample(settled, len(settled)):
            listed.append((Task(len(listed), _prompt(draw, convention)), convention))
    return World(seed, settled, programs, absent, folders, tuple(listed[:tasks]))


def _program_names(draw: Random) -> tuple[str, ...]:
    found: dict[str, None] = {}
    while len(found) < 5:
        found["".join(draw.sample(SYLLABLES, draw.choice((2, 3))))] = None
    return tuple(found)


def _commands(draw: Random, programs: tuple[str, ...], folders: tuple[str, ...]) -> list[Convention]:
    """Commands for parts of the repository, and for the whole of it; no purpose is of both."""
    purposes = draw.sample(sorted(PURPOSES), 2 * PURPOSES_OF_WHOLE + 1)
    of_whole, of_parts = purposes[:PURPOSES_OF_WHOLE], purposes[PURPOSES_OF_WHOLE:]
    areas = draw.sample(AREAS, AREAS_OF_WORLD)
    wanted = [(purpose, area) for area in areas for purpose in draw.sample(of_parts, PURPOSES_OF_AREA)]
    found: list[Convention] = []
    for purpose, area in [*wanted, *((each, "") for each in of_whole)]:
        what = PURPOSES[purpose]
        likely: dict[str, None] = {}
        while len(likely) < COMMANDS_LIKELY:
            form = draw.choice(FORMS if area else WHOLE_FORMS)
            chosen = draw.choice(programs), draw.choice(folders), draw.choice(what.verbs)
            likely[form.format(prog=chosen[0], folder=chosen[1], verb=chosen[2], area=area)] = None
        right = draw.choice(list(likely))
        found.append(
            Convention(
                f"{purpose} {area}".strip(),
                "command",
                tuple(likely),
                right,
                right,
                (frozenset(what.read_as), *((frozenset({area}),) if area else ())),
                frozenset(areas) - {area},
                tuple(each.format(area) for each in (what.of_part if area else what.of_whole)),
            )
        )
    return found


def _places(draw: Random) -> list[Convention]:
    """Where files of a kind go, and how their names end."""
    nouns = draw.sample(NOUNS, FOLDER_RULES + ENDING_RULES)
    found: list[Convention] = []
    for number, noun in enumerate(nouns):
        folder = number < FOLDER_RULES
        chosen = draw.sample(FOLDERS if folder else ENDINGS, PLACES_LIKELY)
        likely = tuple(each.format(noun) for each in chosen)
        right = draw.choice(likely)
        kind: Kind = "folder" if folder else "ending"
        prompts = FOLDER_PROMPTS if folder else ENDING_PROMPTS
        about = (frozenset({noun}),)
        found.append(Convention(f"{kind} {noun}", kind, likely, right, right, about, frozenset(), prompts))
    return found


def _prompt(draw: Random, convention: Convention) -> str:
    thing = draw.choice(THINGS)
    noun = convention.name.partition(" ")[2]
    return draw.choice(convention.prompts).format(noun=noun, thing=thing, Thing=thing.capitalize())

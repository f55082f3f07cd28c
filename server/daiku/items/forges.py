"""Asks the forges that the settings name how many items are to be worked there: whether they can be reached and used."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.domain.errors import Failure, UsageError
from daiku.domain.items.forge import ForgeRefusal
from daiku.domain.items.item import SourceName
from daiku.guard.rules.redact import Redactor
from daiku.items.working import Work, sources_of
from daiku.settings.config import Config
from daiku.texts.text import text

SECONDS = 20.0
"""For all that a forge is asked."""


@dataclass(frozen=True, slots=True)
class Forge:
    """Repositories of a forge that the settings name. `found`: how many items are to be worked there; a Failure where
    that could not be asked."""

    name: str
    address: str
    repositories: tuple[str, ...]
    found: int | Failure


async def forges_of(config: Config, environ: Mapping[str, str]) -> tuple[Forge, ...]:
    """Count the items to be worked on each forge of the settings. Repositories that fail are a Forge of their own for
    each reason."""
    github, gitlab = config.github, config.gitlab
    named: tuple[tuple[SourceName, str, str, tuple[str, ...]], ...] = (
        ("github", "GitHub", github.api_url, github.repositories),
        ("gitlab", "GitLab", gitlab.api_url, gitlab.projects),
    )
    found: list[Forge] = []
    for source, name, address, repositories in named:
        asked = await asyncio.gather(*(_asked(config, environ, source, each) for each in repositories))
        found += _by_answer(name, address, tuple(zip(repositories, asked, strict=True)))
    return tuple(found)


def _by_answer(name: str, address: str, asked: tuple[tuple[str, int | Failure], ...]) -> list[Forge]:
    """The repositories that answered as one, then those that did not, by reason."""
    counts = [(repository, found) for repository, found in asked if isinstance(found, int)]
    answered = tuple(repository for repository, _ in counts)
    found = [Forge(name, address, answered, sum(count for _, count in counts))] if counts else []
    why: dict[Failure, tuple[str, ...]] = {}
    for repository, failure in asked:
        if isinstance(failure, Failure):
            why[failure] = (*why.get(failure, ()), repository)
    return [*found, *(Forge(name, address, names, failure) for failure, names in why.items())]


async def _asked(
    config: Config, environ: Mapping[str, str], name: SourceName, repository: str
) -> int | Failure:
    nowhere = Path()  # a forge's items are found without a folder
    alone = (
        {"github": config.github.model_copy(update={"repositories": (repository,)})}
        if name == "github"
        else {"gitlab": config.gitlab.model_copy(update={"projects": (repository,)})}
    )
    one = config.model_copy(update=alone)
    work = Work(one, nowhere, nowhere, environ, lambda _: None, Redactor(()), only=name)
    try:
        source = sources_of(work)[name]
    except UsageError as wrong:
        return wrong.failure
    try:
        async with asyncio.timeout(SECONDS):
            found = await source.find()
    except TimeoutError:
        return Failure(kind="timeout", message=text("doctor.work_slow", seconds=round(SECONDS)))
    finally:
        await source.aclose()
    if isinstance(found, ForgeRefusal):
        return Failure(kind="connection", message=found.message)
    return len(found)

"""Check that the forges in the settings can be reached, by counting their items."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.domain.errors import Failure, UsageError
from daiku.domain.items.forge import ForgeRefusal
from daiku.domain.items.item import SourceName
from daiku.guard.rules.redact import Redactor
from daiku.items.working import Work, create_sources
from daiku.settings.config import Config
from daiku.texts.text import text

SECONDS = 20.0
"""Timeout in seconds for one repository."""


@dataclass(frozen=True, slots=True)
class Forge:
    """Repositories of a forge in the settings.

    `found`: the number of items to process, or the Failure of the query.
    """

    name: str
    address: str
    repositories: tuple[str, ...]
    found: int | Failure


async def check_forges(config: Config, environ: Mapping[str, str]) -> tuple[Forge, ...]:
    """Count the items to process on each forge of the settings.

    Repositories that fail are grouped into one Forge per reason.
    """
    github, gitlab = config.github, config.gitlab
    configured: tuple[tuple[SourceName, str, str, tuple[str, ...]], ...] = (
        ("github", "GitHub", github.api_url, github.repositories),
        ("gitlab", "GitLab", gitlab.api_url, gitlab.projects),
    )
    forges: list[Forge] = []
    for source, name, address, repositories in configured:
        answers = await asyncio.gather(
            *(_count_items(config, environ, source, repository) for repository in repositories)
        )
        forges += _group_by_answer(name, address, tuple(zip(repositories, answers, strict=True)))
    return tuple(forges)


def _group_by_answer(name: str, address: str, answers: tuple[tuple[str, int | Failure], ...]) -> list[Forge]:
    """Return the repositories that answered as one Forge, then the others by reason."""
    counts = [(repository, count) for repository, count in answers if isinstance(count, int)]
    answered = tuple(repository for repository, _ in counts)
    forges = [Forge(name, address, answered, sum(count for _, count in counts))] if counts else []
    by_failure: dict[Failure, tuple[str, ...]] = {}
    for repository, failure in answers:
        if isinstance(failure, Failure):
            by_failure[failure] = (*by_failure.get(failure, ()), repository)
    return [*forges, *(Forge(name, address, names, failure) for failure, names in by_failure.items())]


async def _count_items(
    config: Config, environ: Mapping[str, str], name: SourceName, repository: str
) -> int | Failure:
    nowhere = Path()  # a forge's items are found without a folder
    update = (
        {"github": config.github.model_copy(update={"repositories": (repository,)})}
        if name == "github"
        else {"gitlab": config.gitlab.model_copy(update={"projects": (repository,)})}
    )
    single = config.model_copy(update=update)
    work = Work(single, nowhere, nowhere, environ, lambda _: None, Redactor(()), only=name)
    try:
        source = create_sources(work)[name]
    except UsageError as error:
        return error.failure
    try:
        async with asyncio.timeout(SECONDS):
            items = await source.find()
    except TimeoutError:
        return Failure(kind="timeout", message=text("doctor.work_slow", seconds=round(SECONDS)))
    finally:
        await source.aclose()
    if isinstance(items, ForgeRefusal):
        return Failure(kind="connection", message=items.message)
    return len(items)

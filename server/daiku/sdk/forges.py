"""Asks the forges that the settings name how many items are to be worked there: whether they can be reached and used."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from daiku.core.guard.redact import Redactor
from daiku.dataclass import dataclass
from daiku.domain.errors import Failure, UsageError
from daiku.domain.items.forge import ForgeRefusal
from daiku.domain.items.item import SourceName
from daiku.sdk.working import Work, sources_of
from daiku.settings.config import Config
from daiku.texts.text import text

SECONDS = 20.0
"""For all that a forge is asked."""


@dataclass(frozen=True, slots=True)
class Forge:
    """A forge that the settings name repositories of. `found`: how many items are to be worked there; a Failure where
    that could not be asked."""

    name: str
    address: str
    repositories: tuple[str, ...]
    found: int | Failure


async def forges_of(config: Config, environ: Mapping[str, str]) -> tuple[Forge, ...]:
    """The forges that the settings name repositories of, each asked what is to be worked."""
    github, gitlab = config.github, config.gitlab
    named: tuple[tuple[SourceName, str, str, tuple[str, ...]], ...] = (
        ("github", "GitHub", github.api_url, github.repositories),
        ("gitlab", "GitLab", gitlab.api_url, gitlab.projects),
    )
    asked = [
        _asked(config, environ, source, Forge(name, address, repositories, 0))
        for source, name, address, repositories in named
        if repositories
    ]
    return tuple(await asyncio.gather(*asked))


async def _asked(config: Config, environ: Mapping[str, str], name: SourceName, forge: Forge) -> Forge:
    found = await _found(config, environ, name)
    return Forge(forge.name, forge.address, forge.repositories, found)


async def _found(config: Config, environ: Mapping[str, str], name: SourceName) -> int | Failure:
    nowhere = Path()  # a forge's items are found without a folder
    work = Work(config, nowhere, nowhere, environ, lambda _: None, Redactor(()), only=name)
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

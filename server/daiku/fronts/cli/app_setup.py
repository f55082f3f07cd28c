"""Build the App of a command: read settings, start logging, print notices."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from daiku.domain.base import JsonObject
from daiku.fronts.cli.display.term import human_stream, safe
from daiku.fronts.cli.main import usage_error
from daiku.guard.rules.redact import Redactor
from daiku.library.fronts import App, build
from daiku.logs import start_logging
from daiku.settings import Loaded, home, load, secrets_of
from daiku.settings.trust import is_trusted
from daiku.texts.terminal import locale_of, localize, say
from daiku.trace.journal import Journal
from daiku.workspace.disk import DiskWorkspace

T = TypeVar("T")


def folder_of(path: str | None) -> Path:
    """Return the folder to work in. Raises UsageError if it does not exist."""
    folder = Path(path or ".")
    try:
        folder = folder.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise usage_error(say("error.folder", folder=path)) from None
    if not folder.is_dir():
        raise usage_error(say("error.folder", folder=path))
    return folder


def settings_for(
    folder: Path, overrides: JsonObject | None = None, *, asks_model: bool = False
) -> tuple[Loaded, Path]:
    """Return the settings of `folder`, and Daiku's home.

    Raises UsageError for an invalid setting; model settings are checked only for commands that call a model.
    """
    state = home(os.environ)
    loaded = load(
        workspace=folder,
        trusted=is_trusted(state, folder),
        environ=os.environ,
        overrides=overrides,
        asks_model=asks_model,
    )
    start_logging(state, Redactor(secrets_of(loaded.config, os.environ)))
    return loaded, state


def print_notices(loaded: Loaded) -> None:
    """Print notices about the settings to the terminal."""
    people = human_stream()
    hint = f" ({say('config.ignored')})" if loaded.ignored else ""
    for notice in loaded.notices:
        people.write(people.paint(f"! {safe(localize(notice))}{hint}", "yellow") + "\n")


def print_recovery(journal: Journal) -> None:
    """Print a notice if a damaged journal was repaired."""
    if notice := journal.recovered:
        people = human_stream()
        people.write(people.paint(f"! {safe(localize(notice))}", "yellow") + "\n")


@asynccontextmanager
async def open_app(
    folder: Path, overrides: JsonObject | None = None, *, asks_model: bool = False
) -> AsyncGenerator[App]:
    """Open the App of a folder for the block.

    The guard trusts the folder, because the user started Daiku in it; its settings file needs `daiku config
    trust`. Raises UsageError.
    """
    loaded, state = settings_for(folder, overrides, asks_model=asks_model)
    print_notices(loaded)
    app = build(
        loaded.config,
        workspace=DiskWorkspace((folder,)),
        home=state,
        own=is_trusted(state, folder),
        locale=locale_of(os.environ),
    )
    print_recovery(app.journal)
    try:
        yield app
    finally:
        await app.aclose()


def in_app(folder: str | None, work: Callable[[App], Awaitable[T]], *, asks_model: bool = False) -> T:
    """Run `work` with the App of a folder and return its result. Raises UsageError."""

    async def run_in_app() -> T:
        async with open_app(folder_of(folder), asks_model=asks_model) as app:
            return await work(app)

    return asyncio.run(run_in_app())

"""Shared parts of the playbook commands: options, the folder's playbooks, and JSON output."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any, TypeVar

import click
from pydantic import BaseModel

from daiku.domain.base import JsonObject
from daiku.fronts.cli.app_setup import folder_of, print_notices, settings_for
from daiku.fronts.cli.display.term import human_stream
from daiku.fronts.cli.main import write_json
from daiku.guard.rules.redact import Redactor
from daiku.playbook.desk import PlaybookDesk, open_desk
from daiku.settings import secrets_of
from daiku.texts.terminal import locale_of, say

F = TypeVar("F", bound=Callable[..., Any])
SCOPES = ("repository", "user")
"""Names of the two playbooks."""


def scope_option(default: str | None = None) -> Callable[[F], F]:
    """Decorate a command with `--scope`, which selects one of the two playbooks."""
    return click.option(
        "--scope", type=click.Choice(SCOPES), default=default, help=say("help.playbook.scope")
    )


@contextmanager
def open_desk_of(folder: str | None) -> Generator[PlaybookDesk]:
    """Open the playbooks of a folder for the block. Raises UsageError."""
    place = folder_of(folder)
    loaded, state = settings_for(place)
    print_notices(loaded)
    redact = Redactor(secrets_of(loaded.config, os.environ))
    with open_desk(loaded.config, state, place, redact, locale_of(os.environ)) as desk:
        yield desk


def as_row(value: BaseModel) -> JsonObject:
    return value.model_dump(mode="json", by_alias=True)


def print_json(value: JsonObject) -> None:
    """Print a JSON document."""
    write_json(json.dumps(value, ensure_ascii=False))


def print_rows(values: Iterable[BaseModel]) -> None:
    """Print a JSON list."""
    write_json(json.dumps([as_row(value) for value in values], ensure_ascii=False))


def print_notice(line: str) -> None:
    """Write one line to the user, separate from machine output."""
    people = human_stream()
    people.write(people.paint(line, "yellow") + "\n")


def print_redacted_notice(redacted: bool) -> None:  # what was found
    if redacted:
        print_notice(say("playbook.redacted"))

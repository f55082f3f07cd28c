"""`daiku playbook adapt`: learn offline from the stored sessions of a folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from daiku.cli.app_setup import folder_of, settings_for, tell_notices
from daiku.cli.commands.playbook.opening import as_row, print_json
from daiku.cli.display.term import Terminal, clip, safe, terminal
from daiku.cli.main import usage, write_output
from daiku.cli.options import place_options
from daiku.core.guard.redact import Redactor
from daiku.settings import secrets_of
from daiku.settings.config import Config
from daiku.settings.trust import is_trusted
from daiku.texts.terminal import say

if TYPE_CHECKING:
    from daiku.sdk.playbook.offline import OfflineLearning

TEXT = 100
"""Width in columns of a lesson where the output is no terminal."""


def _refuse_removed(_: click.Context, option: click.Parameter, value: object) -> None:
    """Raise UsageError for an option of the trials that earlier versions made."""
    if value:
        raise usage(say("adapt.removed", option=f"--{option.name}"))


@click.command("adapt", help=say("help.playbook.adapt"))
@click.option("--cases", type=click.IntRange(min=1), metavar="N", help=say("help.adapt.cases"))
@click.option("--max-cost", type=click.FloatRange(min=0), metavar="USD", help=say("help.adapt.max_cost"))
@click.option("--dry-run", is_flag=True, help=say("help.adapt.dry_run"))
@click.option("--offline", is_flag=True, help=say("help.adapt.offline"))
@click.option("--repeat", metavar="N", hidden=True, expose_value=False, callback=_refuse_removed)
@click.option("--yes", "-y", is_flag=True, hidden=True, expose_value=False, callback=_refuse_removed)
@place_options
def adapt(
    cases: int | None,
    max_cost: float | None,
    dry_run: bool,  # click's flag
    offline: bool,  # click's flag
    folder: str | None,
    as_json: bool,  # click's flag
) -> None:
    from daiku.sdk.playbook.offline import learn_offline  # when used
    from daiku.trace.journal import ALL  # when used

    del max_cost, offline  # learning offline is the only mode, and costs nothing
    place = folder_of(folder)
    loaded, home = settings_for(place)
    tell_notices(loaded)
    if why := _why_nothing_is_learned(loaded.config):
        raise usage(why)
    redact = Redactor(secrets_of(loaded.config, os.environ))
    trusted = is_trusted(home, place)
    found = learn_offline(
        loaded.config, home, place, redact, trusted=trusted, most=cases or ALL, dry_run=dry_run
    )
    if as_json:
        print_json(as_row(found))
    else:
        write_output("".join(line + "\n" for line in _lines(found, terminal(sys.stdout))))


def _why_nothing_is_learned(config: Config) -> str:
    if not config.playbook.enabled:
        return say("adapt.disabled")
    return say("adapt.off") if config.playbook.learn == "off" else ""


def _lines(found: OfflineLearning, out: Terminal) -> Iterator[str]:
    """Yield the sessions as a count, and each change of the playbook."""
    if found.dry_run:
        yield say("adapt.would_learn", sessions=found.sessions)
        return
    yield say("adapt.learned", sessions=found.sessions, changes=len(found.changes))
    for each in found.changes:
        waits = each.change == "proposed"
        status = say("playbook.status.proposed" if waits else "playbook.status.applied")
        head = (
            f"{out.paint(safe(each.bullet_id), 'bold')}  {out.paint(status, 'yellow' if waits else 'green')}"
        )
        yield f"{head}  {clip(safe(each.content), TEXT)}"

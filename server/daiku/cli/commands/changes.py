"""`daiku sessions changes` and `undo`: what a conversation did to files, and taking it back."""

from __future__ import annotations

import asyncio
import sys

import click

from daiku.cli.app_setup import folder_of, open_app
from daiku.cli.display.diffs import coloured_diff
from daiku.cli.display.term import safe, terminal
from daiku.cli.display.toollines import stays_lines
from daiku.cli.options import place_options
from daiku.core.changes.review import FileReview
from daiku.sdk.fronts import RestoreOutcome, changed_files, diff_of, restore_result
from daiku.texts.terminal import say


@click.command("changes", help=say("help.sessions.changes"))
@click.argument("session")
@place_options
def changes(session: str, folder: str | None, as_json: bool) -> None:  # click's flag
    async def work() -> dict[str, FileReview]:
        async with open_app(folder_of(folder)) as app:
            return await app.reviews.changes(session)

    found = asyncio.run(work())
    if as_json:
        click.echo(
            "[" + ",".join(f.model_dump_json(by_alias=True) for f in changed_files(found, session)) + "]"
        )
        return
    out = terminal(sys.stdout)
    if not found:
        click.echo(say("changes.none"))
    for path, review in found.items():
        diff = diff_of(path, review)
        for line in coloured_diff(diff, out) if diff else [say("changes.binary", path=safe(path))]:
            click.echo(line)


@click.command("undo", help=say("help.sessions.undo"))
@click.argument("session")
@click.option("--to", "checkpoint", metavar="CHECKPOINT", help=say("help.opt.to"))
@place_options
def undo(session: str, checkpoint: str | None, folder: str | None, as_json: bool) -> None:  # click's flag
    async def work() -> RestoreOutcome:
        async with open_app(folder_of(folder)) as app:
            app.journal.get_session(session)
            if checkpoint is None:
                return await app.reviews.undo(session)
            return await app.reviews.restore(checkpoint, session)

    brought = asyncio.run(work())
    if as_json:
        click.echo(restore_result(brought).model_dump_json(by_alias=True))
        return
    click.echo(say("chat.undone", files=", ".join(safe(f.path) for f in brought.files) or "-"))
    for line in stays_lines(brought.cannot_undo):
        click.echo(line)
    click.echo(say("undo.back", session=session, checkpoint=brought.redo))

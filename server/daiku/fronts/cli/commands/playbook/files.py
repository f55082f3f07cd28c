"""`daiku playbook export` and `import`: a playbook as a text, and a text as bullets."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click

from daiku.domain.playbook import PlaybookScope
from daiku.fronts.cli.app_setup import folder_of
from daiku.fronts.cli.commands.playbook.opening import as_row, desk_in, print_json, scope_option, tell
from daiku.fronts.cli.commands.sessions import write_out
from daiku.fronts.cli.display.term import safe
from daiku.fronts.cli.options import place_options
from daiku.playbook.desk.files import (
    LARGEST,
    Imported,
    PlaybookForm,
    ReviewReason,
    exported,
    file_text,
    find_review_reason,
    imported,
    text_of,
)
from daiku.settings import home
from daiku.settings.trust import is_trusted
from daiku.texts.terminal import localize, say


@click.command("export", help=say("help.playbook.export"))
@click.option(
    "--format",
    "form",
    type=click.Choice(get_args(PlaybookForm)),
    default="ace",
    show_default=True,
    help=say("help.playbook.form"),
)
@scope_option("repository")
@click.option("-C", "folder", metavar="DIR", help=say("help.opt.dir"))
def export_(form: PlaybookForm, scope: PlaybookScope, folder: str | None) -> None:
    with desk_in(folder) as desk:
        text = exported(desk, scope, form)
    write_out(text)


@click.command("import", help=say("help.playbook.import"))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--propose", is_flag=True, help=say("help.playbook.propose"))
@scope_option("repository")
@place_options
def import_(
    file: Path,
    propose: bool,  # click's flag
    scope: PlaybookScope,
    folder: str | None,
    as_json: bool,  # click's flag
) -> None:
    place = folder_of(folder)
    if str(file) == "-":
        said = text_of(sys.stdin.buffer.read(LARGEST + 1), "stdin")
        reason: ReviewReason | None = "of_anybody"
    else:
        said = file_text(file)
        trusted = is_trusted(home(os.environ), place)
        reason = asyncio.run(find_review_reason(file, place, trusted=trusted))
    with desk_in(folder) as desk:
        found = imported(desk, scope, said, propose=propose or reason is not None)
    if found.proposed and reason is not None and not propose:
        tell(say(f"playbook.import.{reason}"))
    if as_json:
        print_json(as_row(found))
        return
    for line in _lines(found):
        click.echo(line)


def _lines(found: Imported) -> Iterator[str]:
    """Yield what the import did, line by line."""
    if found.added or not (found.proposed or found.held):
        yield say("playbook.import.added", count=len(found.added))
    if found.proposed:
        yield say("playbook.import.proposed", count=len(found.proposed))
        yield say("playbook.import.see")
    if found.held:
        yield say("playbook.import.held", count=found.held)
    for each in found.renumbered:
        yield say("playbook.import.renumbered", was=safe(each.was), id=each.id)
    for each in found.refused:
        yield say("playbook.import.refused", number=each.number, why=localize(each.message))
    if found.left_out:
        lines = ", ".join(str(number) for number in found.left_out[:20])
        more = ", …" if len(found.left_out) > 20 else ""
        yield say("playbook.import.left_out", count=len(found.left_out), lines=lines + more)
    if found.hidden:
        yield say("playbook.import.hidden", ids=", ".join(found.hidden[:20]))
    if found.redacted:
        yield say("playbook.import.redacted", count=found.redacted)

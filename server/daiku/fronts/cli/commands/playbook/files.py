"""`daiku playbook export` and `import`: convert between a playbook and a text file."""

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
from daiku.fronts.cli.commands.playbook.opening import (
    as_row,
    open_desk_of,
    print_json,
    print_notice,
    scope_option,
)
from daiku.fronts.cli.commands.sessions import write_out
from daiku.fronts.cli.display.term import safe
from daiku.fronts.cli.options import place_options
from daiku.playbook.files import (
    LARGEST,
    Imported,
    PlaybookForm,
    ReviewReason,
    decode_text,
    export_playbook,
    find_review_reason,
    import_playbook,
    read_file,
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
    with open_desk_of(folder) as desk:
        text = export_playbook(desk, scope, form)
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
        content = decode_text(sys.stdin.buffer.read(LARGEST + 1), "stdin")
        reason: ReviewReason | None = "of_anybody"
    else:
        content = read_file(file)
        trusted = is_trusted(home(os.environ), place)
        reason = asyncio.run(find_review_reason(file, place, trusted=trusted))
    with open_desk_of(folder) as desk:
        result = import_playbook(desk, scope, content, propose=propose or reason is not None)
    if result.proposed and reason is not None and not propose:
        print_notice(say(f"playbook.import.{reason}"))
    if as_json:
        print_json(as_row(result))
        return
    for line in _lines(result):
        click.echo(line)


def _lines(result: Imported) -> Iterator[str]:
    """Yield what the import did, line by line."""
    if result.added or not (result.proposed or result.held):
        yield say("playbook.import.added", count=len(result.added))
    if result.proposed:
        yield say("playbook.import.proposed", count=len(result.proposed))
        yield say("playbook.import.see")
    if result.held:
        yield say("playbook.import.held", count=result.held)
    for entry in result.renumbered:
        yield say("playbook.import.renumbered", was=safe(entry.was), id=entry.id)
    for entry in result.refused:
        yield say("playbook.import.refused", number=entry.number, why=localize(entry.message))
    if result.left_out:
        lines = ", ".join(str(number) for number in result.left_out[:20])
        more = ", …" if len(result.left_out) > 20 else ""
        yield say("playbook.import.left_out", count=len(result.left_out), lines=lines + more)
    if result.hidden:
        yield say("playbook.import.hidden", ids=", ".join(result.hidden[:20]))
    if result.redacted:
        yield say("playbook.import.redacted", count=result.redacted)

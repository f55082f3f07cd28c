"""`daiku playbook deltas` and `undo`: the changes that wait for a word, and one that is taken back."""

from __future__ import annotations

import sys
from typing import get_args

import click

from daiku.cli.commands.playbook.looks import delta_lines
from daiku.cli.commands.playbook.opening import as_row, desk_in, print_json, print_rows, scope_option
from daiku.cli.display.term import safe, terminal
from daiku.cli.main import FAILED, complain
from daiku.cli.options import place_options
from daiku.domain.playbook import DeltaStatus, PlaybookScope
from daiku.texts.terminal import localize, say


@click.command("deltas", help=say("help.playbook.deltas"))
@click.option("--status", type=click.Choice(get_args(DeltaStatus)), default="proposed", show_default=True)
@click.option("--all", "everything", is_flag=True, help=say("help.playbook.every_status"))
@scope_option()
@place_options
def deltas(
    status: DeltaStatus,
    everything: bool,  # click's flag
    scope: PlaybookScope | None,
    folder: str | None,
    as_json: bool,  # click's flag
) -> None:
    with desk_in(folder) as desk:
        found = desk.deltas(scope, get_args(DeltaStatus) if everything else (status,))
    if as_json:
        print_rows(found)
        return
    out = terminal(sys.stdout)
    if not found:
        click.echo(say("playbook.nothing_waits") if status == "proposed" else say("none_yet"))
    for shown in found:
        for line in delta_lines(shown, out):
            click.echo(line)


@click.command("undo", help=say("help.playbook.undo"))
@click.argument("delta")
@place_options
def undo(delta: str, folder: str | None, as_json: bool) -> int:  # click's flag
    with desk_in(folder) as desk:
        found = desk.review(undo=(delta,))
    if as_json:
        print_json(as_row(found))
    elif found.decided:
        name = safe(delta)
        waits = found.decided[0].status == "proposed"
        click.echo(say("playbook.waits_again", id=name) if waits else say("playbook.undone", id=name))
    if found.refused and not as_json:
        return complain(localize(found.refused[0].message), "", FAILED)
    return FAILED if found.refused else 0

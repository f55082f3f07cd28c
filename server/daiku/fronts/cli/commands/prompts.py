"""`daiku prompts`: the templates that models are told of their work by, and which of them a folder replaces."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from daiku.fronts.cli.app_setup import folder_of, print_notices, settings_for
from daiku.fronts.cli.display.term import human_stream, safe, terminal
from daiku.fronts.cli.main import usage_error, write_json
from daiku.fronts.cli.options import place_options
from daiku.prompts import Prompts
from daiku.settings.trust import is_trusted
from daiku.team.prompts import build_prompts
from daiku.texts.terminal import say
from daiku.workspace.disk import DiskWorkspace


@click.group(help=say("help.prompts"))
def prompts() -> None:
    pass


@prompts.command("list", help=say("help.prompts_list"))
@place_options
def list_(folder: str | None, as_json: bool) -> None:  # click's flag
    library = _library(folder_of(folder))
    if as_json:
        told = [
            {"id": s.id, "languages": s.languages, "override": s.override, "variables": s.variables}
            for s in library.list()
        ]
        write_json(json.dumps(told, ensure_ascii=False))
        return
    out = terminal(sys.stdout)
    for standing in library.list():
        own = out.paint(f"  {safe(standing.override)}", "cyan") if standing.override else ""
        languages = out.paint(", ".join(standing.languages), "dim")
        click.echo(f"{safe(standing.id):<28} {languages}{own}")


@prompts.command("show", help=say("help.prompts_show"))
@click.argument("template", metavar="ID")
@click.option("-C", "folder", metavar="DIR", help=say("help.opt.dir"))
def show(template: str, folder: str | None) -> None:
    library = _library(folder_of(folder))
    found = library.source(template)
    if found is None:
        raise usage_error(say("prompts.unknown", id=template))
    click.echo(found.text.rstrip("\n"))


def _library(folder: Path) -> Prompts:
    """The prompts of a folder, with what is wrong with its own told on stderr. Raises UsageError."""
    loaded, state = settings_for(folder)
    print_notices(loaded)
    library = build_prompts(loaded.config, DiskWorkspace((folder,)), own=is_trusted(state, folder))
    people = human_stream()
    for problem in library.problems():
        people.write(
            people.paint(f"! {safe(problem.file)}:{problem.line}: {safe(problem.why)}", "yellow") + "\n"
        )
    if ignored := library.ignored():
        people.write(people.paint(f"! {say('prompts.untrusted', folder=ignored)}", "yellow") + "\n")
    return library

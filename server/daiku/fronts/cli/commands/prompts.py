"""`daiku prompts`: list the prompt templates, and the overrides of a folder."""

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
    library = _open_library(folder_of(folder))
    if as_json:
        rows = [
            {"id": s.id, "languages": s.languages, "override": s.override, "variables": s.variables}
            for s in library.list_templates()
        ]
        write_json(json.dumps(rows, ensure_ascii=False))
        return
    out = terminal(sys.stdout)
    for status in library.list_templates():
        override = out.paint(f"  {safe(status.override)}", "cyan") if status.override else ""
        languages = out.paint(", ".join(status.languages), "dim")
        click.echo(f"{safe(status.id):<28} {languages}{override}")


@prompts.command("show", help=say("help.prompts_show"))
@click.argument("template", metavar="ID")
@click.option("-C", "folder", metavar="DIR", help=say("help.opt.dir"))
def show(template: str, folder: str | None) -> None:
    library = _open_library(folder_of(folder))
    source = library.find_source(template)
    if source is None:
        raise usage_error(say("prompts.unknown", id=template))
    click.echo(source.text.rstrip("\n"))


def _open_library(folder: Path) -> Prompts:
    """Return the prompts of a folder, and print problems of its overrides. Raises UsageError."""
    loaded, state = settings_for(folder)
    print_notices(loaded)
    library = build_prompts(loaded.config, DiskWorkspace((folder,)), own=is_trusted(state, folder))
    people = human_stream()
    for problem in library.find_problems():
        people.write(
            people.paint(f"! {safe(problem.file)}:{problem.line}: {safe(problem.why)}", "yellow") + "\n"
        )
    if ignored := library.find_ignored_folder():
        people.write(people.paint(f"! {say('prompts.untrusted', folder=ignored)}", "yellow") + "\n")
    return library

"""`daiku grants`: what was answered with "always" in this folder, and taking it back."""

from __future__ import annotations

import json
import sys

import click

from daiku.dataclass import asdict
from daiku.fronts.cli.app_setup import in_app
from daiku.fronts.cli.display.term import safe, terminal
from daiku.fronts.cli.main import usage_error, write_json
from daiku.fronts.cli.options import command_group, place_options
from daiku.library.fronts import App
from daiku.texts.terminal import localize, say
from daiku.texts.text import renderings
from daiku.trace.grants import SERVER, RememberedAnswer, all_answers, revoke_answer

grants = command_group("grants")


@grants.command("list", help=say("help.grants.list"))
@place_options
def list_(folder: str | None, as_json: bool) -> None:  # click's flag
    found = in_app(folder, _everything)
    if as_json:
        write_json(json.dumps([asdict(one) for one in found], ensure_ascii=False))
        return
    out = terminal(sys.stdout)
    if not found:
        click.echo(say("grants.none"))
    for number, one in enumerate(found, 1):
        colour = "green" if one.answer == "allow" else "red"
        answer = out.paint(say("grants.allow") if one.answer == "allow" else say("grants.reject"), colour)
        out.write(f"{number:>3}  {answer}  {safe(localize(one.what))}\n")


@grants.command("revoke", help=say("help.grants.revoke"))
@click.argument("which", nargs=-1)
@click.option("--all", "every", is_flag=True, help=say("help.grants.all"))
@click.option("-C", "folder", metavar="DIR", help=say("help.opt.dir"))
def revoke(which: tuple[str, ...], every: bool, folder: str | None) -> None:  # click's flag
    async def work(app: App) -> tuple[RememberedAnswer, ...]:
        found = await _everything(app)
        gone = found if every else tuple(_named(name, found) for name in which)
        if not gone and not every:
            raise usage_error(say("grants.which"))
        for one in gone:
            revoke_answer(app.grants, app.consents, _workspace(app), one.key)
            if one.key.startswith(SERVER):
                app.servers.forget(one.key.removeprefix(SERVER))
        return gone

    for one in in_app(folder, work):
        click.echo(say("grants.gone", what=safe(localize(one.what))))


async def _everything(app: App) -> tuple[RememberedAnswer, ...]:
    return all_answers(app.grants, app.consents, _workspace(app))


def _workspace(app: App) -> str:
    return str(app.workspace.roots[0])


def _named(name: str, found: tuple[RememberedAnswer, ...]) -> RememberedAnswer:
    """The answer of that number in the list, or of that key or these words. Raises UsageError."""
    if name.isdecimal() and 0 < int(name) <= len(found):
        return found[int(name) - 1]
    one = next((one for one in found if name == one.key or name in renderings(one.what)), None)
    if one is None:
        raise usage_error(say("grants.unknown", name=name))
    return one

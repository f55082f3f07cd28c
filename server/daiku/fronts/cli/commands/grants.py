"""`daiku grants`: list and revoke the saved permissions of a folder."""

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
    answers = in_app(folder, _all_answers)
    if as_json:
        write_json(json.dumps([asdict(saved) for saved in answers], ensure_ascii=False))
        return
    out = terminal(sys.stdout)
    if not answers:
        click.echo(say("grants.none"))
    for number, saved in enumerate(answers, 1):
        colour = "green" if saved.answer == "allow" else "red"
        answer = out.paint(say("grants.allow") if saved.answer == "allow" else say("grants.reject"), colour)
        out.write(f"{number:>3}  {answer}  {safe(localize(saved.what))}\n")


@grants.command("revoke", help=say("help.grants.revoke"))
@click.argument("which", nargs=-1)
@click.option("--all", "every", is_flag=True, help=say("help.grants.all"))
@click.option("-C", "folder", metavar="DIR", help=say("help.opt.dir"))
def revoke(which: tuple[str, ...], every: bool, folder: str | None) -> None:  # click's flag
    async def work(app: App) -> tuple[RememberedAnswer, ...]:
        answers = await _all_answers(app)
        revoked = answers if every else tuple(_find_answer(name, answers) for name in which)
        if not revoked and not every:
            raise usage_error(say("grants.which"))
        for answer in revoked:
            revoke_answer(app.grants, app.consents, _workspace(app), answer.key)
            if answer.key.startswith(SERVER):
                app.servers.forget(answer.key.removeprefix(SERVER))
        return revoked

    for answer in in_app(folder, work):
        click.echo(say("grants.gone", what=safe(localize(answer.what))))


async def _all_answers(app: App) -> tuple[RememberedAnswer, ...]:
    return all_answers(app.grants, app.consents, _workspace(app))


def _workspace(app: App) -> str:
    return str(app.workspace.roots[0])


def _find_answer(name: str, answers: tuple[RememberedAnswer, ...]) -> RememberedAnswer:
    """Return the answer with this number in the list, this key, or this description. Raises UsageError."""
    if name.isdecimal() and 0 < int(name) <= len(answers):
        return answers[int(name) - 1]
    match = next((match for match in answers if name == match.key or name in renderings(match.what)), None)
    if match is None:
        raise usage_error(say("grants.unknown", name=name))
    return match

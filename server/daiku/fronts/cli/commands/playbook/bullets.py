"""`daiku playbook`: list, search, show, add, disable, and enable bullets."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import click

from daiku.api import ShownDelta
from daiku.domain.playbook import PlaybookScope
from daiku.fronts.cli.app_setup import folder_of, print_notices, settings_for
from daiku.fronts.cli.commands.playbook.files import export_, import_
from daiku.fronts.cli.commands.playbook.looks import bullet_line, delta_lines, indent_lines, observation_line
from daiku.fronts.cli.commands.playbook.opening import (
    as_row,
    open_desk_of,
    print_json,
    print_redacted_notice,
    print_rows,
    scope_option,
)
from daiku.fronts.cli.commands.playbook.reviewing import deltas, review, undo
from daiku.fronts.cli.display.term import Terminal, clip, safe, terminal, to_the_minute
from daiku.fronts.cli.main import usage_error, write_output
from daiku.fronts.cli.options import argument_text, place_options
from daiku.guard.rules.redact import Redactor
from daiku.playbook.rules.sections import SECTIONS, split_section
from daiku.playbook.rules.textform import group_by_section
from daiku.settings import secrets_of
from daiku.settings.config import Config
from daiku.settings.trust import is_trusted
from daiku.texts.terminal import say

if TYPE_CHECKING:
    from daiku.playbook.offline import OfflineLearning

TEXT = 100
"""Width in columns of a lesson if the output is not a terminal."""


def _refuse_removed(_: click.Context, option: click.Parameter, value: object) -> None:
    """Raise UsageError for an option of trials, which earlier versions had."""
    if value:
        raise usage_error(say("adapt.removed", option=f"--{option.name}"))


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
    from daiku.playbook.offline import learn_offline  # when used
    from daiku.trace.journal import ALL  # when used

    del max_cost, offline  # offline learning is the only mode and costs nothing
    place = folder_of(folder)
    loaded, home = settings_for(place)
    print_notices(loaded)
    if why := _why_nothing_is_learned(loaded.config):
        raise usage_error(why)
    redact = Redactor(secrets_of(loaded.config, os.environ))
    trusted = is_trusted(home, place)
    result = learn_offline(
        loaded.config, home, place, redact, trusted=trusted, most=cases or ALL, dry_run=dry_run
    )
    if as_json:
        print_json(as_row(result))
    else:
        write_output("".join(line + "\n" for line in _lines(result, terminal(sys.stdout))))


def _why_nothing_is_learned(config: Config) -> str:
    if not config.playbook.enabled:
        return say("adapt.disabled")
    return say("adapt.off") if config.playbook.learn == "off" else ""


def _lines(result: OfflineLearning, out: Terminal) -> Iterator[str]:
    """Yield the number of sessions, and each change of the playbook."""
    if result.dry_run:
        yield say("adapt.would_learn", sessions=result.sessions)
        return
    yield say("adapt.learned", sessions=result.sessions, changes=len(result.changes))
    for event in result.changes:
        is_pending = event.change == "proposed"
        status = say("playbook.status.proposed" if is_pending else "playbook.status.applied")
        head = f"{out.paint(safe(event.bullet_id), 'bold')}  {out.paint(status, 'yellow' if is_pending else 'green')}"
        yield f"{head}  {clip(safe(event.content), TEXT)}"


class WholeHelpGroup(click.Group):
    """A group that lists its commands with complete help sentences; click would truncate them."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.commands[name].help or "") for name in self.list_commands(ctx)])


@click.group(cls=WholeHelpGroup, help=say("help.playbook"), invoke_without_command=True)
@click.pass_context
def playbook(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@playbook.command("list", help=say("help.playbook.list"))
@click.option("--section", default="", metavar="S", help=say("help.playbook.section"))
@click.option("--all", "everything", is_flag=True, help=say("help.playbook.all"))
@scope_option()
@place_options
def list_(
    section: str,
    everything: bool,  # click's flag
    scope: PlaybookScope | None,
    folder: str | None,
    as_json: bool,  # click's flag
) -> None:
    with open_desk_of(folder) as desk:
        listing = desk.list(scope, section, everything=everything)
        pending = [
            change
            for change in (desk.deltas(scope, ("proposed",)) if everything else ())
            if change.type == "add"
            and (not section or split_section(section) == split_section(change.section))
        ]
    if as_json:
        print_rows((*listing.bullets, *pending))
        return
    out = terminal(sys.stdout)
    if not listing.bullets and not pending:
        click.echo(say("none_yet"))
    for name, bullets in group_by_section(listing.bullets):
        click.echo(out.paint(safe(name), "bold"))
        for bullet in bullets:
            click.echo("  " + bullet_line(bullet, out, resting=bullet.id in listing.resting))
    for delta in pending:
        for line in delta_lines(delta, out):
            click.echo(line)


@playbook.command("search", help=say("help.playbook.search"))
@click.argument("query")
@click.option("--top-k", type=click.IntRange(1, 1000), metavar="N", help=say("help.playbook.top_k"))
@click.option("--section", default="", metavar="S", help=say("help.playbook.section"))
@scope_option()
@place_options
def search(
    query: str,
    top_k: int | None,
    section: str,
    scope: PlaybookScope | None,
    folder: str | None,
    as_json: bool,  # click's flag
) -> None:
    with open_desk_of(folder) as desk:
        hits = desk.search(query, scope, section, top_k).hits
    if as_json:
        print_rows(hits)
        return
    out = terminal(sys.stdout)
    if not hits:
        click.echo(say("playbook.nothing_fits"))
    for hit in hits:
        words, vectors = f"{hit.bm25_score:.2f}", f"{hit.vector_score:.2f}"
        score = say("playbook.score", score=f"{hit.combined_score:.2f}", words=words, vectors=vectors)
        click.echo(bullet_line(hit.bullet, out, resting=hit.resting, score=score))


@playbook.command("show", help=say("help.playbook.show"))
@click.argument("bullet")
@place_options
def show(bullet: str, folder: str | None, as_json: bool) -> None:  # click's flag
    with open_desk_of(folder) as desk:
        for delta in desk.deltas(None, ("proposed",)):
            if bullet == delta.id or (delta.type == "add" and bullet == delta.bullet_id):
                _print_pending(delta, as_json=as_json)
                return
        shown_bullet = desk.show(bullet)
    if as_json:
        rows = as_row(shown_bullet)
        bullet_row = as_row(shown_bullet.bullet)
        print_json({**bullet_row, "history": rows["history"], "observations": rows["observations"]})
        return
    out, entry = terminal(sys.stdout), shown_bullet.bullet
    click.echo(f"{out.paint(safe(entry.id), 'bold')}  {safe(entry.section)}")
    for line in indent_lines(entry.content):
        click.echo(line)
    facts = {
        say("playbook.fact.keywords"): ", ".join(entry.keywords),
        say("playbook.fact.counts"): say("playbook.counts", helpful=entry.helpful, harmful=entry.harmful),
        say("playbook.fact.stands"): say("playbook.active") if entry.active else say("playbook.disabled"),
        say("playbook.fact.origin"): say(f"playbook.origin.{entry.origin}"),
        say("playbook.fact.updated"): to_the_minute(entry.updated_at),
    }
    for name, value in facts.items():
        if value:
            click.echo(f"  {out.paint(name, 'dim')}: {safe(value)}")
    if shown_bullet.history:
        click.echo(out.paint(say("playbook.history"), "bold"))
    for delta in shown_bullet.history:
        for line in delta_lines(delta, out):
            click.echo("  " + line)
    if shown_bullet.observations:
        click.echo(out.paint(say("playbook.observations"), "bold"))
    for observation in shown_bullet.observations:
        click.echo("  " + observation_line(observation, out))


def _print_pending(delta: ShownDelta, *, as_json: bool) -> None:
    if as_json:
        print_json(as_row(delta))
        return
    for line in delta_lines(delta, terminal(sys.stdout)):
        click.echo(line)


@playbook.command("add", help=say("help.playbook.add"))
@click.argument("words", nargs=-1, required=True, metavar="TEXT")
@click.option(
    "--section", required=True, metavar="S", help=say("help.playbook.into", names=", ".join(SECTIONS))
)
@click.option("--keyword", "keywords", multiple=True, metavar="WORD", help=say("help.playbook.keyword"))
@click.option("--propose", is_flag=True, help=say("help.playbook.propose"))
@scope_option("repository")
@place_options
def add(
    words: tuple[str, ...],
    section: str,
    keywords: tuple[str, ...],
    propose: bool,  # click's flag
    scope: PlaybookScope,
    folder: str | None,
    as_json: bool,  # click's flag
) -> None:
    content = argument_text(words).strip("\n")
    with open_desk_of(folder) as desk:
        change = desk.add(section, content, scope, keywords, propose=propose)
    print_redacted_notice(change.redacted)
    if as_json:
        print_json(as_row(change))
        return
    (delta,) = change.deltas
    click.echo(delta.id if change.bullet is None else change.bullet.id)


def _switch(active: bool, bullet: str, folder: str | None, as_json: bool) -> None:  # click's flags
    with open_desk_of(folder) as desk:
        change = desk.update(bullet, active=active)
    if as_json:
        print_json(as_row(change))
    elif change.deltas:
        name = safe(bullet)
        click.echo(say("playbook.enabled", id=name) if active else say("playbook.switched_off", id=name))
        click.echo(say("playbook.undo_with", id=change.deltas[0].id))
    else:
        name = safe(bullet)
        click.echo(
            say("playbook.enabled_already", id=name) if active else say("playbook.off_already", id=name)
        )


def _add(name: str, about: str, *, active: bool) -> None:
    command: Callable[..., None] = partial(_switch, active)
    parts = click.command(name, help=about)(place_options(command))
    parts.params.insert(0, click.Argument(["bullet"]))
    playbook.add_command(parts)


_add("remove", say("help.playbook.remove"), active=False)
_add("disable", say("help.playbook.disable"), active=False)
_add("enable", say("help.playbook.enable"), active=True)
for each in (deltas, review, undo, export_, import_, adapt):
    playbook.add_command(each)

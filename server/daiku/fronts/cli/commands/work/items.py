"""`daiku work`: the work items, listed and shown; one is paused, resumed, cancelled or tried again."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import get_args

import click

from daiku.domain.items.item import ItemState, WorkItem
from daiku.domain.messages import Usage
from daiku.fronts.cli.app_setup import folder_of, print_notices, settings_for
from daiku.fronts.cli.display.term import Colour, Terminal, clip, safe, terminal, to_the_minute
from daiku.fronts.cli.main import write_json
from daiku.fronts.cli.options import place_options
from daiku.guard.rules.redact import Redactor
from daiku.items.listing import ItemStore, Wanted, ask_item, open_items
from daiku.settings import secrets_of
from daiku.texts.terminal import localize, say

HEARD_SECONDS = 2.0
"""How long to wait until a pause is heard."""
BESIDE_TITLE = 32
"""Columns of an item's line beside its name and title: when it changed, how it stands, and what lies between."""
STATE_COLOURS: dict[ItemState, Colour] = {
    "processing": "cyan",
    "paused": "yellow",
    "waiting": "yellow",
    "done": "green",
    "failed": "red",
    "dead": "red",
}


@click.group(help=say("help.work"), invoke_without_command=True)
@click.pass_context
def work(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@work.command("list", help=say("help.work.list"))
@click.option("--state", type=click.Choice(get_args(ItemState)), help=say("help.work.state"))
@place_options
def list_(state: ItemState | None, folder: str | None, as_json: bool) -> None:  # click's flag
    with _items(folder) as items:
        found = items.list(state)
    if as_json:
        write_json("[" + ",".join(item.model_dump_json(by_alias=True) for item in found) + "]")
        return
    out = terminal(sys.stdout)
    if not found:
        click.echo(say("none_yet"))
    width = max((len(item.item) for item in found), default=0)
    for item in found:
        click.echo(_line(item, out, width))


@work.command("show", help=say("help.work.show"))
@click.argument("item")
@place_options
def show(item: str, folder: str | None, as_json: bool) -> None:  # click's flag
    with _items(folder) as items:
        found = items.find(item)
    if as_json:
        write_json(found.model_dump_json(by_alias=True))
        return
    out = terminal(sys.stdout)
    click.echo(_line(found, out, len(found.item)))
    progress = found.progress
    facts = {
        say("work.wanted"): found.wanted,
        say("work.steps"): f"{progress.done}/{progress.total} {progress.step}".rstrip() if progress else "",
        say("work.session"): found.session_id,
        say("work.branch"): found.branch,
        say("work.request"): found.request_url,
        say("work.url"): found.url,
        say("work.attempts"): str(found.attempts),
        say("work.used"): _used(found.usage),
        say("work.created"): to_the_minute(found.created_at),
        say("work.updated"): to_the_minute(found.updated_at),
        say("work.why"): localize(found.error),
        say("work.waits"): say("work.answer") if found.state == "waiting" else "",
    }
    for name, value in facts.items():
        if value:
            click.echo(f"  {out.paint(name, 'dim')}: {safe(value)}")


def _used(usage: Usage | None) -> str:
    """What the item's runs took so far, as its comment of progress says it."""
    tokens = usage.prompt_tokens + usage.completion_tokens if usage is not None else 0
    if usage is None or not tokens:
        return ""
    if usage.cost is None:
        return say("work.tokens", count=f"{tokens:,}")
    return say("work.tokens_cost", count=f"{tokens:,}", cost=f"{usage.cost:.2f}")


def _ask(wanted: Wanted, item: str, folder: str | None, as_json: bool) -> None:  # click's flag
    with _items(folder) as items:
        found = ask_item(items, item, wanted)
        heard = wanted == "pause" and found.state == "processing" and _heard(items, item)
    if as_json:
        write_json(found.model_dump_json(by_alias=True))
    elif heard:
        click.echo(say("work.pausing", item=safe(found.item)))
    elif found.state == "processing":
        # Whoever works it reads this at its next step; until then it stands as it did.
        click.echo(say("work.asked", item=safe(found.item), wanted=wanted))
    else:
        click.echo(_line(found, terminal(sys.stdout), len(found.item)))


def _heard(items: ItemStore, item: str) -> bool:
    """Whether whoever works the item has heard that it is to pause; it looks several times a second."""
    until = time.monotonic() + HEARD_SECONDS
    while not (heard := items.is_pausing(item)) and time.monotonic() < until:
        time.sleep(0.05)
    return heard


def _add(wanted: Wanted, about: str) -> None:
    command: Callable[..., None] = partial(_ask, wanted)
    made = click.command(wanted, help=about)(place_options(command))
    made.params.insert(0, click.Argument(["item"]))
    work.add_command(made)


_add("pause", say("help.work.pause"))
_add("resume", say("help.work.resume"))
_add("cancel", say("help.work.cancel"))
_add("retry", say("help.work.retry"))


@contextmanager
def _items(folder: str | None) -> Generator[ItemStore]:
    loaded, state = settings_for(folder_of(folder))
    print_notices(loaded)
    redact = Redactor(secrets_of(loaded.config, os.environ))
    with open_items(loaded.config, state, redact) as items:
        yield items


def _line(item: WorkItem, out: Terminal, width: int) -> str:
    """Return an item as one line: its name, when it changed, its state, its title, and why it is in that state."""
    unfinished = item.state == "done" and item.error  # a limit ended it
    colour = "yellow" if unfinished else STATE_COLOURS.get(item.state, "dim")
    state = out.paint(f"{item.state:<10}", colour)
    title = safe(f"{item.title} ({localize(item.error)})" if item.error else item.title)
    if out.live:
        title = clip(title, max(20, out.width - width - BESIDE_TITLE))
    return f"{safe(item.item):<{width}}  {to_the_minute(item.updated_at)}  {state}  {title}".rstrip()

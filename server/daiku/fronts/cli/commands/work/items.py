"""`daiku work`: list and show work items; pause, resume, cancel, or retry one."""

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
from daiku.items.listing import ItemAction, ItemStore, ask_item, open_items
from daiku.settings import secrets_of
from daiku.texts.terminal import localize, say

HEARD_SECONDS = 2.0
"""Timeout in seconds for a worker to acknowledge a pause."""
BESIDE_TITLE = 32
"""Columns of a line next to the name and title: time, state, and spacing."""
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
        listed = items.list(state)
    if as_json:
        write_json("[" + ",".join(item.model_dump_json(by_alias=True) for item in listed) + "]")
        return
    out = terminal(sys.stdout)
    if not listed:
        click.echo(say("none_yet"))
    width = max((len(item.item) for item in listed), default=0)
    for item in listed:
        click.echo(_line(item, out, width))


@work.command("show", help=say("help.work.show"))
@click.argument("item")
@place_options
def show(item: str, folder: str | None, as_json: bool) -> None:  # click's flag
    with _items(folder) as items:
        work_item = items.find(item)
    if as_json:
        write_json(work_item.model_dump_json(by_alias=True))
        return
    out = terminal(sys.stdout)
    click.echo(_line(work_item, out, len(work_item.item)))
    progress = work_item.progress
    facts = {
        say("work.wanted"): work_item.wanted,
        say("work.steps"): f"{progress.done}/{progress.total} {progress.step}".rstrip() if progress else "",
        say("work.session"): work_item.session_id,
        say("work.branch"): work_item.branch,
        say("work.request"): work_item.request_url,
        say("work.url"): work_item.url,
        say("work.attempts"): str(work_item.attempts),
        say("work.used"): _usage_text(work_item.usage),
        say("work.created"): to_the_minute(work_item.created_at),
        say("work.updated"): to_the_minute(work_item.updated_at),
        say("work.why"): localize(work_item.error),
        say("work.waits"): say("work.answer") if work_item.state == "waiting" else "",
    }
    for name, value in facts.items():
        if value:
            click.echo(f"  {out.paint(name, 'dim')}: {safe(value)}")


def _usage_text(usage: Usage | None) -> str:
    """Return the tokens and cost of the item's runs, as in its progress comment."""
    tokens = usage.prompt_tokens + usage.completion_tokens if usage is not None else 0
    if usage is None or not tokens:
        return ""
    if usage.cost is None:
        return say("work.tokens", count=f"{tokens:,}")
    return say("work.tokens_cost", count=f"{tokens:,}", cost=f"{usage.cost:.2f}")


def _send_request(request: ItemAction, item: str, folder: str | None, as_json: bool) -> None:  # click's flag
    with _items(folder) as items:
        work_item = ask_item(items, item, request)
        is_pausing = (
            request == "pause" and work_item.state == "processing" and _wait_until_pausing(items, item)
        )
    if as_json:
        write_json(work_item.model_dump_json(by_alias=True))
    elif is_pausing:
        click.echo(say("work.pausing", item=safe(work_item.item)))
    elif work_item.state == "processing":
        # The worker reads the request at its next step; until then the state is unchanged.
        click.echo(say("work.asked", item=safe(work_item.item), wanted=request))
    else:
        click.echo(_line(work_item, terminal(sys.stdout), len(work_item.item)))


def _wait_until_pausing(items: ItemStore, item: str) -> bool:
    """Wait until the worker acknowledges the pause, which it polls several times a second; False on timeout."""
    until = time.monotonic() + HEARD_SECONDS
    while not (is_pausing := items.is_pausing(item)) and time.monotonic() < until:
        time.sleep(0.05)
    return is_pausing


def _add_command(request: ItemAction, about: str) -> None:
    command: Callable[..., None] = partial(_send_request, request)
    new_command = click.command(request, help=about)(place_options(command))
    new_command.params.insert(0, click.Argument(["item"]))
    work.add_command(new_command)


_add_command("pause", say("help.work.pause"))
_add_command("resume", say("help.work.resume"))
_add_command("cancel", say("help.work.cancel"))
_add_command("retry", say("help.work.retry"))


@contextmanager
def _items(folder: str | None) -> Generator[ItemStore]:
    loaded, state = settings_for(folder_of(folder))
    print_notices(loaded)
    redact = Redactor(secrets_of(loaded.config, os.environ))
    with open_items(loaded.config, state, redact) as items:
        yield items


def _line(item: WorkItem, out: Terminal, width: int) -> str:
    """Return an item as one line: name, time, state, title, and the reason for its state."""
    unfinished = item.state == "done" and item.error  # stopped by a limit
    colour = "yellow" if unfinished else STATE_COLOURS.get(item.state, "dim")
    state = out.paint(f"{item.state:<10}", colour)
    title = safe(f"{item.title} ({localize(item.error)})" if item.error else item.title)
    if out.live:
        title = clip(title, max(20, out.width - width - BESIDE_TITLE))
    return f"{safe(item.item):<{width}}  {to_the_minute(item.updated_at)}  {state}  {title}".rstrip()

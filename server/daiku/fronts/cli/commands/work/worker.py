"""`daiku worker`: process labelled items; `--attempt` is the child process that runs one item's agent."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import time

import click

from daiku.domain.errors import DaikuError, Failure
from daiku.domain.items.item import SourceName, WorkItem
from daiku.fronts.cli.app_setup import folder_of, print_notices, settings_for
from daiku.fronts.cli.display.term import human_stream, safe
from daiku.fronts.cli.interrupts import on_interrupt
from daiku.fronts.cli.main import (
    CANCELLED,
    FAILED,
    WriteFailed,
    complain,
    fail,
    silence_broken_pipe,
    write_json,
    write_output,
)
from daiku.guard.rules.redact import Redactor
from daiku.items.listing import WorkerHealth, read_healths
from daiku.items.working import Claim, Work, attempt_item, create_sources, process_items
from daiku.logs import start_logging
from daiku.settings import secrets_of
from daiku.texts.terminal import locale_of, localize, say
from daiku.texts.text import Text


@click.command("worker", help=say("help.worker"))
@click.option("--once", is_flag=True, help=say("help.opt.once"))
@click.option("--source", type=click.Choice(["github", "gitlab", "files"]), help=say("help.opt.source"))
@click.option(
    "--concurrency", type=click.IntRange(1, 64), default=1, metavar="N", help=say("help.opt.concurrency")
)
@click.option("--dir", "items", metavar="PATH", help=say("help.opt.items"))
@click.option("--json", "as_json", is_flag=True, help=say("help.opt.json_items"))
@click.option("--health", "ask_health", is_flag=True, help=say("help.opt.health"))
@click.option("-C", "folder", metavar="DIR", help=say("help.opt.dir"))
@click.option("--attempt", hidden=True, default="", metavar="ITEM")
@click.option("--fence", hidden=True, type=int, default=0)
@click.option("--place", hidden=True, default="", metavar="DIR")
def worker(
    once: bool,
    source: SourceName | None,
    concurrency: int,
    items: str | None,
    as_json: bool,
    ask_health: bool,
    folder: str | None,
    attempt: str,
    fence: int,
    place: str,
) -> int:
    where = folder_of(folder)
    if attempt:
        return asyncio.run(_run_attempt(where, Claim(attempt, fence), folder_of(place)))
    loaded, home = settings_for(where, asks_model=not ask_health)
    if ask_health:
        return _print_health(home, as_json=as_json)
    print_notices(loaded)
    redact = Redactor(secrets_of(loaded.config, os.environ))
    start_logging(home, redact)  # the redactor also learns tokens that are created later
    work = Work(
        config=loaded.config,
        home=home,
        folder=where,
        environ=os.environ,
        tell=_print_item_json if as_json else _print_item,
        warn=_warn,
        redact=redact,
        only=source,
        items=folder_of(items) if items is not None else None,
        concurrency=concurrency,
        language=locale_of(os.environ),
    )
    return asyncio.run(_run_worker(work, once=once))


async def _run_worker(work: Work, *, once: bool) -> int:
    sources = create_sources(work)
    stopping = asyncio.Event()
    restore = on_interrupt(partial(_stop, stopping))
    if not once:
        _print_status(say("worker.begun", seconds=work.config.work.poll_seconds))
    try:
        return 0 if await process_items(work, sources, stopping, once=once) else FAILED
    finally:
        restore()


def _stop(stopping: asyncio.Event) -> None:
    """Return the items on the first signal, and end the process on the second; neither loses data."""
    if stopping.is_set():
        os._exit(CANCELLED)
    stopping.set()
    _print_status(say("worker.stopping"))


def _print_status(words: str) -> None:
    """Print a message if stderr is a terminal; logs and cron mails do not get it."""
    people = human_stream()
    if people.live:
        with suppress(OSError):
            people.write(words + "\n")


async def _run_attempt(where: Path, claim: Claim, place: Path) -> int:
    """Run one item in its work tree; the last line of standard output is the result."""
    loaded, home = settings_for(where, {"sandbox": {"network": False}}, asks_model=True)
    result = await attempt_item(loaded.config, home, where, claim, place, locale_of(os.environ))
    write_json(result.model_dump_json(by_alias=True))
    return 0


def _print_health(home: Path, *, as_json: bool) -> int:
    """Print the health of the workers; return 0 if there is one and all are healthy."""
    workers, now = read_healths(home), time()
    if not workers:
        return fail(DaikuError(Failure(kind="not_found", message=Text(say("worker.none")))), as_json=as_json)
    for health in workers:
        if as_json:
            write_json(_as_line(health))
            continue
        seconds = max(0, round(now - health.looked_at))
        poll_text = (
            say("worker.not_looked") if not health.looked_at else say("worker.looked", seconds=seconds)
        )
        facts = {"worker": health.worker, "looked": poll_text, "count": len(health.under_way)}
        line = say("worker.well", **facts) if health.is_well(now) else say("worker.unwell", **facts)
        write_output(safe(line + (f" {localize(health.error)}" if health.error else "")) + "\n")
    return 0 if all(worker_health.is_well(now) for worker_health in workers) else FAILED


def _as_line(value: WorkItem | WorkerHealth) -> str:
    return json.dumps(json.loads(value.model_dump_json(by_alias=True)), ensure_ascii=False)


def _print_item_json(item: WorkItem) -> None:
    """Print an item as JSON; processing continues if nobody reads the output."""
    try:
        write_json(_as_line(item))
    except BrokenPipeError:
        silence_broken_pipe()
    except WriteFailed as error:
        silence_broken_pipe()
        complain(say("error.output", why=error), "", FAILED)


def _warn(why: Text) -> None:
    with suppress(OSError):
        complain(localize(why), "", FAILED)


def _print_item(item: WorkItem) -> None:
    why = f": {localize(item.error)}" if item.error else ""
    with suppress(OSError):  # processing continues without a reader
        human_stream().write(safe(f"{item.item}  {item.state}{why}") + "\n")

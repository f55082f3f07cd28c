"""`daiku memory`: list, search, and delete the user's memories of a folder."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import click

from daiku.fronts.cli.app_setup import folder_of, print_notices, settings_for
from daiku.fronts.cli.display.term import human_stream, safe, terminal
from daiku.fronts.cli.main import usage_error, write_json
from daiku.fronts.cli.options import command_group, place_options
from daiku.guard.rules.redact import Redactor
from daiku.memory.memory import Memory
from daiku.memory.opening import open_memory
from daiku.settings import secrets_of
from daiku.texts.terminal import localize, say

T = TypeVar("T")


memory = command_group("memory")


@memory.command("list", help=say("help.memory.list"))
@click.option("-C", "folder", metavar="DIR", help=say("help.opt.dir"))
@click.option("--limit", default=100, type=click.IntRange(1, 100_000), help=say("help.opt.limit"))
@click.option("--json", "as_json", is_flag=True, help=say("help.opt.list_json"))
def list_(folder: str | None, limit: int, as_json: bool) -> None:  # click's flag
    entries = _with_memory(folder, lambda store: store.list(limit))
    if as_json:
        write_json(json.dumps([entry._asdict() for entry in entries], ensure_ascii=False))
        return
    _show([(entry.id, entry.time[:10], entry.text) for entry in entries])


@memory.command("search", help=say("help.memory.search"))
@click.argument("query")
@click.option("-C", "folder", metavar="DIR", help=say("help.opt.dir"))
@click.option("--limit", default=10, type=click.IntRange(1, 1000), help=say("help.opt.limit"))
@click.option("--json", "as_json", is_flag=True, help=say("help.opt.list_json"))
def search(query: str, folder: str | None, limit: int, as_json: bool) -> None:  # click's flag
    async def work(store: Memory) -> tuple[str, list[tuple[str, float, str]]]:
        hits = await store.search(query, limit)
        return localize(store.embedder.describe), [(hit.id, hit.score, hit.text) for hit in hits]

    how, hits = _with_memory(folder, work)
    if as_json:
        rows = [{"id": key, "score": score, "text": text} for key, score, text in hits]
        write_json(json.dumps(rows, ensure_ascii=False))
        return
    human_stream().write(f"{safe(how)}\n")
    _show([(key, f"{score:.2f}", text) for key, score, text in hits])


@memory.command("forget", help=say("help.memory.forget"))
@click.argument("ids", nargs=-1)
@click.option("--all", "every", is_flag=True, help=say("help.memory.all"))
@place_options
def forget(ids: tuple[str, ...], every: bool, folder: str | None, as_json: bool) -> None:  # click's flags
    if bool(ids) == every:
        raise usage_error(say("memory.which"))

    async def work(store: Memory) -> tuple[int, list[str]]:
        if every:
            return await store.forget_all(), []
        missing = [key for key in ids if not await store.forget(key)]
        return len(ids) - len(missing), missing

    count, missing = _with_memory(folder, work)
    if as_json:
        write_json(json.dumps({"forgotten": count, "unknown": missing}, ensure_ascii=False))
    elif count or not missing:
        click.echo(say("memory.forgotten", count=count))
    if missing:
        raise usage_error(say("memory.unknown", names=", ".join(missing)))


def _with_memory(folder: str | None, work: Callable[[Memory], Awaitable[T]]) -> T:
    """Run `work` with the folder's memory and return its result, even if the settings disable memory."""

    async def run_with_memory() -> T:
        place = folder_of(folder)
        loaded, state = settings_for(place)
        print_notices(loaded)
        redact = Redactor(secrets_of(loaded.config, os.environ))
        async with open_memory(loaded.config, str(place), state, redact) as store:
            return await work(store)

    return asyncio.run(run_with_memory())


def _show(rows: Sequence[tuple[str, str, str]]) -> None:
    out = terminal(sys.stdout)
    if not rows:
        click.echo(say("memory.none"))
    for key, note, text in rows:
        out.write(
            f"{out.paint(safe(key), 'bold')}  {out.paint(safe(note), 'dim')}  {safe(' '.join(text.split()))}\n"
        )

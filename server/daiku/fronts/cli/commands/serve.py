"""`daiku serve`: the agent over HTTP, for scripts and other programs."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
from ipaddress import ip_address
from pathlib import Path

import click

from daiku.fronts.cli.app_setup import folder_of, open_app
from daiku.fronts.cli.display.term import human_stream
from daiku.fronts.cli.interrupts import on_interrupt
from daiku.fronts.cli.main import CANCELLED, usage_error, write_json
from daiku.fronts.http.server import listen, serve_http, url_of
from daiku.texts.terminal import say

TOKEN = "DAIKU_SERVE_TOKEN"  # noqa: S105  # the name of the variable, not its value
FAR_TOKEN = 32
"""Characters that a token has at least, where others than this machine can try."""


@click.command("serve", help=say("help.serve"))
@click.option("--host", default="127.0.0.1", metavar="HOST", help=say("help.opt.host"))
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="PORT", help=say("help.opt.port"))
@click.option("--allow-host", "names", multiple=True, metavar="NAME", help=say("help.opt.allow_host"))
@click.option("-C", "folder", metavar="DIR", help=say("help.opt.dir"))
def serve_(host: str, port: int, names: tuple[str, ...], folder: str | None) -> int:
    place, given = folder_of(folder), os.environ.get(TOKEN, "")
    if given and not (given.isascii() and given.isprintable() and " " not in given):
        raise usage_error(say("serve.token", name=TOKEN))
    listening = listen(host, port)
    with listening:
        if not _is_near(listening):
            if len(given) < FAR_TOKEN:
                raise usage_error(say("serve.far", host=host, name=TOKEN, length=FAR_TOKEN))
            human_stream().write(say("serve.plain") + "\n")
        # As a variable it is blacked out wherever a text is kept, like every other secret.
        token = os.environ[TOKEN] = given or secrets.token_urlsafe(32)
        asyncio.run(_serve(place, listening, token, tuple(name.lower() for name in names)))
    return 0


def _is_near(listening: socket.socket) -> bool:
    """Whether only this machine reaches it."""
    return ip_address(listening.getsockname()[0].partition("%")[0]).is_loopback


async def _serve(place: Path, listening: socket.socket, token: str, names: tuple[str, ...]) -> None:
    stop = asyncio.Event()

    def interrupted() -> None:
        if stop.is_set():  # a second signal: what ends does not end
            os._exit(CANCELLED)
        stop.set()

    restore = on_interrupt(interrupted)

    def ready() -> None:
        write_json(json.dumps({"url": url_of(listening), "token": token}))

    try:
        async with open_app(place, asks_model=True) as app:
            await serve_http(app, listening, token, names, ready, stop)
    finally:
        restore()

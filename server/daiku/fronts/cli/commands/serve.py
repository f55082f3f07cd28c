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
"""Name of the environment variable with the access token."""
FAR_TOKEN = 32
"""Minimum characters of the token if other machines can connect."""


@click.command("serve", help=say("help.serve"))
@click.option("--host", default="127.0.0.1", metavar="HOST", help=say("help.opt.host"))
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="PORT", help=say("help.opt.port"))
@click.option("--allow-host", "names", multiple=True, metavar="NAME", help=say("help.opt.allow_host"))
@click.option("-C", "folder", metavar="DIR", help=say("help.opt.dir"))
def serve_(host: str, port: int, names: tuple[str, ...], folder: str | None) -> int:
    place, given_token = folder_of(folder), os.environ.get(TOKEN, "")
    if given_token and not (given_token.isascii() and given_token.isprintable() and " " not in given_token):
        raise usage_error(say("serve.token", name=TOKEN))
    server_socket = listen(host, port)
    with server_socket:
        if not _is_loopback(server_socket):
            if len(given_token) < FAR_TOKEN:
                raise usage_error(say("serve.far", host=host, name=TOKEN, length=FAR_TOKEN))
            human_stream().write(say("serve.plain") + "\n")
        # As an environment variable it is redacted like every other secret.
        token = os.environ[TOKEN] = given_token or secrets.token_urlsafe(32)
        asyncio.run(_serve(place, server_socket, token, tuple(name.lower() for name in names)))
    return 0


def _is_loopback(listening: socket.socket) -> bool:
    """Return True if only this machine can connect."""
    return ip_address(listening.getsockname()[0].partition("%")[0]).is_loopback


async def _serve(place: Path, listening: socket.socket, token: str, names: tuple[str, ...]) -> None:
    stop = asyncio.Event()

    def handle_interrupt() -> None:
        if stop.is_set():  # second signal: the shutdown hangs
            os._exit(CANCELLED)
        stop.set()

    restore = on_interrupt(handle_interrupt)

    def print_address() -> None:
        write_json(json.dumps({"url": url_of(listening), "token": token}))

    try:
        async with open_app(place, asks_model=True) as app:
            await serve_http(app, listening, token, names, print_address, stop)
    finally:
        restore()

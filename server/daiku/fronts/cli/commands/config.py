"""`daiku config`: show every setting with its source, and trust folders' settings."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, cast

import click
from pydantic import BaseModel, SecretStr

from daiku.domain.base import JsonObject
from daiku.fronts.cli.app_setup import folder_of, print_notices, settings_for
from daiku.fronts.cli.display.term import safe, terminal
from daiku.fronts.cli.main import write_json
from daiku.fronts.cli.options import command_group, place_options
from daiku.settings import Loaded, every_key, home
from daiku.settings.trust import set_trusted
from daiku.texts.terminal import say

MASK = "••••••••"


config = command_group("config")


@config.command("show", help=say("help.config.show"))
@place_options
def show(folder: str | None, as_json: bool) -> None:  # click's flag
    loaded, _ = settings_for(folder_of(folder))
    print_notices(loaded)
    if as_json:
        rows: JsonObject = {
            key: {"value": _value(loaded, key), "source": loaded.origins.get(key, "default")}
            for key in every_key()
        }
        write_json(json.dumps(rows, ensure_ascii=False))
        return
    out = terminal(sys.stdout)
    section = ""
    for key in sorted(every_key(), key=lambda key: "." in key):
        table, _, name = key.rpartition(".")
        if table != section:
            section = table
            if table:
                click.echo(out.paint(f"[{table}]", "bold"))
        source = loaded.origins.get(key, "")
        text = f"{name} = {safe(json.dumps(_value(loaded, key), ensure_ascii=False))}"
        if source:
            click.echo(f"{text}  {out.paint('# ' + safe(source), 'green')}")
        else:
            click.echo(out.paint(f"{text}  # {say('config.default')}", "dim"))


@config.command("trust", help=say("help.config.trust"))
@click.argument("folder", default=".")
def trust(folder: str) -> None:
    place = folder_of(folder)
    set_trusted(home(os.environ), place, trusted=True)
    click.echo(say("trusted", folder=place))


@config.command("untrust", help=say("help.config.untrust"))
@click.argument("folder", default=".")
def untrust(folder: str) -> None:
    place = folder_of(folder)
    set_trusted(home(os.environ), place, trusted=False)
    click.echo(say("untrusted", folder=place))


def _value(loaded: Loaded, key: str) -> Any:
    """Return the value for JSON, with secrets masked."""
    value: Any = loaded.config
    for part in key.split("."):
        value = getattr(value, part)
    return _mask_secrets(value, hidden=key.endswith(("headers", "database_url")))


def _mask_secrets(value: Any, *, hidden: bool) -> Any:
    if isinstance(value, SecretStr):
        return MASK if value.get_secret_value() else ""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        return {
            name: _mask_secrets(getattr(value, name), hidden=name in ("env", "headers")) for name in fields
        }
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return {k: _mask_secrets(v, hidden=hidden) for k, v in table.items()}
    if isinstance(value, tuple | list):
        return [_mask_secrets(v, hidden=hidden) for v in cast("tuple[Any, ...]", value)]
    return MASK if hidden and value else value

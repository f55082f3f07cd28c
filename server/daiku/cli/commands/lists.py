"""`daiku models` and `daiku tools`: list what is available, and say why the rest is unavailable."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import click

from daiku.cli.app_setup import folder_of, open_app
from daiku.cli.commands.mcp import servers_now, show_server
from daiku.cli.display.term import Terminal, clip, human_stream, safe, terminal
from daiku.cli.main import usage
from daiku.domain.errors import DaikuError
from daiku.domain.servers import ServerReport
from daiku.domain.tools import ToolSpec
from daiku.llm.model import ProviderModels
from daiku.texts.terminal import localize, say
from daiku.texts.text import joined
from daiku.tools.plugins import Plugin


@click.command(help=say("help.models"))
@click.option("-C", "folder", metavar="DIR", help=say("help.opt.dir"))
@click.option("--json", "as_json", is_flag=True, help=say("help.opt.list_json"))
def models(folder: str | None, as_json: bool) -> None:  # click's flag
    async def work() -> tuple[tuple[ProviderModels, ...], str]:
        async with open_app(folder_of(folder)) as app:
            try:
                chosen = app.llm.resolve("").name
            except DaikuError:
                chosen = ""
            return await app.models(), chosen

    offers, chosen = asyncio.run(work())
    if as_json:
        click.echo(
            json.dumps({"chosen": chosen, "providers": [_offer_json(o) for o in offers]}, ensure_ascii=False)
        )
        return
    out = terminal(sys.stdout)
    for offer in offers:
        click.echo(out.paint(offer.provider, "bold"))
        if offer.error is not None:
            why = safe(localize(joined("sentences", [offer.error.message, offer.error.hint])))
            click.echo("  " + out.paint(say("models.unreachable", why=why), "dim"))
        for model in offer.models:
            context = say("models.context", tokens=f"{model.context:,}") if model.context else ""
            traits = ", ".join(n for n in ("tools", "images", "thinking") if getattr(model, n))
            mark = out.paint("*", "green") if f"{offer.provider}/{model.name}" == chosen else " "
            rest = " · ".join(part for part in (context, traits, safe(localize(model.trait))) if part)
            click.echo(f"{mark} {safe(model.name):<36} {out.paint(rest, 'dim')}".rstrip())


def _offer_json(offer: ProviderModels) -> dict[str, Any]:
    return {
        "provider": offer.provider,
        "models": [model.model_dump() for model in offer.models],
        "error": offer.error.model_dump(by_alias=True) if offer.error else None,
    }


@click.command(help=say("help.tools"))
@click.option("-C", "folder", metavar="DIR", help=say("help.opt.dir"))
@click.option("--json", "as_json", is_flag=True, help=say("help.opt.list_json"))
def tools(folder: str | None, as_json: bool) -> None:  # click's flag
    async def work() -> tuple[tuple[ToolSpec, ...], tuple[ServerReport, ...], tuple[Plugin, ...]]:
        async with open_app(folder_of(folder)) as app:
            reports = await servers_now(app)
            return app.tools(), reports, app.plugins

    specs, reports, plugins = asyncio.run(work())
    for report in reports:
        if report.status != "ready" or report.why:
            show_server(report, human_stream())
    for plugin in plugins:
        if plugin.status != "on":
            show_plugin(plugin, human_stream())
    if as_json:
        click.echo(json.dumps([spec.model_dump() for spec in specs], ensure_ascii=False))
        return
    out = terminal(sys.stdout)
    for spec in specs:
        about = safe(" ".join(spec.description.split()))
        text = clip(about, out.width - 36) if out.live else about
        click.echo(f"{safe(spec.name):<22} {out.paint(f'{spec.effect:<8}', 'dim')}  {text}")


def show_plugin(plugin: Plugin, out: Terminal) -> None:
    """One line for a package whose tools are not used, and what to do."""
    name = out.paint(safe(plugin.package), "bold")
    broken = plugin.status == "broken"
    text = (
        say("plugin.broken", why=safe(plugin.why))
        if broken
        else say("plugin.off", package=safe(plugin.package))
    )
    out.write(f"{name}  {out.paint(text, 'yellow')}\n")


@click.command(help=say("help.lsp"))
@click.option("--tcp", metavar="HOST:PORT", help=say("help.opt.tcp"))
@click.option("--stdio", is_flag=True, hidden=True)
def lsp(**_: Any) -> None:
    """Provide the help text of `daiku lsp`; the server itself is started by `daiku.__main__`."""
    raise usage(say("help.lsp"))

"""`daiku models`, `daiku tools`, `daiku agents`: list what is available, and why the rest is not."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from daiku.api import AgentInfo
from daiku.domain.errors import DaikuError
from daiku.domain.servers import ServerReport
from daiku.domain.tools import ToolSpec
from daiku.fronts.cli.app_setup import in_app
from daiku.fronts.cli.display.term import Terminal, clip, human_stream, safe, terminal
from daiku.fronts.cli.main import FAILED, usage_error, write_json
from daiku.fronts.cli.options import command_group, place_options
from daiku.library.fronts import App
from daiku.library.offers import agents_of
from daiku.models.model import ProviderModels
from daiku.plugins.entries import Kind, Plugged, Plugin
from daiku.texts.terminal import localize, say
from daiku.texts.text import joined

WAIT = 300.0
"""Timeout in seconds for an allowed server to start; it may install itself or sign in first."""


mcp = command_group("mcp")


@mcp.command("list", help=say("help.mcp.list"))
@place_options
def list_(folder: str | None, as_json: bool) -> None:  # click's flag
    reports = in_app(folder, check_servers)
    if as_json:
        write_json(json.dumps([report.model_dump() for report in reports], ensure_ascii=False))
        return
    out = terminal(sys.stdout)
    if not reports:
        click.echo(say("mcp.none"))
    for report in reports:
        print_server(report, out)
        for name in report.tools:
            click.echo(f"  {safe(name)}")


@mcp.command("allow", help=say("help.mcp.allow"))
@click.argument("name")
@click.option("-C", "folder", metavar="DIR", help=say("help.opt.dir"))
def allow(name: str, folder: str | None) -> int:
    people = human_stream()

    def print_notice(text: str) -> None:
        people.write(people.paint(f"! {safe(localize(text))}", "yellow") + "\n")

    async def work(app: App) -> ServerReport:
        server = app.servers.find(name)
        if server is None:
            raise usage_error(say("mcp.unknown", name=name, names=_names(app)))
        if server.report().status == "rejected":
            app.servers.forget(name)
        while question := server.agreement.find_question():
            people.write(safe(localize(question.preview)) + "\n")
            app.servers.record_answer(question, "allow_always")
            await app.servers.start_allowed(print_notice, person=True, seconds=WAIT, only=name)
        await app.servers.start_allowed(print_notice, person=True, seconds=WAIT, only=name)
        return server.report()

    report = in_app(folder, work)
    print_server(report, people)
    return 0 if report.status == "ready" else FAILED


@mcp.command("forget", help=say("help.mcp.forget"))
@click.argument("name")
@click.option("-C", "folder", metavar="DIR", help=say("help.opt.dir"))
def forget(name: str, folder: str | None) -> None:
    async def work(app: App) -> None:
        if not app.servers.forget(name):
            raise usage_error(say("mcp.unknown", name=name, names=_names(app)))

    in_app(folder, work)
    click.echo(say("mcp.forgotten", name=name))


async def check_servers(app: App) -> tuple[ServerReport, ...]:
    """Start the allowed servers and return the status of all."""
    if len(app.servers):
        await app.servers.start_allowed(lambda _: None, person=False)
    return app.servers.list_reports()


def print_server(report: ServerReport, out: Terminal) -> None:
    """Print one line about the server, and what to do if it is unusable."""
    why = f" – {safe(localize(report.why))}" if report.why else ""
    colour = "green" if report.status == "ready" else "yellow"
    status = say(f"mcp.{report.status}")
    out.write(f"{out.paint(safe(report.name), 'bold')}  {out.paint(status, colour)}{why}\n")
    if report.hint:
        out.write(f"    {safe(localize(report.hint))}\n")


def _names(app: App) -> str:
    return ", ".join(report.name for report in app.servers.list_reports()) or "–"


@click.command(help=say("help.models"))
@place_options
def models(folder: str | None, as_json: bool) -> None:  # click's flag
    async def work(app: App) -> tuple[tuple[ProviderModels, ...], str, Plugged]:
        try:
            selected = app.llm.resolve("").name
        except DaikuError:
            selected = ""
        return await app.models(), selected, app.plugged

    offers, selected, plugged = in_app(folder, work, asks_model=True)
    print_plugins(plugged, "provider")
    if as_json:
        providers = [_offer_json(o, plugged.origin("provider", o.provider)) for o in offers]
        write_json(json.dumps({"chosen": selected, "providers": providers}, ensure_ascii=False))
        return
    out = terminal(sys.stdout)
    for offer in offers:
        origin = _origin_label(plugged.origin("provider", offer.provider), out)
        click.echo(out.paint(safe(offer.provider), "bold") + origin)
        if offer.error is not None:
            why = safe(localize(joined("sentences", [offer.error.message, offer.error.hint])))
            click.echo("  " + out.paint(say("models.unreachable", why=why), "dim"))
        for model in offer.models:
            context = say("models.context", tokens=f"{model.context:,}") if model.context else ""
            traits = ", ".join(n for n in ("tools", "images", "thinking") if getattr(model, n))
            mark = out.paint("*", "green") if f"{offer.provider}/{model.name}" == selected else " "
            rest = " · ".join(part for part in (context, traits, safe(localize(model.trait))) if part)
            click.echo(f"{mark} {safe(model.name):<36} {out.paint(rest, 'dim')}".rstrip())


def _offer_json(offer: ProviderModels, origin: str) -> dict[str, Any]:
    return {
        "provider": offer.provider,
        "origin": origin,
        "models": [model.model_dump() for model in offer.models],
        "error": offer.error.model_dump(by_alias=True) if offer.error else None,
    }


@click.command(help=say("help.tools"))
@place_options
def tools(folder: str | None, as_json: bool) -> None:  # click's flag
    async def work(app: App) -> tuple[tuple[ToolSpec, ...], tuple[ServerReport, ...], Plugged]:
        reports = await check_servers(app)
        return app.tools(), reports, app.plugged

    specs, reports, plugged = in_app(folder, work)
    for report in reports:
        if report.status != "ready" or report.why:
            print_server(report, human_stream())
    print_plugins(plugged, "tool", "work_source")
    if as_json:
        rows = [{**spec.model_dump(), "origin": plugged.origin("tool", spec.name)} for spec in specs]
        write_json(json.dumps(rows, ensure_ascii=False))
        return
    out = terminal(sys.stdout)
    for spec in specs:
        about = safe(" ".join(spec.description.split()))
        text = clip(about, out.width - 36) if out.live else about
        origin = _origin_label(plugged.origin("tool", spec.name), out)
        click.echo(f"{safe(spec.name):<22} {out.paint(f'{spec.effect:<8}', 'dim')}  {text}{origin}")


@click.command(help=say("help.agents"))
@place_options
def agents(folder: str | None, as_json: bool) -> None:  # click's flag
    async def work(app: App) -> tuple[tuple[AgentInfo, ...], Plugged]:
        return agents_of(app).agents, app.plugged

    infos, plugged = in_app(folder, work)
    print_plugins(plugged, "agent")
    if as_json:
        write_json(json.dumps([agent.model_dump() for agent in infos], ensure_ascii=False))
        return
    out = terminal(sys.stdout)
    for agent in infos:
        about = safe(" ".join(agent.description.split()))
        text = clip(about, out.width - 18) if out.live else about
        name = out.paint(f"{safe(agent.name):<16}", "bold")
        click.echo(f"{name}  {text}{_origin_label(agent.origin, out)}")


def _origin_label(origin: str, out: Terminal) -> str:
    """Return the origin label of a plug-in's item; empty for Daiku's own."""
    return out.paint(f"  [{safe(origin)}]", "cyan") if origin else ""


def print_plugins(plugged: Plugged, *kinds: Kind) -> None:
    """Print the plug-ins of these kinds that are not, or only partly, used, and active work sources."""
    for plugin in plugged.plugins:
        if plugin.kind in kinds and (plugin.status != "on" or plugin.why or plugin.kind == "work_source"):
            print_plugin(plugin, human_stream())


def print_plugin(plugin: Plugin, out: Terminal) -> None:
    """Print one line about a plug-in: what it provides, or why it is not used and what to do."""
    name = out.paint(safe(plugin.origin), "bold")
    match plugin.status:
        case "on":
            text, why = say("plugin.on", names=safe(", ".join(plugin.names))), localize(plugin.why)
            text = f"{text} {safe(why)}".strip()
        case "off":
            text = say("plugin.off", package=safe(plugin.package))
        case "broken":
            text = say("plugin.broken", why=safe(localize(plugin.why)))
    out.write(f"{name}  {out.paint(text, 'yellow')}\n")


@click.command(help=say("help.lsp"))
@click.option("--tcp", metavar="HOST:PORT", help=say("help.opt.tcp"))
@click.option("--stdio", is_flag=True, hidden=True)
def lsp(**_: Any) -> None:
    """Provide the help text of `daiku lsp`; `daiku.__main__` starts the server."""
    raise usage_error(say("help.lsp"))


@click.command(help=say("help.acp"))
@click.option("--model", metavar="NAME", help=say("help.opt.model"))
def acp(**_: Any) -> None:
    """Provide the help text of `daiku acp`; `daiku.__main__` starts the agent."""
    raise usage_error(say("help.acp"))

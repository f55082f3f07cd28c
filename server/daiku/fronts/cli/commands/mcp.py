"""`daiku mcp`: list the configured MCP servers with their status, and allow them before unattended runs."""

from __future__ import annotations

import json
import sys

import click

from daiku.domain.servers import ServerReport
from daiku.fronts.cli.app_setup import in_app
from daiku.fronts.cli.display.term import Terminal, human_stream, safe, terminal
from daiku.fronts.cli.main import FAILED, usage_error, write_json
from daiku.fronts.cli.options import command_group, place_options
from daiku.library.fronts import App
from daiku.texts.terminal import localize, say

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

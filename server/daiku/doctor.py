"""Diagnose this machine's setup, and say how to fix each problem; used by the terminal and the editor."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import assert_never
from urllib.parse import urlsplit

from daiku.api import DoctorFinding
from daiku.domain.errors import DaikuError, Failure
from daiku.domain.servers import ServerReport
from daiku.guard.sandbox import confines_root, sandbox_state
from daiku.items.forges import Forge, check_forges
from daiku.items.listing import get_items
from daiku.library.fronts import App
from daiku.plugins.entries import Plugin
from daiku.settings import home, user_file, workspace_file
from daiku.store.sqlite import SQLITE, SQLITE_NEEDED
from daiku.texts.text import NO_TEXT, Text, joined, text
from daiku.version import __version__
from daiku.workspace.programs import find_program

INSTALLERS = {
    "apt-get": "sudo apt-get install {name}",
    "dnf": "sudo dnf install {name}",
    "pacman": "sudo pacman -S {name}",
    "zypper": "sudo zypper install {name}",
    "apk": "sudo apk add {name}",
    "brew": "brew install {name}",
    "winget": "winget install {name}",
}
"""Install command for system packages, by package manager; the first available one is suggested."""


def check_machine() -> Iterator[DoctorFinding]:
    """Check the interpreter, the database, and the programs that Daiku uses."""
    interpreter = Text(f"Daiku {__version__}, Python {sys.version.split()[0]} ({sys.executable})")
    yield DoctorFinding(area="daiku", state="good", what=interpreter)
    library = Text(f"SQLite {_version(SQLITE)}")
    mend = text("doctor.sqlite_needed", version=_version(SQLITE_NEEDED))
    outdated = SQLITE < SQLITE_NEEDED
    yield DoctorFinding(
        area="daiku", state="bad" if outdated else "good", what=library, mend=mend if outdated else NO_TEXT
    )
    for name, package, mend in (
        ("git", "git", text("doctor.install_git")),
        ("rg", "ripgrep", text("doctor.install_ripgrep")),
    ):
        if path := find_program(name):
            yield DoctorFinding(area="programs", state="good", what=Text(f"{name}: {path}"))
        else:
            missing = text("doctor.not_installed", name=name)
            yield DoctorFinding(
                area="programs", state="note", what=missing, mend=mend, command=install_command(package)
            )


def install_command(package: str) -> str:
    """Return the command that installs a system package; empty if none is known."""
    template = next((template for program, template in INSTALLERS.items() if find_program(program)), "")
    return template.format(name=package)


def _version(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def check_files(place: Path | None, environ: Mapping[str, str], *, trusted: bool) -> Iterator[DoctorFinding]:
    """Check the data folder's permissions, and report which settings files apply.

    `trusted`: the settings file of the folder `place` applies.
    """
    try:
        state = home(environ)
    except DaikuError as error:
        yield failure_finding("daiku", error.failure)
        return
    yield DoctorFinding(area="daiku", state="good", what=text("doctor.data", path=str(state)))
    for path in sorted(state.iterdir()):
        mode = stat.S_IMODE(path.stat().st_mode)
        if os.name == "posix" and mode & 0o077:
            what, mend = (
                text("doctor.readable_by_others", path=str(path), mode=f"{mode:o}"),
                Text(f"chmod go= {path}"),
            )
            yield DoctorFinding(area="daiku", state="bad", what=what, mend=mend, command=mend)
    user, own_file = user_file(environ), None if place is None else workspace_file(place)
    key = "doctor.settings" if user.exists() else "doctor.no_settings"
    what = text(key, path=str(user))
    yield DoctorFinding(area="settings", state="good", what=what)
    if own_file is not None and own_file.exists():
        if trusted:
            what = text("doctor.folder_trusted", path=str(own_file))
            yield DoctorFinding(area="settings", state="good", what=what)
        else:
            what = text("doctor.folder_untrusted", path=str(own_file))
            mend = text("doctor.trust_it")
            yield DoctorFinding(area="settings", state="note", what=what, mend=mend, action="trust")


async def check_app(app: App) -> list[DoctorFinding]:
    """Check the parts that need an open App: sandbox, models, allowed MCP servers, and tools."""
    if len(app.servers):
        await app.servers.start_allowed(lambda _: None, person=False)
    servers = [_server(report) for report in app.servers.list_reports()]
    tools = DoctorFinding(area="tools", state="good", what=text("doctor.tools", count=len(app.tools())))
    plugins = [_plugin(plugin) for plugin in app.plugged.plugins]
    stores = [_conversations(app), await _memory(app), await asyncio.to_thread(_trace, app)]
    return [
        await asyncio.to_thread(_sandbox, app),
        *await _models(app),
        *servers,
        *plugins,
        tools,
        *stores,
        *await _work(app),
    ]


async def _work(app: App) -> list[DoctorFinding]:
    """Check the requirements of `daiku worker`: the configured forges, and a sandbox for commands."""
    findings = [_forge(forge) for forge in await check_forges(app.config, os.environ)]
    if not findings:
        what, mend = text("doctor.work_files_only"), text("doctor.work_name_some")
        findings = [DoctorFinding(area="work", state="good", what=what, mend=mend)]
        if not get_items(app).list():
            return findings
    if sandbox_state(app.config.sandbox) != "on":
        what, mend = text("doctor.work_no_commands"), text("doctor.work_needs_sandbox")
        findings.append(DoctorFinding(area="work", state="note", what=what, mend=mend))
    return findings


def _forge(forge: Forge) -> DoctorFinding:
    """Check whether a forge accepts its token, which is never shown.

    Without an answer no item of the forge is processed.
    """
    values = {"forge": forge.name, "address": forge.address, "names": ", ".join(forge.repositories)}
    if isinstance(forge.found, Failure):
        what = text("doctor.work_forge_not", **values, why=forge.found.message)
        return DoctorFinding(area="work", state="bad", what=what, mend=forge.found.hint)
    return DoctorFinding(
        area="work", state="good", what=text("doctor.work_forge", **values, count=forge.found)
    )


def _conversations(app: App) -> DoctorFinding:
    """Check the conversation database with a query."""
    try:
        app.journal.unfinished_sessions()
    except DaikuError as error:
        return failure_finding("daiku", error.failure)
    what = text("doctor.conversations", store=_store_name(app.config.storage.database_url))
    return DoctorFinding(area="daiku", state="good", what=what)


async def _memory(app: App) -> DoctorFinding:
    """Check the memory store with a query, and report whether it compares words or embeddings."""
    if app.memory is None:
        what, mend = text("doctor.memory_off"), text("doctor.memory_on")
        return DoctorFinding(area="memory", state="good", what=what, mend=mend)
    try:
        await app.memory.list(1)
    except DaikuError as error:
        return failure_finding("memory", error.failure)
    embedder, store = app.memory.embedder, _store_name(app.config.storage.database_url)
    try:
        await embedder.embed(["?"])
    except DaikuError as error:
        what = text("doctor.memory_words", store=store, why=error.failure.message)
        return DoctorFinding(area="memory", state="note", what=what, mend=error.failure.hint)
    what = text("doctor.memory", store=store, how=embedder.describe)
    mend = NO_TEXT if app.config.memory.embedder else text("doctor.memory_meanings")
    return DoctorFinding(area="memory", state="good", what=what, mend=mend)


def _store_name(url: str) -> str:
    """Return the address of a database without user name and password."""
    parts = urlsplit(url)
    if not parts.scheme.startswith("postgres"):
        return "SQLite"
    return f"PostgreSQL {parts.hostname or 'localhost'}{parts.path}"


def _trace(app: App) -> DoctorFinding:
    """Check where traces go, whether they include content, and whether the collector accepts them. Blocks."""
    trace = app.runs.services.trace
    if trace is None or not trace.collector:
        return DoctorFinding(area="trace", state="good", what=text("doctor.trace_files"))
    key = "doctor.trace_content" if app.config.trace.content else "doctor.trace"
    what = text(key, address=trace.collector)
    if not (why := trace.try_collector()):
        return DoctorFinding(area="trace", state="good", what=what)
    what = joined("sentences", [what, text("doctor.trace_not_there", why=why)])
    return DoctorFinding(area="trace", state="note", what=what, mend=text("doctor.mend_trace"))


def _plugin(plugin: Plugin) -> DoctorFinding:
    name = plugin.origin
    match plugin.status:
        case "on":
            what = text("doctor.plugin", name=name, what=", ".join(plugin.names))
            state = "note" if plugin.why else "good"
            return DoctorFinding(area="tools", state=state, what=joined("sentences", [what, plugin.why]))
        case "off":
            what = text("doctor.plugin_off", name=name)
            mend = text("doctor.allow_plugin", name=plugin.package)
            return DoctorFinding(area="tools", state="note", what=what, mend=mend)
        case "broken":
            what = text("doctor.plugin", name=name, what=plugin.why)
            return DoctorFinding(area="tools", state="bad", what=what, mend=text("doctor.mend_plugin"))
        case _:
            assert_never(plugin.status)


def _server(report: ServerReport) -> DoctorFinding:
    name, count = report.name, len(report.tools)
    if report.status == "ready":
        key = "doctor.server_ready_but" if report.why else "doctor.server_ready"
        what = text(key, name=name, count=count, **({"why": report.why} if report.why else {}))
        return DoctorFinding(area="mcp", state="good", what=what)
    what = text("doctor.server", name=name, status=report.status)
    if report.why:
        what = text("guard.of_path", path=what, why=report.why)
    return DoctorFinding(area="mcp", state="note", what=what, mend=report.hint, action="log")


def _sandbox(app: App) -> DoctorFinding:
    from daiku.guard.sandbox.overlay import can_overlay  # when used

    match sandbox_state(app.config.sandbox):
        case "on" if not confines_root():
            return DoctorFinding(
                area="sandbox",
                state="note",
                what=text("doctor.admin_rights"),
                mend=text("doctor.drop_rights"),
            )
        case "on" if not can_overlay():
            what, mend = text("doctor.no_trials"), text("doctor.no_trials_hint")
            return DoctorFinding(area="sandbox", state="note", what=what, mend=mend)
        case "on":
            return DoctorFinding(area="sandbox", state="good", what=text("doctor.sandbox_works"))
        case "off":
            return DoctorFinding(
                area="sandbox",
                state="note",
                what=text("doctor.sandbox_off"),
                mend=text("doctor.switch_sandbox_on"),
                action="settings",
            )
        case _:
            installed = find_program("bwrap")
            return DoctorFinding(
                area="sandbox",
                state="bad" if app.config.sandbox.mode == "strict" else "note",
                what=text("doctor.no_sandbox"),
                mend=text("doctor.install_bubblewrap"),
                command=install_command("bubblewrap") if sys.platform == "linux" and not installed else "",
            )


async def _models(app: App) -> list[DoctorFinding]:
    findings: list[DoctorFinding] = []
    for offer in await app.models():
        if offer.error is None:
            what = text("doctor.models", provider=offer.provider, count=len(offer.models))
            findings.append(DoctorFinding(area="models", state="good", what=what))
        else:
            key = (
                offer.error.kind in ("auth", "no_provider") and app.config.llm.entries[offer.provider].key_env
            )
            findings.append(
                DoctorFinding(
                    area="models",
                    state="note",
                    what=text("doctor.provider", provider=offer.provider, message=offer.error.message),
                    mend=offer.error.hint,
                    action="key" if key else None,
                )
            )
    try:
        what = text("doctor.model_in_use", model=app.llm.resolve("").name)
        findings.append(DoctorFinding(area="models", state="good", what=what, action="model"))
    except DaikuError as error:
        findings.append(failure_finding("models", error.failure).model_copy(update={"action": "model"}))
    return findings


def failure_finding(area: str, failure: Failure) -> DoctorFinding:
    """Build the finding for a failure."""
    values = {"area": area, "state": "bad", "what": failure.message, "mend": failure.hint}
    return DoctorFinding.model_validate(values)

"""`daiku run`, `research`, `code`, `exec`, `resume`: one run, then an exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import click

from daiku.cli.app_setup import folder_of, open_app
from daiku.cli.drive import RunMode, drive, end_background_commands
from daiku.cli.main import usage
from daiku.cli.options import RunOptions, prompt_text, run_options
from daiku.dataclass import replace
from daiku.domain.runs import RunResult
from daiku.sdk.fronts import App, Listener, RunRequest
from daiku.texts.terminal import say
from daiku.trace.journal import Journal


@click.command(help=say("help.run"))
@click.argument("prompt", nargs=-1, required=True)
@run_options
def run(prompt: tuple[str, ...], **options: Any) -> int:
    chosen = RunOptions(**options)
    return run_agent(prompt_text(prompt), "coordinator", chosen, drafts=chosen.mode == "act")


@click.command(help=say("help.code"))
@click.argument("text", nargs=-1, required=True)
@run_options
def code(text: tuple[str, ...], **options: Any) -> int:
    return run_agent(prompt_text(text), "coder", RunOptions(**options))


@click.command(help=say("help.research"))
@click.argument("question", nargs=-1, required=True)
@run_options
def research(question: tuple[str, ...], **options: Any) -> int:
    return run_agent(prompt_text(question), "researcher", RunOptions(**options))


@click.command("exec", help=say("help.exec"))
@click.argument("text", nargs=-1, required=True)
@run_options
def exec_(text: tuple[str, ...], **options: Any) -> int:
    return run_agent(prompt_text(text), "runner", RunOptions(**options))


@click.command(help=say("help.resume"))
@click.argument("run_id", metavar="RUN")
@run_options
def resume(run_id: str, **options: Any) -> int:
    chosen = RunOptions(**options)
    approvals = chosen.approvals()
    how = RunMode(approvals, chosen.attended, as_json=chosen.as_json)

    async def work() -> int:
        async with (
            open_app(folder_of(chosen.folder), chosen.overrides(), asks_model=True) as app,
            end_background_commands(),
        ):

            async def start(listen: Listener) -> RunResult:
                run = app.journal.find_run(run_id)
                return await app.runs.resume(
                    run, listen, approvals, attended=chosen.attended, model=chosen.model
                )

            await app.runs.afterwards.catch_up()
            return (await drive(app, start, how))[0]

    return asyncio.run(work())


RequestFor = Callable[[App], Awaitable[tuple[RunRequest, str]]]
"""Builds a request, and names the session that it belongs to (empty: a new one)."""
AfterPlan = Callable[[App, str], None]
"""Shows the plan with this id after the run that made it."""


def run_agent(
    text: str, agent: str, options: RunOptions, *, drafts: bool = False, then: AfterPlan | None = None
) -> int:
    """Run `agent` once on `text`; the exit code. Raises UsageError."""

    async def request(_app: App) -> tuple[RunRequest, str]:
        return RunRequest(text=text, agent=agent), ""

    return start_request(request, options, drafts=drafts, then=then)


def start_request(
    request: RequestFor, options: RunOptions, *, drafts: bool = False, then: AfterPlan | None = None
) -> int:
    """Run a request with the options of the command line; the exit code. Raises UsageError."""
    folder = folder_of(options.folder)
    approvals = options.approvals()
    how = RunMode(approvals, options.attended, as_json=options.as_json, drafts=drafts)
    if options.session and options.last:
        raise usage(say("error.both_sessions"))

    async def work() -> int:
        async with open_app(folder, options.overrides(), asks_model=True) as app, end_background_commands():
            session = last_session(app) if options.last else options.session
            if session:
                app.journal.get_session(session)
            wanted, own = await request(app)
            asked = replace(
                wanted,
                session=session or own or None,
                mode=options.mode,
                model=options.model,
                approvals=approvals,
                attended=options.attended,
            )

            async def start(listen: Listener) -> RunResult:
                return await app.runs.run(asked, listen)

            await app.runs.afterwards.catch_up()
            code, result = await drive(app, start, how)
            if then is not None and result.plan is not None:
                then(app, result.plan.plan_id)
            return code

    return asyncio.run(work())


def last_session(app: App) -> str:
    """Return the newest session of this folder. Raises UsageError where there is none."""
    return newest_session(app.journal, app.runs.services.workspace_key)


def newest_session(journal: Journal, folder: str) -> str:
    """Return the newest session of `folder`. Raises UsageError where there is none."""
    sessions = journal.list_sessions(limit=1, workspace=folder)
    if not sessions:
        raise usage(say("error.no_last_session", folder=folder))
    return sessions[0].session_id

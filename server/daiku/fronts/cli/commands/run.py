"""`daiku run`, `research`, `code`, `exec`, `resume`: one run, then an exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import click

from daiku.dataclass import replace
from daiku.fronts.cli.app_setup import folder_of, open_app
from daiku.fronts.cli.drive import RunMode, Start, drive, end_background_commands
from daiku.fronts.cli.main import usage_error
from daiku.fronts.cli.options import RunOptions, prompt_text, run_options
from daiku.library.fronts import App, RunRequest
from daiku.texts.terminal import say
from daiku.trace.journal import Journal


@click.command(help=say("help.run"))
@click.argument("prompt", nargs=-1, required=True)
@run_options
def run(prompt: tuple[str, ...], **options: Any) -> int:
    parsed = RunOptions(**options)
    return run_agent(prompt_text(prompt), "coordinator", parsed, drafts=parsed.mode == "act")


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
    parsed = RunOptions(**options)
    approvals = parsed.approvals()

    async def begin(app: App) -> Start:
        run = app.journal.find_run(run_id)
        return lambda listen: app.runs.resume(
            run, listen, approvals, attended=parsed.attended, model=parsed.model
        )

    return _run_to_end(begin, parsed)


RequestFor = Callable[[App], Awaitable[RunRequest]]
"""Builds a request; its session applies if the command line names none."""
AfterPlan = Callable[[App, str], None]
"""Shows the plan with this id after the run that created it."""


def run_agent(
    text: str, agent: str, options: RunOptions, *, drafts: bool = False, then: AfterPlan | None = None
) -> int:
    """Run `agent` once on `text` and return the exit code. Raises UsageError."""

    async def request(_app: App) -> RunRequest:
        return RunRequest(text=text, agent=agent)

    return start_request(request, options, drafts=drafts, then=then)


def start_request(
    request: RequestFor, options: RunOptions, *, drafts: bool = False, then: AfterPlan | None = None
) -> int:
    """Run a request with the command-line options and return the exit code. Raises UsageError."""
    approvals = options.approvals()

    async def begin(app: App) -> Start:
        session = named_session(app, options)
        base = await request(app)
        full_request = replace(
            base,
            session=session or base.session,
            mode=options.mode,
            model=options.model,
            approvals=approvals,
            attended=options.attended,
        )
        return lambda listen: app.runs.run(full_request, listen)

    return _run_to_end(begin, options, drafts=drafts, then=then)


def _run_to_end(
    begin: Callable[[App], Awaitable[Start]],
    options: RunOptions,
    *,
    drafts: bool = False,
    then: AfterPlan | None = None,
) -> int:
    """Open the App, start a run, and follow it to its end; return the exit code. Raises UsageError."""
    how = RunMode(options.approvals(), options.attended, as_json=options.as_json, drafts=drafts)

    async def work() -> int:
        app_context = open_app(folder_of(options.folder), options.overrides(), asks_model=True)
        async with app_context as app, end_background_commands():
            start = await begin(app)
            await app.runs.learner.catch_up()
            code, result = await drive(app, start, how)
            if then is not None and result.plan is not None:
                then(app, result.plan.plan_id)
            return code

    return asyncio.run(work())


def named_session(app: App, options: RunOptions) -> str | None:
    """Return the session that the options name, or None for a new one. Raises UsageError."""
    if options.session and options.last:
        raise usage_error(say("error.both_sessions"))
    folder = app.runs.services.workspace_key
    session = newest_session(app.journal, folder) if options.last else options.session
    if session:
        app.journal.get_session(session)
    return session


def newest_session(journal: Journal, folder: str) -> str:
    """Return the newest session of `folder`. Raises UsageError if there is none."""
    sessions = journal.list_sessions(limit=1, workspace=folder)
    if not sessions:
        raise usage_error(say("error.no_last_session", folder=folder))
    return sessions[0].session_id

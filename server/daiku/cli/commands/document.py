"""`daiku document`: revise a document as an instruction says; `daiku reflect`: learn from how texts were judged."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import click

from daiku.cli.app_setup import folder_of, open_app
from daiku.cli.commands.run import last_session
from daiku.cli.drive import RunMode, drive
from daiku.cli.main import usage
from daiku.cli.options import RunOptions, prompt_text, run_options
from daiku.dataclass import replace
from daiku.domain.runs import RunResult
from daiku.sdk.fronts import App, Listener, RunRequest, document_request, reflection_request
from daiku.texts.terminal import say


@click.command(help=say("help.document"))
@click.argument("file")
@click.argument("instruction", nargs=-1, required=True)
@click.option("--depth", type=click.IntRange(0, 3), default=1, metavar="N", help=say("help.opt.depth"))
@run_options
def document(file: str, instruction: tuple[str, ...], *, depth: int, **options: Any) -> int:
    asked = prompt_text(instruction)

    async def request(app: App) -> RunRequest:
        trusted = app.runs.services.trusted
        return await document_request(app.workspace, file, asked, depth=depth, trusted=trusted)

    return _one(RunOptions(**options), request)


@click.command(help=say("help.reflect"))
@run_options
def reflect(**options: Any) -> int:
    async def request(app: App) -> RunRequest:
        kept = app.evaluations.all(app.runs.services.workspace_key) if app.evaluations is not None else ()
        unfinished = app.journal.unfinished_sessions()
        return await reflection_request(
            app.workspace, [each for each in kept if each.session not in unfinished]
        )

    return _one(RunOptions(**options), request)


def _one(chosen: RunOptions, make: Callable[[App], Awaitable[RunRequest]]) -> int:
    """Run the request that `make` gives, with what the options say."""
    approvals = chosen.approvals()
    how = RunMode(approvals, chosen.attended, as_json=chosen.as_json)
    if chosen.session and chosen.last:
        raise usage(say("error.both_sessions"))

    async def work() -> int:
        async with open_app(folder_of(chosen.folder), chosen.overrides(), asks_model=True) as app:
            request = await make(app)
            whole = replace(
                request,
                session=last_session(app) if chosen.last else chosen.session,
                mode=chosen.mode,
                model=chosen.model,
                approvals=approvals,
                attended=chosen.attended,
            )

            async def start(listen: Listener) -> RunResult:
                return await app.runs.run(whole, listen)

            return (await drive(app, start, how))[0]

    return asyncio.run(work())

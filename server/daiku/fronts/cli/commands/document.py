"""`daiku document`: revise a document by an instruction; `daiku reflect`: learn from evaluations."""

from __future__ import annotations

from typing import Any

import click

from daiku.fronts.cli.commands.run import start_request
from daiku.fronts.cli.options import RunOptions, prompt_text, run_options
from daiku.library.fronts import App, RunRequest, document_request, reflection_request
from daiku.texts.terminal import say


@click.command(help=say("help.document"))
@click.argument("file")
@click.argument("instruction", nargs=-1, required=True)
@click.option("--depth", type=click.IntRange(0, 3), default=1, metavar="N", help=say("help.opt.depth"))
@run_options
def document(file: str, instruction: tuple[str, ...], *, depth: int, **options: Any) -> int:
    prompt = prompt_text(instruction)

    async def request(app: App) -> RunRequest:
        trusted = app.runs.services.trusted
        return await document_request(app.workspace, file, prompt, depth=depth, trusted=trusted)

    return start_request(request, RunOptions(**options))


@click.command(help=say("help.reflect"))
@run_options
def reflect(**options: Any) -> int:
    async def request(app: App) -> RunRequest:
        evaluations = (
            app.evaluations.all(app.runs.services.workspace_key) if app.evaluations is not None else ()
        )
        unfinished = app.journal.unfinished_sessions()
        return await reflection_request(
            app.workspace, [evaluation for evaluation in evaluations if evaluation.session not in unfinished]
        )

    return start_request(request, RunOptions(**options))

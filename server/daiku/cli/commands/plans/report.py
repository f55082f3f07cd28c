"""`daiku report`: what was requested, done, and proved in a session, what is open, and the cost."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from daiku.cli.commands.sessions import open_journal, write_out
from daiku.cli.main import usage
from daiku.sdk.plans.reporting import SessionReport, report_of, report_parts
from daiku.texts.terminal import localize, say


@click.command("report", help=say("help.report"))
@click.argument("session", required=False, default="")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    show_default=True,
    help=say("help.report.format"),
)
def report(session: str, form: Literal["text", "markdown", "json"]) -> None:
    with open_journal() as journal:
        if not session:
            folder = str(Path.cwd())
            newest = journal.list_sessions(limit=1, workspace=folder)
            if not newest:
                raise usage(say("error.no_last_session", folder=folder))
            session = newest[0].session_id
        made = report_of(journal, session)
    write_out(f"{made.model_dump_json(by_alias=True)}\n" if form == "json" else _for_people(made, form))


def _for_people(report: SessionReport, form: Literal["text", "markdown"]) -> str:
    mark, bullet = ("## ", "- ") if form == "markdown" else ("", "  ")
    lines = [f"{'# ' if form == 'markdown' else ''}{report.title or report.session_id}"]
    for heading, rows in report_parts(report):
        lines += ["", f"{mark}{localize(heading)}"]
        lines += (
            ["", *(bullet + localize(row) for row in rows)]
            if form == "markdown"
            else [bullet + localize(row) for row in rows]
        )
        if not rows:
            lines.append(f"{bullet}{say('report.nothing')}")
    return "\n".join(lines) + "\n"

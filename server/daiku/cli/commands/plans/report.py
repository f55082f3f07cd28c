"""`daiku report`: what was requested, done, and proved in a session, what is open, and the cost."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from daiku.cli.commands.run import newest_session
from daiku.cli.commands.sessions import open_journal, write_out
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
        made = report_of(journal, session or newest_session(journal, str(Path.cwd())))
    write_out(f"{made.model_dump_json(by_alias=True)}\n" if form == "json" else _for_people(made, form))


def _for_people(report: SessionReport, form: Literal["text", "markdown"]) -> str:
    markdown = form == "markdown"
    bullet = "- " if markdown else "  "
    lines = [f"{'# ' if markdown else ''}{report.title or report.session_id}"]
    for heading, rows in report_parts(report):
        lines += ["", f"{'## ' if markdown else ''}{localize(heading)}", *([""] if markdown and rows else [])]
        lines += [bullet + row for row in map(localize, rows)] or [f"{bullet}{say('report.nothing')}"]
    return "\n".join(lines) + "\n"

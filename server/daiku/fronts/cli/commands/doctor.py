"""`daiku doctor`: list the problems of this machine's setup, and how to fix each."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from daiku.api import DoctorFinding
from daiku.doctor import check_app, check_files, check_machine, failure_finding
from daiku.domain.errors import DaikuError
from daiku.fronts.cli.app_setup import folder_of, in_app
from daiku.fronts.cli.display.term import Colour, safe, terminal
from daiku.fronts.cli.main import FAILED
from daiku.settings import home
from daiku.settings.trust import is_trusted
from daiku.texts.terminal import localize, say

MARKS: dict[str, tuple[str, Colour]] = {"good": ("✓", "green"), "note": ("·", "yellow"), "bad": ("✗", "red")}


@click.command(help=say("help.doctor"))
@click.option("-C", "folder", metavar="DIR", help=say("help.opt.dir"))
def doctor(folder: str | None) -> int:
    place = folder_of(folder)
    findings = [
        *check_machine(),
        *check_files(place, os.environ, trusted=_is_trusted(place)),
        *_check_app(folder),
    ]
    out = terminal(sys.stdout)
    for finding in findings:
        mark, colour = MARKS[finding.state]
        click.echo(f"{out.paint(mark, colour)} {safe(localize(finding.what))}")
        if finding.mend:
            click.echo(f"    {safe(localize(finding.mend))}")
        if finding.command and finding.command != finding.mend:
            click.echo(f"    $ {safe(finding.command)}")
    bad = sum(finding.state == "bad" for finding in findings)
    click.echo(say("doctor.bad", count=bad) if bad else say("doctor.good"))
    return FAILED if bad else 0


def _is_trusted(place: Path) -> bool:
    try:
        return is_trusted(home(os.environ), place)
    except DaikuError:
        return False  # problems of the home folder are a separate finding


def _check_app(folder: str | None) -> list[DoctorFinding]:
    try:
        return in_app(folder, check_app, asks_model=True)
    except DaikuError as error:
        return [failure_finding("settings", error.failure)]

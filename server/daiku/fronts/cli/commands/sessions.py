"""`daiku sessions` and `daiku trace`: stored conversations and their file changes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from daiku.api import ExportFormat
from daiku.domain.chunks import Chunk
from daiku.domain.errors import Failure
from daiku.domain.events import (
    Edit,
    MessageEvent,
    Restored,
    Review,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.labels import LineEvent
from daiku.domain.sessions import Session
from daiku.fronts.cli.app_setup import in_app, print_notices, print_recovery, settings_for
from daiku.fronts.cli.display.diffs import coloured_diff
from daiku.fronts.cli.display.show import usage_text
from daiku.fronts.cli.display.term import Colour, Terminal, clip, columns, safe, terminal, to_the_minute
from daiku.fronts.cli.display.toollines import call_text, decision_text, irrevocable_lines
from daiku.fronts.cli.main import FAILED, write_json
from daiku.fronts.cli.options import command_group, place_options
from daiku.guard.rules.redact import Redactor
from daiku.library.fronts import App, RestoreOutcome, list_changed_files, render_diff, to_restore_result
from daiku.settings import home, secrets_of
from daiku.store.copyfolders import remove_trial_data
from daiku.store.opening import open_place
from daiku.texts.rules.visible import escape_invisible_json
from daiku.texts.terminal import locale_of, say
from daiku.texts.text import render
from daiku.trace.journal import Journal
from daiku.trace.rules.lines import as_jsonl
from daiku.trace.telemetry.logger import TraceFiles
from daiku.trace.transcript import export
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.disk import DiskWorkspace
from daiku.workspace.outputs import Outputs

if TYPE_CHECKING:
    from daiku.library.replaying import Replayed

SHOWN_RESULT = 300
"""Maximum columns of a tool result."""

STATUS_COLOURS: dict[str, Colour] = {
    "completed_unverified": "yellow",
    "failed": "red",
    "interrupted": "yellow",
    "paused": "yellow",
    "running": "cyan",
    "waiting": "yellow",
}

sessions = command_group("sessions")


@sessions.command("list", help=say("help.sessions.list"))
@click.argument("query", required=False, default="")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
@click.option("--json", "as_json", is_flag=True, help=say("help.opt.list_json"))
def list_(query: str, limit: int, as_json: bool) -> None:  # click's flag
    out = terminal(sys.stdout)
    with open_journal() as journal:
        stored = journal.list_sessions(query, limit)
    if as_json:
        write_json("[" + ",".join(s.model_dump_json(by_alias=True) for s in stored) + "]")
        return
    if not stored:
        click.echo(say("none_yet"))
    for session in stored:
        click.echo(session_line(session, out))


@sessions.command("show", help=say("help.sessions.show"))
@click.argument("session")
def show(session: str) -> None:
    out = terminal(sys.stdout)
    with open_journal() as journal:
        click.echo(session_line(journal.get_session(session), out))
        for chunk in journal.chunks(session):
            for text_line in chunk_lines(chunk.in_language(locale_of(os.environ)), out):
                click.echo(text_line)


@sessions.command("export", help=say("help.sessions.export"))
@click.argument("session")
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "json", "jsonl"]),
    default="markdown",
    show_default=True,
)
def export_(session: str, form: ExportFormat) -> None:
    with open_journal() as journal:
        document = export(journal.get_session(session), journal.chunks(session), form, locale_of(os.environ))
    write_out(document if form == "markdown" else escape_invisible_json(document))


@sessions.command("delete", help=say("help.sessions.delete"))
@click.argument("session")
def delete(session: str) -> None:
    with open_journal() as journal:
        journal.delete_session(session)
    CheckpointStore(home(os.environ) / "checkpoints", DiskWorkspace(())).forget(session)
    TraceFiles(home(os.environ) / "traces").forget(session)
    Outputs(home(os.environ) / "outputs").forget(session)
    remove_trial_data(home(os.environ))
    click.echo(say("deleted", session=session))


@sessions.command("changes", help=say("help.sessions.changes"))
@click.argument("session")
@place_options
def changes(session: str, folder: str | None, as_json: bool) -> None:  # click's flag
    reviews = in_app(folder, lambda app: app.reviews.changes(session))
    if as_json:
        write_json(
            "["
            + ",".join(f.model_dump_json(by_alias=True) for f in list_changed_files(reviews, session))
            + "]"
        )
        return
    out = terminal(sys.stdout)
    if not reviews:
        click.echo(say("changes.none"))
    for path, review in reviews.items():
        diff = render_diff(path, review)
        for line in coloured_diff(diff, out) if diff else [say("changes.binary", path=safe(path))]:
            click.echo(line)


@sessions.command("undo", help=say("help.sessions.undo"))
@click.argument("session")
@click.option("--to", "checkpoint", metavar="CHECKPOINT", help=say("help.opt.to"))
@place_options
def undo(session: str, checkpoint: str | None, folder: str | None, as_json: bool) -> None:  # click's flag
    async def work(app: App) -> RestoreOutcome:
        app.journal.get_session(session)
        if checkpoint is None:
            return await app.reviews.undo(session)
        return await app.reviews.restore(checkpoint, session)

    outcome = in_app(folder, work)
    if as_json:
        write_json(to_restore_result(outcome).model_dump_json(by_alias=True))
        return
    click.echo(say("chat.undone", files=", ".join(safe(f.path) for f in outcome.files) or "-"))
    for line in irrevocable_lines(outcome.cannot_undo):
        click.echo(line)
    click.echo(say("undo.back", session=session, checkpoint=outcome.redo))


@sessions.command("replay", help=say("help.sessions.replay"))
@click.argument("session")
@click.option("--json", "as_json", is_flag=True, help=say("help.opt.list_json"))
def replay(session: str, as_json: bool) -> int:  # click's flag
    from daiku.library.replaying import replay as replay_runs  # when used

    with open_journal() as journal:
        chunks = journal.chunks(session)
    replayed = asyncio.run(replay_runs(chunks))
    if as_json:
        write_json(replayed.model_dump_json())
    else:
        _print_replayed(replayed)
    return 0 if replayed.difference is None else FAILED


def _print_replayed(replayed: Replayed) -> None:
    """Print the first difference, or that there is none, and what was not compared."""
    if (difference := replayed.difference) is None:
        click.echo(say("replay.same", events=replayed.events, runs=replayed.runs, nested=replayed.nested))
    else:
        width = terminal(sys.stdout).width - 12
        agents = " → ".join((*difference.around, difference.agent))
        place = {
            "seq": difference.seq,
            "step": difference.step,
            "run": difference.run,
            "agents": safe(agents),
        }
        click.echo(say("replay.differs", **place))
        click.echo(f"  {say('recorded')}: {clip(safe(difference.recorded), width)}")
        click.echo(f"  {say('replayed')}: {clip(safe(difference.replayed), width)}")
    for head, treatment in (("replay.left_out", "left_out"), ("replay.taken", "taken")):
        parts = [part for part in replayed.normalised if part.kept == treatment]
        if parts:
            click.echo(say(head))
        for part in parts:
            what = render(part.what, locale_of(os.environ))
            click.echo(f"  {say('replay.part', what=what, events=part.events)}")


@click.command("trace", help=say("help.trace"))
@click.argument("session")
def trace(session: str) -> None:
    with open_journal() as journal:
        chunks = journal.chunks(session)
    write_out(escape_invisible_json(as_jsonl(chunks)))


@contextmanager
def open_journal() -> Generator[Journal]:
    """Open only the journal, without models and tools."""
    loaded, state = settings_for(Path.cwd())
    print_notices(loaded)
    place = open_place(loaded.config.storage.place(state))
    journal = Journal(place, Redactor(secrets_of(loaded.config, os.environ)))
    print_recovery(journal)
    try:
        yield journal
    finally:
        journal.close()


def write_out(text: str) -> None:
    """Write machine output as UTF-8, independent of the locale."""
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def session_line(session: Session, out: Terminal) -> str:
    """Return a session as one line: id, time, status, title."""
    word = say(f"status.{session.status}")
    status = out.paint(word + " " * (12 - columns(word)), STATUS_COLOURS.get(session.status, "dim"))
    when = to_the_minute(session.updated_at)
    title = clip(safe(session.title), out.width - 52) if out.live else safe(session.title)
    return f"{session.session_id}  {when}  {status}  {title}".rstrip()


def chunk_lines(chunk: Chunk, out: Terminal) -> Iterator[str]:
    """Yield the lines that show a recorded chunk; nothing for minor events."""
    match chunk.event:
        case RunStarted(prompt=prompt) if chunk.parent is None:
            yield ""
            yield out.paint(f"{chunk.time[:16].replace('T', ' ')}  {chunk.run}", "dim")
            yield from (out.paint(f"> {line}", "bold") for line in safe(prompt).split("\n"))
        case MessageEvent(role="user", text=text):
            yield from (out.paint(f"> {line}", "bold") for line in safe(text).split("\n"))
        case MessageEvent(text=text, partial=partial) if text:
            yield safe(text)
            if partial:
                yield out.paint(say("cut_off"), "yellow")
        case ToolCallEvent(tool=tool, args=args):
            yield out.paint("● ", "blue") + clip(safe(call_text(tool, args)), out.width - 4)
        case ToolResponse(ok=ok, result=result):
            mark = out.paint("  ✓ ", "green") if ok else out.paint("  ✗ ", "red")
            yield mark + out.paint(clip(safe(result), min(out.width, SHOWN_RESULT) - 6), "dim")
        case Edit(diff=diff) if diff:
            yield from ("  " + line for line in coloured_diff(diff, out))
        case Review() | Restored():
            yield out.paint(safe(decision_text(chunk.event)), "dim")
        case LineEvent() as event if line_text := event.line_in(locale_of(os.environ)):
            yield from (out.paint(safe(line), "dim") for line in line_text.split("\n"))
        case Failure(message=message, hint=hint):
            yield out.paint(safe(f"{message} {hint}".strip()), "red")
        case RunFinished(status=status, usage=usage):
            who = f"{safe(chunk.agent)}: " if chunk.parent is not None and chunk.agent else ""
            yield out.paint(who + " · ".join(part for part in (status, usage_text(usage)) if part), "dim")
        case _:
            return

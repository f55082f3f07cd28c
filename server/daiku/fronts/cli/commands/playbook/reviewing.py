"""`daiku playbook deltas`, `review`, and `undo`: list changes, decide on them, and revert them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import click

from daiku import api
from daiku.dataclass import dataclass
from daiku.domain.playbook import DeltaStatus, PlaybookScope
from daiku.fronts.cli.ask import keyboard
from daiku.fronts.cli.commands.playbook.looks import delta_lines
from daiku.fronts.cli.commands.playbook.opening import (
    as_row,
    open_desk_of,
    print_json,
    print_redacted_notice,
    print_rows,
    scope_option,
)
from daiku.fronts.cli.commands.sessions import chunk_lines
from daiku.fronts.cli.display.term import Terminal, human_stream, person_present, safe, terminal
from daiku.fronts.cli.main import FAILED, complain, usage_error
from daiku.fronts.cli.options import place_options
from daiku.playbook.desk import PlaybookDesk
from daiku.playbook.rules.shown import render_diff
from daiku.texts.terminal import localize, say

Key: TypeAlias = Literal["accept", "reject", "skip", "quit", "edit", "evidence"]


@dataclass(frozen=True, slots=True)
class ReviewAnswer:
    """The user's decision about a pending change, with the new text if they edited it."""

    key: Key
    content: str | None = None


async def ask_about(people: Terminal, content: str, *, evidence: bool) -> ReviewAnswer:
    """Read a decision key. The end of input and Escape quit the review."""
    keys = [
        say("playbook.key.accept"),
        say("playbook.key.edit") if content else "",
        say("playbook.key.reject"),
        say("playbook.key.evidence") if evidence else "",
        say("playbook.key.skip"),
        say("playbook.key.quit"),
    ]
    with keyboard.key_by_key():
        people.write(people.paint("  ".join(key for key in keys if key), "bold") + " ")
        key = await _read_decision_key(can_edit=bool(content), evidence=evidence)
    people.write("\n")
    return ReviewAnswer(key, await _edit_text(people, content)) if key == "edit" else ReviewAnswer(key)


async def _read_decision_key(*, can_edit: bool, evidence: bool) -> Key:
    while True:
        match await keyboard.read_key():
            case "y" | "a":
                return "accept"
            case "n" | "r":
                return "reject"
            case "e" if can_edit:
                return "edit"
            case "o" if evidence:
                return "evidence"
            case "s" | " ":
                return "skip"
            case "q" | "" | "\x04" | "\x1b":
                return "quit"
            case _:
                continue


async def _edit_text(people: Terminal, content: str) -> str | None:
    """Let the user edit the text in their editor, or as one line; return None if it is unchanged."""
    if os.environ.get("VISUAL") or os.environ.get("EDITOR"):
        try:
            new_text = click.edit(content, extension=".md", require_save=False)
        except click.ClickException as error:
            people.write(people.paint(error.format_message(), "red") + "\n")
            return None
        new_text = (new_text or "").strip("\n")
    else:
        people.write(people.paint(say("playbook.new_text"), "bold") + " ")
        new_text = ((await keyboard.read_line()) or "").strip()
    return new_text if new_text.strip() and new_text != content else None


AROUND = 3
"""Number of chunks shown before and after a source."""


class SeveralIds(click.Command):
    """A command whose options accept several ids, up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, repeat_options(args, ("--accept", "--reject")))


def repeat_options(args: Sequence[str], names: Sequence[str]) -> list[str]:
    """Convert `--accept A B` to `--accept A --accept B`; other options stay as they are."""
    result: list[str] = []
    current = ""
    for arg in args:
        if arg.startswith("-"):
            name, _, value = arg.partition("=")
            current = name if name in names else ""
            if current and not value:
                continue
            result.append(arg)
        elif current:
            result += [current, arg]
        else:
            result.append(arg)
    return result


@click.command("review", cls=SeveralIds, help=say("help.playbook.review"))
@click.option("--accept", multiple=True, metavar="ID…", help=say("help.playbook.accept"))
@click.option("--reject", multiple=True, metavar="ID…", help=say("help.playbook.reject"))
@place_options
def review(
    accept: tuple[str, ...], reject: tuple[str, ...], folder: str | None, as_json: bool
) -> int:  # click's flag
    with open_desk_of(folder) as desk:
        if accept or reject:
            outcome = desk.review([api.AcceptedDelta(id=name) for name in accept], reject)
            return _print_outcome(outcome, as_json)
        pending = desk.deltas(None, ("proposed",))
        if not pending:
            click.echo("[]" if as_json else say("playbook.nothing_waits"))
            return 0
        if as_json or not person_present():
            raise usage_error(say("playbook.nobody", count=len(pending)))
        return asyncio.run(_review_pending(desk, pending))


def _print_outcome(outcome: api.PlaybookReviewResult, as_json: bool) -> int:  # click's flag
    print_redacted_notice(outcome.redacted)
    if as_json:
        print_json(as_row(outcome))
    else:
        for delta in outcome.decided:
            what = say(f"playbook.decided.{delta.status}", id=delta.id, bullet=delta.bullet_id)
            click.echo(what.rstrip())
        for refusal in outcome.refused:
            complain(localize(refusal.message), "", FAILED)
    return FAILED if outcome.refused else 0


async def _review_pending(desk: PlaybookDesk, pending: tuple[api.ShownDelta, ...]) -> int:
    """Ask about the pending changes one by one; decisions are kept even if the review is aborted."""
    people, code = human_stream(), 0
    for number, delta in enumerate(pending, 1):
        answer = await _ask_until_decided(
            desk, delta, people, say("pick.title", number=number, count=len(pending))
        )
        if answer.key == "quit":
            break
        if answer.key == "accept":
            outcome = desk.review([api.AcceptedDelta(id=delta.id, content=answer.content)])
        elif answer.key == "reject":
            outcome = desk.review(reject=(delta.id,))
        else:
            continue
        code = max(code, _print_outcome(outcome, as_json=False))
    return code


async def _ask_until_decided(
    desk: PlaybookDesk, delta: api.ShownDelta, people: Terminal, title: str
) -> ReviewAnswer:
    content: str | None = None
    bullets = {bullet.id: bullet for bullet in delta.bullets}
    while True:
        displayed = delta
        if content is not None:
            edited = delta.model_copy(update={"content": content})
            displayed = edited.model_copy(update={"diff": render_diff(edited, bullets, desk.language)})
        people.write("\n" + people.paint(title, "bold", "yellow") + "\n")
        for line in delta_lines(displayed, people):
            people.write(line + "\n")
        answer = await ask_about(people, displayed.content, evidence=bool(delta.places))
        match answer.key:
            case "edit":
                content = answer.content or content
            case "evidence":
                _show_evidence(desk, delta, people)
            case _:
                return ReviewAnswer(answer.key, content)


def _show_evidence(desk: PlaybookDesk, delta: api.ShownDelta, people: Terminal) -> None:
    """Show the sources of a change with surrounding chunks; the source is marked."""
    for place in delta.places:
        command = f"daiku sessions show {safe(place.session_id)}"
        people.write(people.paint(f"{safe(place.title)}  ({command})", "bold") + "\n")
        first = max(0, place.seq - AROUND - 1)
        for chunk in desk.journal.chunks(place.session_id, first, 2 * AROUND + 1) if place.title else ():
            mark = people.paint("→ ", "yellow") if chunk.seq == place.seq else "  "
            for line in chunk_lines(chunk, people):
                people.write(f"{mark}{line}\n")


@click.command("deltas", help=say("help.playbook.deltas"))
@click.option("--status", type=click.Choice(get_args(DeltaStatus)), default="proposed", show_default=True)
@click.option("--all", "everything", is_flag=True, help=say("help.playbook.every_status"))
@scope_option()
@place_options
def deltas(
    status: DeltaStatus,
    everything: bool,  # click's flag
    scope: PlaybookScope | None,
    folder: str | None,
    as_json: bool,  # click's flag
) -> None:
    with open_desk_of(folder) as desk:
        listed = desk.deltas(scope, get_args(DeltaStatus) if everything else (status,))
    if as_json:
        print_rows(listed)
        return
    out = terminal(sys.stdout)
    if not listed:
        click.echo(say("playbook.nothing_waits") if status == "proposed" else say("none_yet"))
    for delta in listed:
        for line in delta_lines(delta, out):
            click.echo(line)


@click.command("undo", help=say("help.playbook.undo"))
@click.argument("delta")
@place_options
def undo(delta: str, folder: str | None, as_json: bool) -> int:  # click's flag
    with open_desk_of(folder) as desk:
        outcome = desk.review(undo=(delta,))
    if as_json:
        print_json(as_row(outcome))
    elif outcome.decided:
        name = safe(delta)
        is_pending = outcome.decided[0].status == "proposed"
        click.echo(say("playbook.waits_again", id=name) if is_pending else say("playbook.undone", id=name))
    if outcome.refused and not as_json:
        return complain(localize(outcome.refused[0].message), "", FAILED)
    return FAILED if outcome.refused else 0

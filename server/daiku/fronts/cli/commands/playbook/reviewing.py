"""`daiku playbook deltas`, `review`, and `undo`: list the changes of a playbook, decide on them, and take them back."""

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
    desk_in,
    print_json,
    print_rows,
    scope_option,
    tell_redacted,
)
from daiku.fronts.cli.commands.sessions import chunk_lines
from daiku.fronts.cli.display.term import Terminal, human_stream, person_present, safe, terminal
from daiku.fronts.cli.main import FAILED, complain, usage_error
from daiku.fronts.cli.options import place_options
from daiku.playbook.desk.desk import PlaybookDesk
from daiku.playbook.rules.shown import diff_of
from daiku.texts.terminal import localize, say

Key: TypeAlias = Literal["accept", "reject", "skip", "quit", "edit", "evidence"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The user's decision about a pending change, and the new text if they edited it."""

    key: Key
    content: str | None = None


async def ask_about(people: Terminal, content: str, *, evidence: bool) -> Answer:
    """One key. The end of input and Escape leave this change and all that follow."""
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
        key = await _key(can_edit=bool(content), evidence=evidence)
    people.write("\n")
    return Answer(key, await _edited(people, content)) if key == "edit" else Answer(key)


async def _key(*, can_edit: bool, evidence: bool) -> Key:
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


async def _edited(people: Terminal, content: str) -> str | None:
    """The text as the person wants it: from the editor that they have set, else one line; None where it stays."""
    if os.environ.get("VISUAL") or os.environ.get("EDITOR"):
        try:
            said = click.edit(content, extension=".md", require_save=False)
        except click.ClickException as wrong:
            people.write(people.paint(wrong.format_message(), "red") + "\n")
            return None
        said = (said or "").strip("\n")
    else:
        people.write(people.paint(say("playbook.new_text"), "bold") + " ")
        said = ((await keyboard.read_line()) or "").strip()
    return said if said.strip() and said != content else None


AROUND = 3
"""Chunks before and after a place in a session that are shown of it."""


class SeveralIds(click.Command):
    """A command whose options take as many ids as stand behind them, up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, spread(args, ("--accept", "--reject")))


def spread(args: Sequence[str], names: Sequence[str]) -> list[str]:
    """`--accept A B` as `--accept A --accept B`; what follows another option is left as it is."""
    found: list[str] = []
    current = ""
    for arg in args:
        if arg.startswith("-"):
            name, _, value = arg.partition("=")
            current = name if name in names else ""
            if current and not value:
                continue
            found.append(arg)
        elif current:
            found += [current, arg]
        else:
            found.append(arg)
    return found


@click.command("review", cls=SeveralIds, help=say("help.playbook.review"))
@click.option("--accept", multiple=True, metavar="ID…", help=say("help.playbook.accept"))
@click.option("--reject", multiple=True, metavar="ID…", help=say("help.playbook.reject"))
@place_options
def review(
    accept: tuple[str, ...], reject: tuple[str, ...], folder: str | None, as_json: bool
) -> int:  # click's flag
    with desk_in(folder) as desk:
        if accept or reject:
            found = desk.review([api.AcceptedDelta(id=name) for name in accept], reject)
            return _tell(found, as_json)
        waiting = desk.deltas(None, ("proposed",))
        if not waiting:
            click.echo("[]" if as_json else say("playbook.nothing_waits"))
            return 0
        if as_json or not person_present():
            raise usage_error(say("playbook.nobody", count=len(waiting)))
        return asyncio.run(_asked(desk, waiting))


def _tell(found: api.PlaybookReviewResult, as_json: bool) -> int:  # click's flag
    tell_redacted(found.redacted)
    if as_json:
        print_json(as_row(found))
    else:
        for delta in found.decided:
            what = say(f"playbook.decided.{delta.status}", id=delta.id, bullet=delta.bullet_id)
            click.echo(what.rstrip())
        for refused in found.refused:
            complain(localize(refused.message), "", FAILED)
    return FAILED if found.refused else 0


async def _asked(desk: PlaybookDesk, waiting: tuple[api.ShownDelta, ...]) -> int:
    """Ask about one after the other; what was decided stays, however it ends."""
    people, code = human_stream(), 0
    for number, shown in enumerate(waiting, 1):
        answer = await _answer(desk, shown, people, say("pick.title", number=number, count=len(waiting)))
        if answer.key == "quit":
            break
        if answer.key == "accept":
            found = desk.review([api.AcceptedDelta(id=shown.id, content=answer.content)])
        elif answer.key == "reject":
            found = desk.review(reject=(shown.id,))
        else:
            continue
        code = max(code, _tell(found, as_json=False))
    return code


async def _answer(desk: PlaybookDesk, shown: api.ShownDelta, people: Terminal, title: str) -> Answer:
    content: str | None = None
    bullets = {each.id: each for each in shown.bullets}
    while True:
        now = shown
        if content is not None:
            edited = shown.model_copy(update={"content": content})
            now = edited.model_copy(update={"diff": diff_of(edited, bullets, desk.language)})
        people.write("\n" + people.paint(title, "bold", "yellow") + "\n")
        for line in delta_lines(now, people):
            people.write(line + "\n")
        answer = await ask_about(people, now.content, evidence=bool(shown.places))
        match answer.key:
            case "edit":
                content = answer.content or content
            case "evidence":
                _show_evidence(desk, shown, people)
            case _:
                return Answer(answer.key, content)


def _show_evidence(desk: PlaybookDesk, shown: api.ShownDelta, people: Terminal) -> None:
    """The places in their sessions, with what came before and after; the place itself is marked."""
    for place in shown.places:
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
    with desk_in(folder) as desk:
        found = desk.deltas(scope, get_args(DeltaStatus) if everything else (status,))
    if as_json:
        print_rows(found)
        return
    out = terminal(sys.stdout)
    if not found:
        click.echo(say("playbook.nothing_waits") if status == "proposed" else say("none_yet"))
    for shown in found:
        for line in delta_lines(shown, out):
            click.echo(line)


@click.command("undo", help=say("help.playbook.undo"))
@click.argument("delta")
@place_options
def undo(delta: str, folder: str | None, as_json: bool) -> int:  # click's flag
    with desk_in(folder) as desk:
        found = desk.review(undo=(delta,))
    if as_json:
        print_json(as_row(found))
    elif found.decided:
        name = safe(delta)
        waits = found.decided[0].status == "proposed"
        click.echo(say("playbook.waits_again", id=name) if waits else say("playbook.undone", id=name))
    if found.refused and not as_json:
        return complain(localize(found.refused[0].message), "", FAILED)
    return FAILED if found.refused else 0

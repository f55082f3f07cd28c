"""Display of bullets, changes, and observations in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from daiku.api import BulletObservation, ShownDelta
from daiku.api import PlaybookPlace as Place
from daiku.domain.playbook import Bullet, DeltaStatus, Verdict
from daiku.fronts.cli.display.diffs import coloured_diff
from daiku.fronts.cli.display.term import Colour, Terminal, clip, columns, safe, to_the_minute
from daiku.playbook.rules.proposals import Taught
from daiku.texts.terminal import say

_STATUS: dict[DeltaStatus, Colour] = {
    "proposed": "yellow",
    "applied": "green",
    "rejected": "red",
    "undone": "dim",
}
TAUGHT = (*get_args(Taught), "duplicates")
"""Reason codes of the server for a proposed change; other reasons are free text."""
_VERDICT: dict[Verdict, Colour] = {"helpful": "green", "harmful": "red", "neutral": "dim"}


def bullet_line(bullet: Bullet, out: Terminal, *, resting: bool, score: str = "") -> str:
    """Return a bullet as one line: its id, helpful and harmful counts, and text."""
    counts = f"+{bullet.helpful} -{bullet.harmful}"
    notes = [
        say("playbook.disabled") if not bullet.active else "",
        say("playbook.resting") if resting and bullet.active else "",
    ]
    note = "".join(f"({part}) " for part in notes if part)
    head = "  ".join(part for part in (f"{safe(bullet.id):<12}", score, f"{counts:<7}") if part)
    content = " ".join(safe(bullet.content).split())
    if out.live:
        content = clip(content, max(20, out.width - columns(head) - columns(note) - 4))
    return f"{out.paint(head, 'dim')}  {out.paint(note, 'yellow')}{content}".rstrip()


def delta_lines(delta: ShownDelta, out: Terminal) -> Iterator[str]:
    """Yield the lines of a change: type, status, reason, review doubts, diff, and sources."""
    kind = say(f"playbook.type.{delta.type}")
    name = safe(delta.bullet_id) if delta.bullet_id and delta.type != "add" else safe(delta.section)
    status = out.paint(say(f"playbook.status.{delta.status}"), _STATUS[delta.status])
    origin = say(f"playbook.origin.{delta.origin}")
    when = to_the_minute(delta.decided_at or delta.created_at)
    yield "  ".join((out.paint(delta.id, "bold"), when, f"{kind} {name}", f"({origin})", status))
    if delta.why:
        yield f"  {out.paint(say('playbook.fact.why'), 'dim')}: {_reason_text(delta.why)}"
    if delta.doubts and delta.status == "proposed":
        doubts = ", ".join(say(f"playbook.doubt.{doubt}") for doubt in delta.doubts)
        yield f"  {out.paint(say('playbook.fact.doubts'), 'dim')}: {out.paint(doubts, 'yellow')}"
    if delta.diff:
        yield from ("  " + line for line in coloured_diff(delta.diff, out))
    for place in delta.places:
        yield f"  {out.paint(say('playbook.fact.learnt'), 'dim')}: {place_text(place)}"


def _reason_text(why: str) -> str:
    """Return the reason for a change: translated if it is a code, else unchanged."""
    return say(f"playbook.taught.{why}") if why in TAUGHT else clip(safe(why), 400)


def observation_line(observation: BulletObservation, out: Terminal) -> str:
    """Return an observation as one line."""
    verdict = out.paint(say(f"playbook.verdict.{observation.verdict}"), _VERDICT[observation.verdict])
    why = f" ({say(f'playbook.because.{observation.why}')})" if observation.why else ""
    note = "" if observation.counted else f"  [{say('playbook.not_counted')}]"
    return f"{verdict}{why}{note}  {place_text(observation.place)}"


def place_text(place: Place) -> str:
    """Return a place in a session: its title, and its position."""
    where = f"{safe(place.session_id)} #{place.seq}"
    return f"{clip(safe(place.title), 60)} ({where})" if place.title else f"{where} ({say('playbook.gone')})"


def indent_lines(text: str) -> Iterator[str]:
    """Yield the lines of the text, indented."""
    return (f"  {line}".rstrip() for line in safe(text).split("\n"))

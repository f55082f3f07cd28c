"""How the terminal shows bullets, changes of them, and what runs showed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from daiku.api import BulletObservation, ShownDelta
from daiku.api import PlaybookPlace as Place
from daiku.domain.playbook import Bullet, DeltaStatus, Verdict
from daiku.fronts.cli.display.diffs import coloured_diff
from daiku.fronts.cli.display.term import Colour, Terminal, clip, columns, safe, to_the_minute
from daiku.playbook.rules.lessons.proposal import Taught
from daiku.texts.terminal import say

_STATUS: dict[DeltaStatus, Colour] = {
    "proposed": "yellow",
    "applied": "green",
    "rejected": "red",
    "undone": "dim",
}
TAUGHT = (*get_args(Taught), "duplicates")
"""Why a change was proposed, where that is a word of the server's."""
_VERDICT: dict[Verdict, Colour] = {"helpful": "green", "harmful": "red", "neutral": "dim"}


def bullet_line(bullet: Bullet, out: Terminal, *, resting: bool, score: str = "") -> str:
    """A bullet in one line: its id, how often it helped and harmed, its text."""
    known = f"+{bullet.helpful} -{bullet.harmful}"
    notes = [
        say("playbook.disabled") if not bullet.active else "",
        say("playbook.resting") if resting and bullet.active else "",
    ]
    note = "".join(f"({each}) " for each in notes if each)
    head = "  ".join(part for part in (f"{safe(bullet.id):<12}", score, f"{known:<7}") if part)
    content = " ".join(safe(bullet.content).split())
    if out.live:
        content = clip(content, max(20, out.width - columns(head) - columns(note) - 4))
    return f"{out.paint(head, 'dim')}  {out.paint(note, 'yellow')}{content}".rstrip()


def delta_lines(shown: ShownDelta, out: Terminal) -> Iterator[str]:
    """A change: what it is, how it stands, why, the difference, where it was learnt, why it waits."""
    kind = say(f"playbook.type.{shown.type}")
    name = safe(shown.bullet_id) if shown.bullet_id and shown.type != "add" else safe(shown.section)
    status = out.paint(say(f"playbook.status.{shown.status}"), _STATUS[shown.status])
    origin = say(f"playbook.origin.{shown.origin}")
    when = to_the_minute(shown.decided_at or shown.created_at)
    yield "  ".join((out.paint(shown.id, "bold"), when, f"{kind} {name}", f"({origin})", status))
    if shown.why:
        yield f"  {out.paint(say('playbook.fact.why'), 'dim')}: {_why(shown.why)}"
    if shown.doubts and shown.status == "proposed":
        doubts = ", ".join(say(f"playbook.doubt.{each}") for each in shown.doubts)
        yield f"  {out.paint(say('playbook.fact.doubts'), 'dim')}: {out.paint(doubts, 'yellow')}"
    if shown.diff:
        yield from ("  " + line for line in coloured_diff(shown.diff, out))
    for place in shown.places:
        yield f"  {out.paint(say('playbook.fact.learnt'), 'dim')}: {place_text(place)}"


def _why(why: str) -> str:
    """What taught it, in the person's language; the words of a person or a model as they are."""
    return say(f"playbook.taught.{why}") if why in TAUGHT else clip(safe(why), 400)


def observation_line(seen: BulletObservation, out: Terminal) -> str:
    """What a run showed of a bullet, in one line."""
    verdict = out.paint(say(f"playbook.verdict.{seen.verdict}"), _VERDICT[seen.verdict])
    why = f" ({say(f'playbook.because.{seen.why}')})" if seen.why else ""
    note = "" if seen.counted else f"  [{say('playbook.not_counted')}]"
    return f"{verdict}{why}{note}  {place_text(seen.place)}"


def place_text(place: Place) -> str:
    """A place in a session: its title, and how it is opened."""
    where = f"{safe(place.session_id)} #{place.seq}"
    return f"{clip(safe(place.title), 60)} ({where})" if place.title else f"{where} ({say('playbook.gone')})"


def indented(text: str) -> Iterator[str]:
    """The text as it is, each line below its head."""
    return (f"  {line}".rstrip() for line in safe(text).split("\n"))

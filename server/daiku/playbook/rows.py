"""Rows of a playbook's tables as values, and values as rows."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, TypeAlias, get_args

from pydantic_core import from_json, to_json

from daiku.domain.base import Frozen
from daiku.domain.playbook import Bullet, Delta, Doubt, Observation, PlaybookScope
from daiku.playbook.rules.changes import Standing
from daiku.playbook.rules.sections import MOST_CHARACTERS
from daiku.store.database import Values
from daiku.texts.rules.patterns import lazy

Row: TypeAlias = tuple[Any, ...]
_UNSTORABLE = lazy("[\x00\ud800-\udfff]")
_DELTA_ID = lazy("[ru][0-9]{1,18}")


class StoredVector(NamedTuple):
    """The packed vector of a bullet, the square of its length, and the digest of the text that it belongs to."""

    bullet: str
    digest: str
    squared: int
    packed: bytes


class Earlier(Frozen):
    """What the undoing of a change needs beside the bullets before it: what these had been merged into, what their texts
    meant where that was not what their first ones say, and the observation whose place its own took."""

    into: tuple[tuple[str, str], ...] = ()
    meanings: tuple[tuple[str, int], ...] = ()
    observed: Observation | None = None
    replaced: Observation | None = None


def earlier_of(data: str) -> Earlier:
    """What the undoing of a change needs, as it was logged; mostly nothing."""
    return Earlier.model_validate_json(data) if data else Earlier()


def standing_of(row: Row) -> Standing:
    """The bullet that a row holds, with what the store alone knows of it."""
    (
        name,
        section,
        content,
        keywords,
        helpful,
        harmful,
        active,
        origin,
        created,
        updated,
        version,
        into,
        gone,
    ) = row
    bullet = Bullet(
        id=name,
        section=section,
        content=content,
        keywords=tuple(from_json(keywords)) if keywords != "[]" else (),
        helpful=helpful,
        harmful=harmful,
        active=bool(active),
        origin=origin,
        created_at=created,
        updated_at=updated,
    )
    return Standing(bullet, version, into, bool(gone))


def bullet_row(playbook: int, stands: Standing, revision: int) -> Values:
    """A new bullet: its counters are what an import brought."""
    b = stands.bullet
    words = to_json(b.keywords).decode() if b.keywords else "[]"
    return (
        *(
            playbook,
            b.id,
            revision,
            b.section,
            b.content,
            words,
            b.helpful,
            b.harmful,
            int(b.active),
            b.origin,
        ),
        *(b.created_at, b.updated_at, stands.version, stands.into, int(stands.gone)),
        *(b.helpful, b.harmful, revision),
    )


def changed_row(playbook: int, stands: Standing, revision: int) -> Values:
    """How a bullet stands from now on; its counters are changed by themselves."""
    b = stands.bullet
    words = to_json(b.keywords).decode() if b.keywords else "[]"
    return (
        *(b.section, b.content, words, int(b.active), b.updated_at),
        *(stands.version, stands.into, int(stands.gone), revision, playbook, b.id),
    )


def delta_of(data: str) -> Delta:
    """Return the change that a row holds, without the trials and doubts that only earlier versions stored with it."""
    stored = from_json(data)
    stored.pop("tried", None)
    stored["doubts"] = [each for each in stored.get("doubts", ()) if each in get_args(Doubt)]
    return Delta.model_validate(stored)


def observation_of(row: Row) -> Observation:
    run, bullet, verdict, why, session, seq, version = row
    return Observation(
        run=run, bullet=bullet, verdict=verdict, why=why, session=session, seq=seq, version=version or 0
    )


def observation_row(playbook: int, seen: Observation) -> Values:
    return (playbook, seen.bullet, seen.run, seen.verdict, storable(seen.why), seen.session, seen.seq)


def delta_id(scope: PlaybookScope, number: int) -> str:
    """The id of a change: which of the two playbooks it is of, and its number there."""
    return f"{scope[0]}{number}"


def delta_number(scope: PlaybookScope, name: str) -> int | None:
    """The number of a change by its id; None where a playbook of this scope has no such ids."""
    return int(name[1:]) if _DELTA_ID.fullmatch(name) and name[0] == scope[0] else None


def storable(text: str) -> str:
    """A text without what not every database keeps: signs in place of NUL and of halves of a character."""
    return _UNSTORABLE.sub(_sign, text)


def storable_delta(delta: Delta) -> Delta:
    """The same change with texts that every database keeps, and with a reason of a length that somebody reads."""
    texts = (delta.section, delta.content, delta.why, delta.bullet_id, *delta.keywords, *delta.bullet_ids)
    if len(delta.why) <= MOST_CHARACTERS and not any(map(_UNSTORABLE.search, texts)):
        return delta
    return delta.model_copy(
        update={
            "section": storable(delta.section),
            "content": storable(delta.content),
            "why": storable(delta.why[:MOST_CHARACTERS]),
            "bullet_id": storable(delta.bullet_id),
            "keywords": tuple(map(storable, delta.keywords)),
            "bullet_ids": tuple(map(storable, delta.bullet_ids)),
        }
    )


def _sign(found: re.Match[str]) -> str:
    return "\N{SYMBOL FOR NULL}" if found[0] == "\0" else "\N{REPLACEMENT CHARACTER}"

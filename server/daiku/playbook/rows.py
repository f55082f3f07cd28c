"""Conversion between the rows of a playbook's tables and values."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, TypeAlias, get_args

from pydantic_core import from_json, to_json

from daiku.domain.base import Frozen
from daiku.domain.playbook import Bullet, Delta, Doubt, Observation, PlaybookScope
from daiku.playbook.rules.changes import BulletState
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


class UndoData(Frozen):
    """Data that an undo needs besides the bullets before the change.

    `into`: what the bullets had been merged into; `meanings`: the first version with their meaning, if above
    1; `observed`: the observation that the change saved; `replaced`: the one that it replaced.
    """

    into: tuple[tuple[str, str], ...] = ()
    meanings: tuple[tuple[str, int], ...] = ()
    observed: Observation | None = None
    replaced: Observation | None = None


def parse_undo_data(data: str) -> UndoData:
    """Parse the logged data of an undo; mostly empty."""
    return UndoData.model_validate_json(data) if data else UndoData()


def read_state(row: Row) -> BulletState:
    """Return the state of the bullet in a row."""
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
    return BulletState(bullet, version, into, bool(gone))


def to_bullet_row(playbook: int, state: BulletState, revision: int) -> Values:
    """Return the row of a new bullet. Its counters are those that an import brings."""
    b = state.bullet
    keywords = to_json(b.keywords).decode() if b.keywords else "[]"
    return (
        *(
            playbook,
            b.id,
            revision,
            b.section,
            b.content,
            keywords,
            b.helpful,
            b.harmful,
            int(b.active),
            b.origin,
        ),
        *(b.created_at, b.updated_at, state.version, state.merged_into, int(state.is_deleted)),
        *(b.helpful, b.harmful, revision),
    )


def to_changed_row(playbook: int, state: BulletState, revision: int) -> Values:
    """Return the changed columns of a bullet. Counters are updated separately."""
    b = state.bullet
    keywords = to_json(b.keywords).decode() if b.keywords else "[]"
    return (
        *(b.section, b.content, keywords, int(b.active), b.updated_at),
        *(state.version, state.merged_into, int(state.is_deleted), revision, playbook, b.id),
    )


def parse_delta(data: str) -> Delta:
    """Return the change in a row. Fields that only earlier versions stored are dropped."""
    stored = from_json(data)
    stored.pop("tried", None)
    stored["doubts"] = [each for each in stored.get("doubts", ()) if each in get_args(Doubt)]
    return Delta.model_validate(stored)


def read_observation(row: Row) -> Observation:
    run, bullet, verdict, why, session, seq, version = row
    return Observation(
        run=run, bullet=bullet, verdict=verdict, why=why, session=session, seq=seq, version=version or 0
    )


def to_observation_row(playbook: int, observation: Observation) -> Values:
    return (
        playbook,
        observation.bullet,
        observation.run,
        observation.verdict,
        replace_unstorable(observation.why),
        observation.session,
        observation.seq,
    )


def format_delta_id(scope: PlaybookScope, number: int) -> str:
    """Return the id of a change: the initial of the playbook's scope, and its number there."""
    return f"{scope[0]}{number}"


def parse_delta_id(scope: PlaybookScope, name: str) -> int | None:
    """Return the number in a change's id; None if the id does not belong to this scope."""
    return int(name[1:]) if _DELTA_ID.fullmatch(name) and name[0] == scope[0] else None


def replace_unstorable(text: str) -> str:
    """Replace NUL and lone surrogates, which not every database stores."""
    return _UNSTORABLE.sub(_get_replacement, text)


def clean_delta(delta: Delta) -> Delta:
    """Return the change with texts that every database stores, and with its reason truncated."""
    texts = (delta.section, delta.content, delta.why, delta.bullet_id, *delta.keywords, *delta.bullet_ids)
    if len(delta.why) <= MOST_CHARACTERS and not any(map(_UNSTORABLE.search, texts)):
        return delta
    return delta.model_copy(
        update={
            "section": replace_unstorable(delta.section),
            "content": replace_unstorable(delta.content),
            "why": replace_unstorable(delta.why[:MOST_CHARACTERS]),
            "bullet_id": replace_unstorable(delta.bullet_id),
            "keywords": tuple(map(replace_unstorable, delta.keywords)),
            "bullet_ids": tuple(map(replace_unstorable, delta.bullet_ids)),
        }
    )


def _get_replacement(match: re.Match[str]) -> str:
    return "\N{SYMBOL FOR NULL}" if match[0] == "\0" else "\N{REPLACEMENT CHARACTER}"

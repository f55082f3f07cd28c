"""Tables of playbooks, the statements on them that SQLite and PostgreSQL know, and their rows."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, TypeAlias, get_args

from pydantic_core import from_json, to_json

from daiku.domain.base import Frozen
from daiku.domain.playbook import Bullet, Delta, Doubt, Observation, PlaybookScope
from daiku.playbook.rules.changes import BulletState
from daiku.playbook.rules.sections import MOST_CHARACTERS
from daiku.store.database import Values, build_placeholders
from daiku.texts.rules.patterns import lazy

Row: TypeAlias = tuple[Any, ...]
_UNSTORABLE = lazy("[\x00\ud800-\udfff]")
_DELTA_ID = lazy("[ru][0-9]{1,18}")
_BULLET_FIELDS = (
    *("id", "section", "content", "keywords", "helpful", "harmful", "active", "origin"),
    *("created_at", "updated_at"),
)
"""Columns that are fields of a bullet."""


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
    values = dict(zip(_BULLET_FIELDS, row, strict=False))
    keywords = values["keywords"]
    values |= {"keywords": () if keywords == "[]" else tuple(from_json(keywords)), "active": bool(row[6])}
    version, merged_into, gone = row[len(_BULLET_FIELDS) :]
    return BulletState(Bullet(**values), version, merged_into, bool(gone))


def to_bullet_row(playbook: int, state: BulletState, revision: int) -> Values:
    """Return the row of a new bullet. Its counters are those that an import brings."""
    b = state.bullet
    return (
        *(
            playbook,
            b.id,
            revision,
            b.section,
            b.content,
            _pack_keywords(b),
            b.helpful,
            b.harmful,
            int(b.active),
        ),
        *(b.origin, b.created_at, b.updated_at, state.version, state.merged_into, int(state.is_deleted)),
        *(b.helpful, b.harmful, revision),
    )


def to_changed_row(playbook: int, state: BulletState, revision: int) -> Values:
    """Return the changed columns of a bullet. Counters are updated separately."""
    b = state.bullet
    return (
        *(b.section, b.content, _pack_keywords(b), int(b.active), b.updated_at),
        *(state.version, state.merged_into, int(state.is_deleted), revision, playbook, b.id),
    )


def _pack_keywords(bullet: Bullet) -> str:
    return to_json(bullet.keywords).decode() if bullet.keywords else "[]"


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


def to_observation_row(playbook: int, observed: Observation) -> Values:
    why = replace_unstorable(observed.why)
    return playbook, observed.bullet, observed.run, observed.verdict, why, observed.session, observed.seq


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


SCHEMA = """
CREATE TABLE IF NOT EXISTS playbooks(
  id INTEGER PRIMARY KEY, scope TEXT NOT NULL, key TEXT NOT NULL, revision INTEGER NOT NULL,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL, UNIQUE(scope, key)) STRICT;
CREATE TABLE IF NOT EXISTS playbook_numbers(
  playbook INTEGER NOT NULL, slug TEXT NOT NULL, last INTEGER NOT NULL,
  PRIMARY KEY(playbook, slug)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS playbook_bullets(
  playbook INTEGER NOT NULL, id TEXT NOT NULL, added INTEGER NOT NULL,
  section TEXT NOT NULL, content TEXT NOT NULL, keywords TEXT NOT NULL,
  helpful INTEGER NOT NULL, harmful INTEGER NOT NULL, active INTEGER NOT NULL, origin TEXT NOT NULL,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
  version INTEGER NOT NULL, merged_into TEXT NOT NULL, gone INTEGER NOT NULL,
  brought_helpful INTEGER NOT NULL, brought_harmful INTEGER NOT NULL, revision INTEGER NOT NULL,
  PRIMARY KEY(playbook, id)) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS playbook_bullets_changed ON playbook_bullets(playbook, revision);
CREATE INDEX IF NOT EXISTS playbook_bullets_merged ON playbook_bullets(playbook, merged_into)
  WHERE merged_into <> '';
CREATE INDEX IF NOT EXISTS playbook_bullets_general ON playbook_bullets(playbook, active, (harmful - helpful), added)
  WHERE section IN ('project_conventions', 'build_and_test_commands', 'environment');
CREATE TABLE IF NOT EXISTS playbook_deltas(
  playbook INTEGER NOT NULL, number INTEGER NOT NULL, status TEXT NOT NULL, bullet TEXT NOT NULL,
  applied INTEGER NOT NULL, data TEXT NOT NULL, earlier TEXT NOT NULL,
  PRIMARY KEY(playbook, number)) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS playbook_deltas_of ON playbook_deltas(playbook, bullet)
  WHERE bullet <> '';
CREATE INDEX IF NOT EXISTS playbook_deltas_unapplied ON playbook_deltas(playbook, number)
  WHERE status <> 'applied';
CREATE TABLE IF NOT EXISTS playbook_merged(
  playbook INTEGER NOT NULL, bullet TEXT NOT NULL, number INTEGER NOT NULL,
  PRIMARY KEY(playbook, bullet, number)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS playbook_observations(
  playbook INTEGER NOT NULL, bullet TEXT NOT NULL, run TEXT NOT NULL, verdict TEXT NOT NULL,
  why TEXT NOT NULL, session TEXT NOT NULL, seq INTEGER NOT NULL,
  PRIMARY KEY(playbook, bullet, run)) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS playbook_observations_of ON playbook_observations(playbook, run);
CREATE TABLE IF NOT EXISTS playbook_observed_versions(
  playbook INTEGER NOT NULL, bullet TEXT NOT NULL, run TEXT NOT NULL, version INTEGER NOT NULL,
  PRIMARY KEY(playbook, bullet, run)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS playbook_meanings(
  playbook INTEGER NOT NULL, bullet TEXT NOT NULL, version INTEGER NOT NULL, meaning INTEGER NOT NULL,
  PRIMARY KEY(playbook, bullet, version)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS playbook_vectors(
  playbook INTEGER NOT NULL, embedder TEXT NOT NULL, bullet TEXT NOT NULL, digest TEXT NOT NULL,
  squared INTEGER NOT NULL, vector BLOB NOT NULL, PRIMARY KEY(playbook, embedder, bullet)) STRICT;
"""
"""`revision` of a bullet is the revision of the playbook at its last change; `added` that at its addition.

A change's `number` is the revision at which it was logged, `applied` that at which it was applied (0: not
yet). `playbook_merged` lists the bullets that a merge took in besides its target. An `add` that was never
pending names no bullet: its number is the bullet's `added`. `brought_*` are the counters of an import.
`meaning` is the first version of a bullet that says what this version says; only observations of versions
with the same meaning are counted. Without a row it is 1, also for observations older than these tables. A
vector belongs to the text with its `digest`; `squared` is the square of its length. Earlier versions also
created `playbook_index*` tables, which nothing reads.
"""

FIND = "SELECT id, revision, created_at, updated_at FROM playbooks WHERE scope = ? AND key = ?"
TAKE_REVISION = (
    "INSERT INTO playbooks(scope, key, revision, created_at, updated_at) VALUES(?, ?, 1, ?, ?)"
    " ON CONFLICT(scope, key) DO UPDATE SET revision = playbooks.revision + 1, updated_at = excluded.updated_at"
    " RETURNING id, revision"
)
"""The first statement of every change: it takes the write lock of the playbook."""
TAKE_NUMBER = (
    "INSERT INTO playbook_numbers VALUES(?, ?, 1)"
    " ON CONFLICT(playbook, slug) DO UPDATE SET last = playbook_numbers.last + 1 RETURNING last"
)
GIVE_NUMBER = (
    "INSERT INTO playbook_numbers VALUES(?, ?, ?) ON CONFLICT(playbook, slug) DO UPDATE SET last = excluded.last"
    " WHERE playbook_numbers.last < excluded.last"
)
"""Reserve all numbers up to this one."""

_COLUMNS = ", ".join((*_BULLET_FIELDS, "version", "merged_into", "gone"))
BULLETS = f"SELECT {_COLUMNS} FROM playbook_bullets WHERE playbook = ? AND gone = 0 ORDER BY added"  # noqa: S608  # constants
BULLET = f"SELECT {_COLUMNS} FROM playbook_bullets WHERE playbook = ? AND id = ?"  # noqa: S608  # constants


def build_bullets_query(count: int) -> str:
    """Return the statement that selects `count` bullets by id."""
    return (
        f"SELECT {_COLUMNS} FROM playbook_bullets WHERE playbook = ? AND id IN ({build_placeholders(count)})"  # noqa: S608  # constants
    )


CHANGED = f"SELECT {_COLUMNS} FROM playbook_bullets WHERE playbook = ? AND revision > ? ORDER BY added"  # noqa: S608  # constants
GENERAL = (
    f"SELECT {_COLUMNS} FROM playbook_bullets INDEXED BY playbook_bullets_general"  # noqa: S608  # constants
    " WHERE playbook = ? AND active = 1 AND section IN ('project_conventions', 'build_and_test_commands', 'environment')"
    " AND section IN (?, ?, ?)"
    " AND CASE WHEN helpful + harmful = 0 THEN 0.5 ELSE helpful * 1.0 / (helpful + harmful) END >= ?"
    " ORDER BY harmful - helpful, added LIMIT ?"
)
"""The index covers the general sections (`playbook/rules/sections.py`)."""
ADD_BULLET = "INSERT INTO playbook_bullets VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
CHANGE_BULLET = (
    "UPDATE playbook_bullets SET section = ?, content = ?, keywords = ?, active = ?, updated_at = ?, version = ?,"
    " merged_into = ?, gone = ?, revision = ? WHERE playbook = ? AND id = ?"
)

ADD_DELTA = "INSERT INTO playbook_deltas VALUES(?,?,?,?,?,?,?)"
CHANGE_DELTA = (
    "UPDATE playbook_deltas SET status = ?, bullet = ?, applied = ?, data = ?, earlier = ?"
    " WHERE playbook = ? AND number = ?"
)
ADD_MERGED = "INSERT INTO playbook_merged VALUES(?,?,?) ON CONFLICT(playbook, bullet, number) DO NOTHING"
DELTA = "SELECT data, earlier, applied FROM playbook_deltas WHERE playbook = ? AND number = ?"
DELTAS = "SELECT data, status FROM playbook_deltas WHERE playbook = ? ORDER BY number"
UNAPPLIED = (
    "SELECT data, status FROM playbook_deltas INDEXED BY playbook_deltas_unapplied"
    " WHERE playbook = ? AND status <> 'applied' ORDER BY number"
)
HISTORY = (
    "SELECT data, applied FROM playbook_deltas WHERE playbook = ? AND number IN ("
    "SELECT number FROM playbook_deltas WHERE playbook = ? AND bullet = ? AND bullet <> ''"
    " UNION SELECT number FROM playbook_merged WHERE playbook = ? AND bullet = ?"
    " UNION SELECT added FROM playbook_bullets WHERE playbook = ? AND id = ?)"
    " ORDER BY CASE applied WHEN 0 THEN number ELSE applied END"
)

OBSERVE = (
    "INSERT INTO playbook_observations VALUES(?,?,?,?,?,?,?) ON CONFLICT(playbook, bullet, run) DO UPDATE SET"
    " verdict = excluded.verdict, why = excluded.why, session = excluded.session, seq = excluded.seq"
)
OBSERVE_VERSION = (
    "INSERT INTO playbook_observed_versions VALUES(?,?,?,?) ON CONFLICT(playbook, bullet, run) DO UPDATE SET"
    " version = excluded.version"
)
FORGET = tuple(
    f"DELETE FROM {table} WHERE playbook = ? AND bullet = ? AND run = ?"  # noqa: S608  # constants
    for table in ("playbook_observations", "playbook_observed_versions")
)
_OBSERVED = (
    "SELECT o.run, o.bullet, o.verdict, o.why, o.session, o.seq, v.version FROM playbook_observations AS o"
)
_WITH_VERSION = (
    " LEFT JOIN playbook_observed_versions v ON v.playbook = o.playbook AND v.bullet = o.bullet AND v.run = o.run"
    " WHERE o.playbook = ?"
)
OBSERVATION = f"{_OBSERVED}{_WITH_VERSION} AND o.bullet = ? AND o.run = ?"
OBSERVATIONS = f"{_OBSERVED}{_WITH_VERSION} ORDER BY o.bullet, o.run"
OBSERVATIONS_OF_RUN = (
    f"{_OBSERVED} INDEXED BY playbook_observations_of{_WITH_VERSION} AND o.run = ? ORDER BY o.bullet"
)
OBSERVATIONS_OF_BULLET = f"{_OBSERVED}{_WITH_VERSION} AND o.bullet = ? ORDER BY o.run"
VECTORS = "SELECT bullet, digest, squared, vector FROM playbook_vectors WHERE playbook = ? AND embedder = ?"
PUT_VECTOR = (
    "INSERT INTO playbook_vectors VALUES(?,?,?,?,?,?) ON CONFLICT(playbook, embedder, bullet) DO UPDATE SET"
    " digest = excluded.digest, squared = excluded.squared, vector = excluded.vector"
)
MEANING = "SELECT meaning FROM playbook_meanings WHERE playbook = ? AND bullet = ? AND version = ?"
MEAN = "INSERT INTO playbook_meanings VALUES(?,?,?,?)"
MERGED = "SELECT merged_into FROM playbook_bullets WHERE playbook = ? AND id = ?"
COUNTERS = "SELECT helpful, harmful FROM playbook_bullets WHERE playbook = ? AND id = ?"
_FAMILY = (
    "WITH RECURSIVE family(id, version) AS (SELECT id, version FROM playbook_bullets WHERE playbook = ? AND id = ?"
    " UNION SELECT b.id, b.version FROM playbook_bullets b"
    " INDEXED BY playbook_bullets_merged JOIN family f ON b.merged_into = f.id WHERE b.playbook = ?"
    " AND b.merged_into <> ''),"
    " said(id, meaning) AS (SELECT f.id, COALESCE(m.meaning, 1) FROM family f LEFT JOIN playbook_meanings m"
    " ON m.playbook = ? AND m.bullet = f.id AND m.version = f.version)"
)
_BROUGHT = (
    "COALESCE((SELECT SUM({}) FROM playbook_bullets WHERE playbook = ? AND id IN"
    " (SELECT id FROM said WHERE meaning = 1)), 0)"
)
COUNTS = (
    f"{_FAMILY} SELECT {_BROUGHT.format('brought_helpful')}, {_BROUGHT.format('brought_harmful')},"  # noqa: S608  # constants
    " COALESCE(SUM(CASE worst WHEN 1 THEN 1 ELSE 0 END), 0), COALESCE(SUM(CASE worst WHEN 2 THEN 1 ELSE 0 END), 0)"
    " FROM (SELECT MAX(CASE o.verdict WHEN 'harmful' THEN 2 WHEN 'helpful' THEN 1 ELSE 0 END) AS worst"
    " FROM said CROSS JOIN playbook_observations o"
    " LEFT JOIN playbook_observed_versions v ON v.playbook = o.playbook AND v.bullet = o.bullet AND v.run = o.run"
    " LEFT JOIN playbook_meanings m ON m.playbook = o.playbook AND m.bullet = o.bullet AND m.version = v.version"
    " WHERE o.playbook = ? AND o.bullet = said.id AND COALESCE(m.meaning, 1) = said.meaning"
    " GROUP BY o.run) AS runs"
)
"""Counters of a bullet and of all bullets merged into it: those of imports, and those of observations.

Only observations of texts with the current meaning count. A run counts once, with its worst observation.
"""
COUNT = "UPDATE playbook_bullets SET helpful = ?, harmful = ?, revision = ? WHERE playbook = ? AND id = ?"

"""The tables of an index of bullets, and the statements on them that SQLite and PostgreSQL both know."""

from __future__ import annotations

SCHEMA = """
CREATE TABLE IF NOT EXISTS playbook_indexes(
  id INTEGER PRIMARY KEY, scope TEXT NOT NULL, key TEXT NOT NULL, embedder TEXT NOT NULL,
  revision INTEGER NOT NULL, version INTEGER NOT NULL, dimension INTEGER NOT NULL, last INTEGER NOT NULL,
  texts INTEGER NOT NULL, terms INTEGER NOT NULL, fresh INTEGER NOT NULL, writes INTEGER NOT NULL,
  UNIQUE(scope, key, embedder)) STRICT;
CREATE TABLE IF NOT EXISTS playbook_indexed(
  idx INTEGER NOT NULL, number INTEGER NOT NULL, id TEXT NOT NULL, digest TEXT NOT NULL,
  section TEXT NOT NULL, confidence REAL NOT NULL, active INTEGER NOT NULL, length INTEGER NOT NULL,
  fresh INTEGER NOT NULL, said TEXT NOT NULL, filed TEXT NOT NULL, squared INTEGER NOT NULL, vector BLOB,
  PRIMARY KEY(idx, number)) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS playbook_indexed_id ON playbook_indexed(idx, id);
CREATE INDEX IF NOT EXISTS playbook_indexed_fresh ON playbook_indexed(idx, number) WHERE fresh = 1;
CREATE INDEX IF NOT EXISTS playbook_indexed_waiting ON playbook_indexed(idx, number)
  WHERE active = 1 AND vector IS NULL;
CREATE INDEX IF NOT EXISTS playbook_indexed_doubtful ON playbook_indexed(idx, confidence)
  WHERE confidence < 0.5;
CREATE TABLE IF NOT EXISTS playbook_index_blocks(
  idx INTEGER NOT NULL, block INTEGER NOT NULL, writes INTEGER NOT NULL, shortest INTEGER NOT NULL,
  longest INTEGER NOT NULL, squares BLOB NOT NULL, lengths BLOB NOT NULL, held BLOB NOT NULL,
  PRIMARY KEY(idx, block)) STRICT;
CREATE TABLE IF NOT EXISTS playbook_index_columns(
  idx INTEGER NOT NULL, place INTEGER NOT NULL, block INTEGER NOT NULL, lanes BLOB NOT NULL,
  PRIMARY KEY(idx, place, block)) STRICT;
"""
"""There is one index of a playbook and an embedder. It holds all bullets as of `revision` of the playbook; `writes`
rises with each change of it. `number` is the place of a bullet in the order of adding. `fresh` bullets are looked
through one by one; the others are filed: the terms in `filed` by word, the vectors by component in columns."""

FIND = (
    "SELECT id, revision, version, dimension, last, texts, terms, fresh, writes FROM playbook_indexes"
    " WHERE scope = ? AND key = ? AND embedder = ?"
)
TAKE = (
    "INSERT INTO playbook_indexes(scope, key, embedder, revision, version, dimension, last, texts, terms, fresh, writes)"
    " VALUES(?, ?, ?, 0, 0, 0, -1, 0, 0, 0, 1) ON CONFLICT(scope, key, embedder) DO UPDATE SET"
    " writes = playbook_indexes.writes + 1"
    " RETURNING id, revision, version, dimension, last, texts, terms, fresh, writes"
)
"""The first statement of every change: whoever else writes to this index waits until it ends."""
SET = (
    "UPDATE playbook_indexes SET revision = ?, version = ?, dimension = ?, last = ?, texts = ?, terms = ?, fresh = ?"
    " WHERE id = ?"
)
WRITES = "SELECT writes FROM playbook_indexes WHERE id = ?"
KNOWN = (
    "SELECT number, digest, section, confidence, active, length, fresh, said, filed, squared, vector"
    " FROM playbook_indexed WHERE idx = ? AND id = ?"
)
PUT = (
    "INSERT INTO playbook_indexed(idx, number, id, digest, section, confidence, active, length, fresh, said, filed,"
    " squared, vector) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(idx, number) DO UPDATE SET"
    " digest = excluded.digest, section = excluded.section, confidence = excluded.confidence,"
    " active = excluded.active, length = excluded.length, fresh = excluded.fresh, said = excluded.said,"
    " squared = excluded.squared, vector = excluded.vector"
)
WAITING = (
    "SELECT id FROM playbook_indexed INDEXED BY playbook_indexed_waiting"
    " WHERE idx = ? AND active = 1 AND vector IS NULL ORDER BY number LIMIT ?"
)
FRESH = (
    "SELECT number, active, said, filed, vector FROM playbook_indexed INDEXED BY playbook_indexed_fresh"
    " WHERE idx = ? AND fresh = 1 ORDER BY number"
)
BLOCK = (
    "SELECT number, active, length, fresh, said, filed, squared, vector FROM playbook_indexed"
    " WHERE idx = ? AND number >= ? AND number < ? ORDER BY number"
)
FILED = (
    "UPDATE playbook_indexed SET fresh = 0, filed = CASE active WHEN 1 THEN said ELSE '' END"
    " WHERE idx = ? AND fresh = 1 AND number >= ? AND number < ?"
)
IDS = "SELECT number, id FROM playbook_indexed WHERE idx = ? AND number IN ({})"
OTHER_SECTIONS = "SELECT number FROM playbook_indexed WHERE idx = ? AND active = 1 AND section <> ?"
RESTING = "SELECT number FROM playbook_indexed WHERE idx = ? AND active = 1 AND confidence < ?"
DOUBTFUL = f"{RESTING} AND confidence < 0.5"
BLOCKS = (
    "SELECT block, writes, shortest, longest, squares, lengths, held FROM playbook_index_blocks WHERE idx = ?"
    " ORDER BY block"
)
PUT_BLOCK = (
    "INSERT INTO playbook_index_blocks VALUES(?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(idx, block) DO UPDATE SET"
    " writes = excluded.writes, shortest = excluded.shortest, longest = excluded.longest,"
    " squares = excluded.squares, lengths = excluded.lengths, held = excluded.held"
)
PUT_COLUMN = (
    "INSERT INTO playbook_index_columns VALUES(?, ?, ?, ?)"
    " ON CONFLICT(idx, place, block) DO UPDATE SET lanes = excluded.lanes"
)
COLUMNS = "SELECT place, block, lanes FROM playbook_index_columns WHERE idx = ? AND place IN ({})"
ALL_FILED = "SELECT number, filed FROM playbook_indexed WHERE idx = ? AND filed <> ''"
EMPTY = tuple(
    f"DELETE FROM {table} WHERE idx = ?"  # noqa: S608  # constants
    for table in ("playbook_indexed", "playbook_index_blocks", "playbook_index_columns")
)

"""Which bullets have a term: by FTS5 in SQLite, by a table in PostgreSQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from daiku.store.database import Database
from daiku.store.sqlite import SqliteDatabase

_FTS5 = """
CREATE VIRTUAL TABLE IF NOT EXISTS playbook_index_words USING fts5(terms, content='', tokenize='ascii');
CREATE VIRTUAL TABLE IF NOT EXISTS playbook_index_counts USING fts5vocab(playbook_index_words, 'row');
CREATE VIRTUAL TABLE IF NOT EXISTS playbook_index_places USING fts5vocab(playbook_index_words, 'instance');
"""
_TABLE = """
CREATE TABLE IF NOT EXISTS playbook_index_terms(
  idx INTEGER NOT NULL, term TEXT NOT NULL, number INTEGER NOT NULL, times INTEGER NOT NULL,
  PRIMARY KEY(idx, term, number));
"""
_NUMBERS = 1 << 40
"""Rows of FTS5 have one number: that of the index times this, and that of the bullet."""
_OF = "·"
"""Between the number of an index and a term of it: no sign at which FTS5 parts words."""


class Filed(NamedTuple):
    """The number of a bullet, and its terms with a space between them."""

    number: int
    said: str


class Words(Protocol):
    """The terms of the bullets of one index."""

    def count(self, term: str) -> int:
        """How many bullets have a term."""
        ...

    def having(self, term: str) -> Iterable[tuple[int, int]]:
        """The bullets that have a term, and how often."""
        ...

    def add(self, filed: Sequence[Filed]) -> None: ...

    def remove(self, filed: Sequence[Filed]) -> None:
        """Take out what was added with these same terms."""
        ...


def words_of(database: Database, index: int) -> Words:
    """The terms of an index, where its database keeps them."""
    return (_ByFts5 if isinstance(database, SqliteDatabase) else _ByTable)(database, index)


def words_schema(database: Database) -> str:
    """The tables that terms are kept in."""
    return _FTS5 if isinstance(database, SqliteDatabase) else _TABLE


class _ByFts5:
    """FTS5 without contents, which are in the index: it is told what it has to take out."""

    def __init__(self, database: Database, index: int) -> None:
        self._db, self._prefix, self._first = database, f"{index}{_OF}", index * _NUMBERS

    def count(self, term: str) -> int:
        found = self._db.first("SELECT doc FROM playbook_index_counts WHERE term = ?", (self._prefix + term,))
        return 0 if found is None else found[0]

    def having(self, term: str) -> Iterable[tuple[int, int]]:
        rows = self._db.query("SELECT doc FROM playbook_index_places WHERE term = ?", (self._prefix + term,))
        return Counter([row[0] - self._first for row in rows]).items()

    def add(self, filed: Sequence[Filed]) -> None:
        self._db.write_all("INSERT INTO playbook_index_words(rowid, terms) VALUES(?, ?)", self._rows(filed))

    def remove(self, filed: Sequence[Filed]) -> None:
        self._db.write_all(
            "INSERT INTO playbook_index_words(playbook_index_words, rowid, terms) VALUES('delete', ?, ?)",
            self._rows(filed),
        )

    def _rows(self, filed: Sequence[Filed]) -> list[tuple[int, str]]:
        prefix, first = self._prefix, self._first
        return [
            (first + number, " ".join([prefix + term for term in said.split(" ")] if said else []))
            for number, said in filed
        ]


class _ByTable:
    """A row for each bullet and term."""

    def __init__(self, database: Database, index: int) -> None:
        self._db, self._index = database, index

    def count(self, term: str) -> int:
        sql = "SELECT count(*) FROM playbook_index_terms WHERE idx = ? AND term = ?"
        return int(self._db.first(sql, (self._index, term))[0])

    def having(self, term: str) -> Iterable[tuple[int, int]]:
        sql = "SELECT number, times FROM playbook_index_terms WHERE idx = ? AND term = ?"
        return [(number, times) for number, times in self._db.query(sql, (self._index, term))]

    def add(self, filed: Sequence[Filed]) -> None:
        self._db.write_all(
            "INSERT INTO playbook_index_terms VALUES(?, ?, ?, ?)",
            [
                (self._index, term, number, times)
                for number, said in filed
                for term, times in Counter(said.split(" ") if said else ()).items()
            ],
        )

    def remove(self, filed: Sequence[Filed]) -> None:
        self._db.write_all(
            "DELETE FROM playbook_index_terms WHERE idx = ? AND term = ? AND number = ?",
            [
                (self._index, term, number)
                for number, said in filed
                for term in (set(said.split(" ")) if said else ())
            ],
        )

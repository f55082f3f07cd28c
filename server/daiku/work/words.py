"""Words left for whoever works an item, each with its author: a person on the forge, or Daiku itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from daiku.store.database import Database, add_column

Author = Literal["person", "system"]
"""Only a person's words answer a question, allow something, or ask for a change."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS work_told(
  item TEXT NOT NULL, n INTEGER NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL,
  author TEXT NOT NULL DEFAULT 'person', PRIMARY KEY(item, n));
"""


class Words(NamedTuple):
    """Words on record; `number` grows within the item."""

    number: int
    text: str


class WordStore:
    """The words of all items in one database. Methods raise DaikuError if it fails."""

    def __init__(self, db: Database, redact: Callable[[str], str] = str) -> None:
        self._db = db
        self._redact = redact
        db.prepare(SCHEMA)
        fill = "UPDATE work_told SET author = 'system' WHERE id LIKE 'lost-%'"
        add_column(db, "work_told", "author", "TEXT NOT NULL DEFAULT 'person'", fill)

    def leave(self, item: str, said: str, of: str, author: Author = "person") -> None:
        """Leave words for whoever works the item; `of` is their id, and the same is left once."""
        with self._db.transaction():
            if self._db.first("SELECT 1 FROM work_told WHERE item = ? AND id = ?", (item, of)) is None:
                last = self._db.first("SELECT COALESCE(MAX(n), 0) FROM work_told WHERE item = ?", (item,))
                row = (item, last[0] + 1, of, self._redact(said), author)
                self._db.write("INSERT INTO work_told(item, n, id, text, author) VALUES(?,?,?,?,?)", row)

    def left(self, item: str, author: Author, after: int = 0) -> tuple[Words, ...]:
        """Return the words of that kind of author behind number `after`."""
        rows = self._db.query(
            "SELECT n, text FROM work_told WHERE item = ? AND author = ? AND n > ? ORDER BY n",
            (item, author, after),
        )
        return tuple(Words(*row) for row in rows)

    def unheard(self, item: str, after: int) -> frozenset[str]:
        """Return the ids of people's words behind number `after`."""
        rows = self._db.query(
            "SELECT id FROM work_told WHERE item = ? AND author = 'person' AND n > ?", (item, after)
        )
        return frozenset(row[0] for row in rows)

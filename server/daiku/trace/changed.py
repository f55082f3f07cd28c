"""Which conversations changed files: asked of the journal by an index over these few events alone."""

from __future__ import annotations

import sqlite3
from typing import TypeAlias

Row: TypeAlias = tuple[int, str, str, str | None, str, str, str]

# The kinds stand in both questions as in the index, word for word: otherwise SQLite does not use it.
_OF = (
    "SELECT seq, time, run, parent, agent, type, data FROM chunks"
    " WHERE session = ? AND seq > ? AND type IN ('checkpoint', 'edit', 'review', 'restored') ORDER BY seq"
)
_IN = (
    "SELECT s.id, (SELECT MAX(c.seq) FROM chunks c INDEXED BY changes WHERE c.session = s.id"
    " AND c.type IN ('checkpoint', 'edit', 'review', 'restored')) AS last"
    " FROM sessions s WHERE s.workspace = ? AND last IS NOT NULL ORDER BY s.updated_at DESC, s.id"
)


def changes_of(db: sqlite3.Connection, session: str, after_seq: int) -> list[Row]:
    """What happened to files in a session after `after_seq`, oldest first."""
    return db.execute(_OF, (session, after_seq)).fetchall()


def changed_in(db: sqlite3.Connection, workspace: str) -> dict[str, int]:
    """The sessions of a workspace in which files changed, the last one first, with the number of the last
    event that tells of it."""
    return dict(db.execute(_IN, (workspace,)).fetchall())

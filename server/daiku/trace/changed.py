"""Query which sessions changed files, using a partial index over the file events."""

from __future__ import annotations

from daiku.store.database import Database
from daiku.trace.rows import READ, Read

# The kinds stand in both questions as in the index, word for word, otherwise SQLite does not use it. Not
# `type IN (…)`: SQLite would make a list of the four at every insert, which costs a fifth of it.
_OF = (
    f"{READ} WHERE session = ? AND seq > ?"
    " AND (type = 'checkpoint' OR type = 'edit' OR type = 'review' OR type = 'restored') ORDER BY seq"
)
_IN = (
    "SELECT s.id, (SELECT MAX(seq) FROM chunks INDEXED BY file_changes WHERE session = s.id"
    " AND (type = 'checkpoint' OR type = 'edit' OR type = 'review' OR type = 'restored')) AS last"
    " FROM sessions s WHERE s.workspace = ? AND last IS NOT NULL ORDER BY s.updated_at DESC, s.id"
)


def file_changes(db: Database, session: str, after_seq: int) -> list[Read]:
    """What happened to files in a session after `after_seq`, oldest first."""
    return db.query(_OF, (session, after_seq))


def sessions_with_changes(db: Database, workspace: str) -> dict[str, int]:
    """The sessions of a workspace in which files changed, the last one first, with the number of the last
    event that tells of it."""
    return dict(db.query(_IN, (workspace,)))

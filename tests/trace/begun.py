"""A session in which a run may write: new, and locked by the journal."""

from __future__ import annotations

from daiku.trace.journal import Journal


def begun(journal: Journal, title: str = "", workspace: str = "") -> str:
    """The id of a new session that is locked until the journal is closed."""
    session = journal.add_session(workspace, title)
    journal.lock(session)
    return session

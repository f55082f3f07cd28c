"""Summary of a session, as lists and clients show it."""

from typing import Literal

from daiku.domain.base import Wire

SessionStatus = Literal[
    "idle",
    "running",
    "waiting",
    "paused",
    "interrupted",
    "completed",
    "completed_unverified",
    "cancelled",
    "failed",
    "limit",
]


class Session(Wire):
    """A conversation; `status` is that of its last run (`idle`: none yet, `waiting`: it asks a
    person something, `interrupted`: the process ended under it)."""

    session_id: str
    title: str = ""
    created_at: str
    updated_at: str
    last_seq: int = 0
    model: str | None = None
    status: SessionStatus = "idle"

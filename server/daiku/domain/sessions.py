"""Summary of a session, for lists and clients."""

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
    """A session.

    `status` is that of its last run. `idle`: no run yet. `waiting`: it asks the user. `interrupted`: its
    process ended.
    """

    session_id: str
    title: str = ""
    created_at: str
    updated_at: str
    last_seq: int = 0
    model: str | None = None
    status: SessionStatus = "idle"

"""Offline learning from the stored sessions of a folder, for a nightly job."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from daiku.domain.base import Wire
from daiku.domain.errors import Failure, UsageError
from daiku.domain.held import Bullet
from daiku.playbook.background import build_learner
from daiku.settings.config import Config
from daiku.store.lock import SessionLock
from daiku.texts.text import text
from daiku.trace.journal import ALL
from daiku.trace.stores import open_stores


class OfflineLearning(Wire):
    """Result of offline learning: the number of `sessions`, and the resulting `changes` of the playbook.

    A `dry_run` only counts the sessions.
    """

    sessions: int
    changes: tuple[Bullet, ...] = ()
    dry_run: bool = False


def learn_offline(
    config: Config,
    home: Path,
    folder: Path,
    redact: Callable[[str], str],
    *,
    trusted: bool,
    most: int = ALL,
    dry_run: bool = False,
) -> OfflineLearning:
    """Learn from the newest `most` sessions of a folder, as if their runs had just ended, without a model.

    Sessions that were learned from before change nothing. Raises UsageError if the folder is not trusted, or
    if another process is learning.
    """
    if not trusted and not dry_run:
        message, hint = text("adapt.untrusted"), text("adapt.trust_it")
        raise UsageError(Failure(kind="usage", message=message, hint=hint))
    lock = SessionLock(home / "locks" / "adapt.lock")
    if not lock.acquire():
        raise UsageError(Failure(kind="busy", message=text("adapt.under_way")))
    try:
        stores = open_stores(config.storage.place(home), redact)
        try:
            sessions = stores.journal.list_sessions(limit=most, workspace=str(folder))
            names = [each.session_id for each in reversed(sessions)]
            # The MCP servers allowed then are not recorded, so lessons need review if there are any.
            servers = bool(config.mcp_servers)
            learn = build_learner(config, (folder,), stores, redact, outside=lambda: servers)
            changes: list[Bullet] = []
            for name in names:
                if learn is not None and not dry_run:
                    with suppress(UsageError):  # the session was deleted in the meantime
                        changes += learn(name)
            return OfflineLearning(sessions=len(names), changes=tuple(changes), dry_run=dry_run)
        finally:
            stores.close()
    finally:
        lock.release()

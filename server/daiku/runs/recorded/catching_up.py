"""Learns from runs of processes that were killed before they had learnt from them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic

from daiku.domain.errors import DaikuError, UsageError
from daiku.domain.events import Bullet
from daiku.runs.recorded.history import last_start
from daiku.runs.services import NotesUnlearnt
from daiku.trace.journal import Journal
from daiku.trace.sessions import KeepsSessions

logger = logging.getLogger(__name__)

SECONDS = 2.0
"""No further session is begun after this time."""


def left_behind(journal: KeepsSessions, unlearnt: NotesUnlearnt) -> tuple[str, ...]:
    """The sessions whose runs nobody learns from now: none is under way in any process."""
    return tuple(session for session in unlearnt.sessions() if journal.is_free(session))


def catch_up(journal: Journal, unlearnt: NotesUnlearnt, learning: Callable[[str], Sequence[Bullet]]) -> None:
    """Learn from the runs that were left behind, for a short while; what they taught is added to their sessions. Where that
    fails it is tried again another time: whoever looks at a playbook is shown what there is."""
    until = monotonic() + SECONDS
    try:
        for session in left_behind(journal, unlearnt):
            with suppress(UsageError):  # deleted, or somebody goes on with it just now
                _tell(journal, session, learning(session))
            unlearnt.learnt(session)
            if monotonic() > until:
                break
    except DaikuError:
        logger.warning("what runs of ended processes taught was not learnt", exc_info=True)


def _tell(journal: Journal, session: str, news: Sequence[Bullet]) -> None:
    if news:
        lock = journal.lock(session)
        try:
            run = last_start(journal.chunks(session)).run
            journal.writer(session).write(run, None, "user", tuple(news))
        finally:
            lock.release()

"""What an adaptation works with: the playbooks of a repository, its runs on record, and how one of them is tried."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Protocol

from daiku.agents.rules import rules_of
from daiku.core.playbook.gate.heldout import is_held_out
from daiku.dataclass import dataclass
from daiku.domain.errors import Failure, UsageError
from daiku.domain.events import RunStarted
from daiku.domain.held import Lesson
from daiku.domain.playbook import Delta, PlaybookScope
from daiku.domain.trials import Arm, Case, Trial
from daiku.playbook.learning import Learning
from daiku.playbook.playbooks import FindsBullets, searching
from daiku.playbook.repository import open_playbooks
from daiku.playbook.store import PlaybookStore
from daiku.sdk.trials.cases import cases_of
from daiku.sdk.trials.trial import Trying, try_case, why_not
from daiku.settings.config import Config, PlaybookSettings
from daiku.store.lock import SessionLock
from daiku.texts.text import Text, text
from daiku.trace.copies import copies_in, original_of
from daiku.trace.journal import ALL, Journal
from daiku.trace.stores import open_stores


class Tries(Protocol):
    """How a run on record is done again."""

    def __call__(
        self, case: Case, lessons: Sequence[Lesson], *, arm: Arm, nth: int, max_cost: float
    ) -> Awaitable[Trial]: ...


@dataclass(frozen=True, slots=True)
class Gate:
    """Everything that an adaptation of one repository's playbook needs."""

    stores: Mapping[PlaybookScope, PlaybookStore]
    settings: PlaybookSettings
    journal: Journal
    folder: Path
    finder: Callable[[], FindsBullets]
    redact: Callable[[str], str]
    cases: Callable[[], Awaitable[tuple[Case, ...]]]
    tries: Tries
    why_not: Callable[[], Text]
    """Why nothing can be tried on this machine; empty where it can."""
    servers: bool = False
    """Whether MCP servers are set up, which tell models things that are on no record."""

    def original(self, session: str, run: str) -> tuple[str, str]:
        """Where the work was done that stands in this session as this run: a fork's copies are no work of their own."""
        first = original_of(self.journal.database, run)
        if first != run:
            with suppress(UsageError):  # deleted
                return self.journal.session_of_run(first), first
        return session, run

    def questions(self, delta: Delta) -> tuple[str, ...]:
        """What was asked in the sessions that a change was learnt from, as far as they are kept."""
        found: list[str] = []
        for session in {each.session_id for each in (*delta.evidence, *delta.again)}:
            with suppress(UsageError):  # deleted
                found += [
                    each.event.prompt
                    for each in self.journal.chunks(session)
                    if isinstance(each.event, RunStarted) and each.parent is None
                ]
        return tuple(dict.fromkeys(found))

    def teaching(self) -> tuple[str, ...]:
        """The sessions of this folder that teach, the oldest first. What a fork repeats its original says."""
        sessions = self.journal.list_sessions(limit=ALL, workspace=str(self.folder))
        names = [each.session_id for each in reversed(sessions)]
        return tuple(
            name for name in names if not is_held_out(name) and not copies_in(self.journal.database, name)
        )

    def learn_anew(self) -> int:
        """Learn from the sessions that teach what is not learnt yet, all of it proposed; how many changes that are."""
        before = len(self.stores["repository"].deltas("proposed"))
        learning = Learning(
            "review",
            self.journal,
            self.journal.database,
            open_playbooks(self.journal.database, (self.folder,)),
            self.redact,
            lambda: self.servers,
            partial(rules_of, (self.folder,)),
        )
        for name in self.teaching():
            if chunks := self.journal.chunks(name):
                learning.after(chunks)
        return max(0, len(self.stores["repository"].deltas("proposed")) - before)


@contextmanager
def open_gate(
    config: Config, home: Path, folder: Path, redact: Callable[[str], str], *, trusted: bool, locale: str
) -> Generator[Gate]:
    """The gate of a folder, held by one process at a time. Raises UsageError: the person does not trust the folder, or
    another adaptation is under way."""
    if not trusted:
        hint = text("adapt.trust_it")
        raise UsageError(Failure(kind="usage", message=text("adapt.untrusted"), hint=hint))
    lock = SessionLock(home / "locks" / "adapt.lock")
    if not lock.acquire():
        raise UsageError(Failure(kind="busy", message=text("adapt.under_way")))
    try:
        stores = open_stores(config.storage.place(home), redact)
        try:
            yield _gate(config, home, folder, redact, stores.journal, locale)
        finally:
            stores.close()
    finally:
        lock.release()


def _gate(
    config: Config, home: Path, folder: Path, redact: Callable[[str], str], journal: Journal, locale: str
) -> Gate:
    playbooks = open_playbooks(journal.database, (folder,))
    assert playbooks.repository is not None  # a folder has one
    trying = Trying(config=config, home=home, locale=locale)

    async def tries(case: Case, lessons: Sequence[Lesson], *, arm: Arm, nth: int, max_cost: float) -> Trial:
        return await try_case(case, lessons, trying, arm=arm, nth=nth, max_cost=max_cost)

    return Gate(
        {"repository": playbooks.repository, "user": playbooks.user},
        config.playbook,
        journal,
        folder,
        searching(config),
        redact,
        partial(cases_of, journal, home, (folder,)),
        tries,
        partial(why_not, trying),
        bool(config.mcp_servers),
    )

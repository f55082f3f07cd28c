"""Runs keep their sessions wherever they are told to: here in plain lists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from daiku import Agent
from daiku.app import AppParts, build
from daiku.domain.chunks import Chunk, encode_event, iso_now
from daiku.domain.errors import Failure, UsageError
from daiku.domain.events import EPHEMERAL, Event
from daiku.domain.sessions import Session, SessionStatus
from daiku.run.request import RunRequest
from daiku.run.runs import Runs
from daiku.settings.config import Config
from daiku.store.lock import Lock, MemoryLock
from daiku.testing import FakeLLM
from daiku.texts.text import Text
from daiku.trace.fork import CopyReferences
from daiku.trace.sessions import SessionStore
from daiku.workspace.disk import DiskWorkspace


def missing(name: str) -> UsageError:
    return UsageError(Failure(kind="not_found", message=Text(f"no {name}")))


@dataclass
class Lists:
    """Sessions in lists."""

    kept: dict[str, list[Chunk]] = field(default_factory=dict[str, list[Chunk]])
    seqs: dict[str, int] = field(default_factory=dict[str, int])
    statuses: dict[str, SessionStatus] = field(default_factory=dict[str, SessionStatus])
    held: set[str] = field(default_factory=set[str])

    def add_session(self, workspace: str = "", title: str = "") -> str:
        name = f"ses_{len(self.kept)}"
        self.kept[name], self.seqs[name] = [], 0
        return name

    def get_session(self, session: str) -> Session:
        if session not in self.kept:
            raise missing(session)
        status = self.statuses.get(session, "idle")
        return Session(session_id=session, title="", created_at="", updated_at="", last_seq=0, status=status)

    def chunks(self, session: str, after_seq: int = 0) -> list[Chunk]:
        return [chunk for chunk in self.kept[session] if chunk.seq > after_seq]

    def changes(self, session: str, after_seq: int = 0) -> list[Chunk]:
        return []

    def changed_sessions(self, workspace: str) -> dict[str, int]:
        return {}

    def is_free(self, session: str) -> bool:
        return True

    def running_titles(self, workspace: str, *, excluding: str, most: int) -> list[str]:
        return []

    def fork_session(self, session: str, at_seq: int, copies: CopyReferences | None = None) -> Session:
        raise missing(session)

    def session_of_run(self, run: str) -> str:
        found = next((name for name, chunks in self.kept.items() if any(c.run == run for c in chunks)), None)
        if found is None:
            raise missing(run)
        return found

    def session_of_plan(self, plan: str) -> tuple[str, str]:
        raise missing(plan)

    def writer(self, session: str) -> Writer:
        return Writer(self, session)

    def note_status(self, session: str, status: SessionStatus, model: str = "", title: str = "") -> None:
        self.statuses[session] = status

    def lock(self, session: str) -> Lock:
        lock = MemoryLock(session, self.held)
        if not lock.acquire():
            raise missing("right to run")
        return lock


@dataclass
class Writer:
    """Numbers chunks and keeps the durable ones."""

    lists: Lists
    session: str

    @property
    def last_seq(self) -> int:
        return self.lists.seqs[self.session]

    def write(
        self, run: str, parent: str | None, agent: str, events: Iterable[Event], *, durable: bool = False
    ) -> list[Chunk]:
        made: list[Chunk] = []
        for event in events:
            self.lists.seqs[self.session] += 1
            data = encode_event(event)
            made.append(Chunk(self.last_seq, iso_now(), self.session, run, agent, event, data, parent))
        self.lists.kept[self.session] += [chunk for chunk in made if chunk.type not in EPHEMERAL]
        return made


async def test_runs_keep_their_sessions_in_whatever_they_are_given(tmp_path: Path) -> None:
    """R1.2, X.30: what keeps sessions is exchanged like the model and the tools."""
    lists: SessionStore = Lists()
    llm = FakeLLM("I will.", "It is 7.")
    app = build(
        Config(),
        workspace=DiskWorkspace(()),
        home=tmp_path,
        parts=AppParts(model=llm, plugins=False, environ={}),
    )
    runs, agent = Runs(replace(app.runs.services, journal=lists)), Agent("a", "x")
    first = await runs.run(RunRequest("Keep 7.", agent=agent), lambda _: None)
    second = await runs.run(RunRequest("Which?", agent=agent, session=first.session_id), lambda _: None)
    assert [message.text for message in llm.requests[1].messages] == ["Keep 7.", "I will.", "Which?"]
    assert second.text == "It is 7."
    assert [chunk.type for chunk in lists.chunks(first.session_id)].count("run_finished") == 2
    assert (await runs.resume(second.run_id, lambda _: None)).text == "It is 7."
    with pytest.raises(UsageError, match="no run_9"):
        await runs.resume("run_9", lambda _: None)
    assert app.journal.list_sessions() == []
    await app.aclose()

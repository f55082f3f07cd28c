"""Arms of our own: the product's own path from a journal to advice, whole and with one piece taken out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import ParamSpec, TypeVar

from daiku.domain.chunks import Chunk
from daiku.domain.errors import Failure, UsageError
from daiku.domain.held import Lesson
from daiku.domain.playbook import Delta, Observation
from daiku.guard.rules.redact import Redactor
from daiku.models.tokens import estimate
from daiku.playbook.learning import Learning, observe_session
from daiku.playbook.playbooks import PlaybookPair, Playbooks
from daiku.playbook.repository import PlaybookStores as Opened
from daiku.playbook.rules.changes import ChangeRefusal
from daiku.playbook.search import PlaybookSearch
from daiku.playbook.store import PlaybookStore
from daiku.run.rules.state.lessons import render_lessons
from daiku.settings.config import PlaybookSettings
from daiku.texts.text import Text
from daiku.trace.stores import open_stores
from tests.playbook.world.attempts import Attempt, Task

P = ParamSpec("P")
T = TypeVar("T")


class Nothing:
    """No memory: the actor is alone."""

    name = "off"

    def advice(self, task: Task) -> tuple[str, ...]:
        return ()

    def learn(self, attempt: Attempt) -> None:
        pass


class Uncounted(PlaybookStore):
    """A playbook that takes no notice of what runs showed of its bullets."""

    def observe(self, observations: Sequence[Observation]) -> None:
        pass

    def apply(self, delta: Delta) -> Delta | ChangeRefusal:
        return delta if delta.type == "tag" else super().apply(delta)


class Unmerged(PlaybookStore):
    """A playbook that only grows: what would change a bullet comes beside it, and nothing is merged."""

    def apply(self, delta: Delta) -> Delta | ChangeRefusal:
        return delta if delta.type == "merge" else super().apply(_beside(delta))

    def propose(self, delta: Delta) -> Delta:
        return delta if delta.type == "merge" else super().propose(_beside(delta))


def _beside(delta: Delta) -> Delta:
    return delta.model_copy(update={"type": "add", "bullet_id": ""}) if delta.type == "update" else delta


class _OneSession:
    """The session that is learnt from, and no others: nothing is copied here."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = list(chunks)

    def chunks(self, session: str) -> list[Chunk]:
        return self._chunks

    def session_of_run(self, run: str) -> str:
        raise UsageError(Failure(kind="usage", message=Text("not kept")))


class _AtOnce(ThreadPoolExecutor):
    """Does what is handed to a thread in the thread that hands it over: here nothing else waits meanwhile."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        done: Future[T] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


class Daiku:
    """The playbook as the product has it: learnt from by rule, recalled within a budget, counted."""

    def __init__(
        self,
        name: str = "on",
        *,
        store: type[PlaybookStore] = PlaybookStore,
        reflects: bool = True,
        **settings: object,
    ) -> None:
        self.name = name
        self.settings = PlaybookSettings.model_validate({"learn": "auto"} | settings)
        self.lessons: tuple[Lesson, ...] = ()
        self._stores = open_stores(None, str)
        database = self._stores.database
        self._reflects = reflects
        self.store = store(database, "repository", "world")
        self._user = PlaybookStore(database, "user", "")
        self._recalled = Playbooks(self.settings, lambda: PlaybookPair(self.store, self._user), self._finder)
        self._loop = asyncio.Runner()
        self._loop.get_loop().set_default_executor(_AtOnce())

    def _finder(self) -> PlaybookSearch:
        return self._search

    @cached_property
    def _search(self) -> PlaybookSearch:
        return PlaybookSearch(alpha=self.settings.alpha)

    def advice(self, task: Task) -> tuple[str, ...]:
        self.lessons = self._loop.run(self._recalled.recall(task.prompt))
        assert estimate(render_lessons(self.lessons)) <= self.settings.token_budget
        return tuple(f"[{each.id}] {each.text}" for each in self.lessons)

    def learn(self, attempt: Attempt) -> None:
        sessions, database = _OneSession(attempt.chunks), self._stores.database
        if not self._reflects:
            observe_session((self.store,), sessions, database, attempt.chunks)
            return
        opened = Opened(self.store, self._user)
        # The person's settings allow the world's commands, and they accept their own words when they review.
        learning = Learning(
            self.settings.learn, sessions, database, opened, Redactor(()), allows=lambda _: True
        )
        learning.learn_from_session(attempt.chunks)
        for change in self.store.deltas("proposed"):
            if change.why in ("corrected", "rejected"):
                self.store.accept(change.id)

    def put_in(self, texts: tuple[str, ...]) -> None:
        for each in texts:
            delta = Delta(id="", type="add", section="project_conventions", content=each, origin="model")
            assert not isinstance(self.store.apply(delta), ChangeRefusal)

    def close(self) -> None:
        """Let go of the tables."""
        self._loop.close()
        self._stores.close()

"""Background learning: records user actions in sessions, and learns from ended runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING

from daiku.dataclass import dataclass, field, replace
from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.events import Event, Notice, Restored, Review, RunFinished, RunStarted, ToolResponse
from daiku.domain.held import Bullet, Reflected
from daiku.playbook.rules.run_text import is_correction
from daiku.playbook.unlearnt import REFLECTION_TABLE, PendingRuns
from daiku.run.live import LiveRun
from daiku.run.recorded.history import add_to_record, starts_of
from daiku.run.services import RunServices
from daiku.texts.text import text

if TYPE_CHECKING:
    from pathlib import Path

    from daiku.playbook.learning import Learning
    from daiku.settings.config import Config
    from daiku.trace.stores import Stores

logger = logging.getLogger(__name__)

MOST_REFLECTIONS = 3
"""Maximum number of sessions of ended processes that are reflected on when a process starts."""
SETTLE_SECONDS = 10.0
"""Maximum time in seconds that the end of a program waits for learning."""


@dataclass(slots=True)
class BackgroundLearner:
    """Records user actions in the sessions of a workspace, and learns from ended runs in the background.

    Failures of learning are logged; no run fails or waits because of them.
    """

    services: RunServices
    live: Mapping[str, LiveRun]
    """The runs of this process, by id."""
    _waiting: dict[str, str] = field(default_factory=dict[str, str], init=False)
    """Sessions to learn from, each with the run to reflect on; empty for none."""
    _unrecorded: dict[str, tuple[Bullet, ...]] = field(
        default_factory=dict[str, tuple[Bullet, ...]], init=False
    )
    """News that could not be recorded while a run was starting, by session."""
    _task: asyncio.Task[None] | None = field(default=None, init=False)
    defers_reflections: bool = field(default=False, init=False)
    """Leave reflections to the next process, unless `settle` waits for them.

    For programs that end with the answer, or block the event loop between runs.
    """
    _deferred: dict[str, str] = field(default_factory=dict[str, str], init=False)
    """Runs to reflect on, by session."""
    _reflections: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"], init=False)
    """Reflections in progress."""
    _is_notified: bool = field(default=False, init=False)
    """Whether the user was notified that only rules learn."""

    def last_run(self, session: str) -> str:
        """Return the last run that the user started in a session. Raises UsageError if there is none."""
        starts = starts_of(self.services.journal.chunks(session))
        if not starts:
            raise UsageError(Failure(kind="not_found", message=text("runs.nothing_done")))
        return starts[-1].run

    def record(self, session: str, events: Sequence[Event], run: str = "") -> None:
        """Add events to the active run, else to `run`, else to the last run of a session.

        Raises UsageError if a run is active in another process.
        """
        live = next((each for each in self.live.values() if each.log.session == session), None)
        if live is not None:
            live.record(*events)
        else:
            add_to_record(self.services, session, run or self.last_run(session), *events)
        if any(isinstance(each, Review | Restored) for each in events):
            self.learn(session)

    def begin_run(self, run: str, session: str) -> None:
        """Record a starting run as pending, so that another process learns from it if this one is killed."""
        if self.services.pending_learning is not None:
            try:
                self.services.pending_learning.add(run, session)
            except DaikuError:  # it is learnt from by this process
                logger.warning("run %s is not noted as one to learn from", run, exc_info=True)

    async def catch_up(self) -> None:
        """Learn from pending runs of ended processes."""
        pending = self.services.pending_learning
        if pending is None:
            return
        from daiku.playbook.unlearnt import find_left_sessions  # when used

        try:
            sessions = await asyncio.to_thread(find_left_sessions, self.services.journal, pending)
        except DaikuError:
            logger.warning("what runs of ended processes taught was not learnt", exc_info=True)
            return
        for session in sessions:
            self.learn(session)
        for session, run in await asyncio.to_thread(self._list_left_reflections):
            self._start_reflection(session, run)

    def _list_left_reflections(self) -> tuple[tuple[str, str], ...]:
        """Return the newest sessions that are pending for a reflection, each with its last run."""
        pending = self.services.pending_reflections
        if pending is None or not self._reflects:
            return ()
        from daiku.playbook.unlearnt import find_left_sessions  # when used

        try:
            sessions = find_left_sessions(self.services.journal, pending)[:MOST_REFLECTIONS]
            return tuple((session, self.last_run(session)) for session in sessions)
        except DaikuError:
            logger.warning("no model looks at the runs of ended processes", exc_info=True)
            return ()

    @property
    def _reflects(self) -> bool:
        return bool(self.services.config.playbook.reflections and self.services.roots)

    def learn(self, session: str, run: str = "") -> None:
        """Schedule learning from a session. `run`: a run that just ended, to reflect on."""
        if self.services.learning is None:
            return
        self._waiting[session] = run or self._waiting.get(session, "")
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work(self.services.learning))

    async def settle(self, *, reflections: bool = True) -> None:
        """Wait for learning, for a limited time. `reflections`: wait for reflections too."""
        timeout = SETTLE_SECONDS + (self.services.config.playbook.reflection_seconds if reflections else 0)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while tasks := self._running_tasks(reflections=reflections):
                    await asyncio.wait(tasks)

    async def stop(self) -> None:
        """Cancel reflections, and wait for learning by rules. Called at the end of the program."""
        self._waiting = dict.fromkeys(self._waiting, "")
        self.defers_reflections = True
        for reflection in self._reflections:
            reflection.cancel()
        if tasks := self._reflections | self._running_tasks(reflections=False):
            await asyncio.wait(tasks, timeout=SETTLE_SECONDS)

    def _running_tasks(self, *, reflections: bool) -> set[asyncio.Task[None]]:
        if reflections and (self._task is None or self._task.done()):
            self._start_reflections()
        tasks = {self._task, *(self._reflections if reflections else ())}
        return {task for task in tasks if task is not None and not task.done()}

    async def _work(self, learning: Callable[[str], Sequence[Bullet]]) -> None:
        while self._waiting:
            session = next(iter(self._waiting))
            run = self._waiting.pop(session)
            try:
                self._record_news(session, await asyncio.to_thread(learning, session))
                if self.services.pending_learning is not None:
                    self.services.pending_learning.remove_session(session, besides=self.live)
            except Exception:  # a damaged playbook must not fail a run
                logger.exception("not everything was learnt from session %s", session)
            if run and self._reflects:
                self._deferred[session] = run
                await self._record_reflection(session, run)
        if not self.defers_reflections:
            self._start_reflections()

    async def _record_reflection(self, session: str, run: str) -> None:
        """Record a run as pending for a reflection, so that another process can do it."""
        from daiku.playbook.reflecting import Reflections  # when used

        try:
            is_needed = await Reflections(self.services, self.live).needs_reflection(session, run)
            if is_needed and self.services.pending_reflections is not None:
                self.services.pending_reflections.add(run, session)
        except DaikuError:
            logger.warning("run %s is not noted as one to look at", run, exc_info=True)

    def _start_reflections(self) -> None:
        while self._deferred:
            self._start_reflection(*self._deferred.popitem())

    def _start_reflection(self, session: str, run: str) -> None:
        task = asyncio.create_task(self._reflect_on(session, run))
        self._reflections.add(task)
        task.add_done_callback(self._reflections.discard)

    async def _reflect_on(self, session: str, run: str) -> None:
        """Reflect on an ended run, and learn from the result."""
        from daiku.playbook.reflecting import Reflections  # when used

        try:
            result = await Reflections(self.services, self.live).reflect_on(session, run)
            if result.failure is not None and not self._is_notified:
                self._is_notified = True
                why = text("playbook.rules_only", why=result.failure.message)
                self.record(session, (Notice(level="info", text=why),), run)
        except Exception:  # as above
            logger.exception("no model looked at run %s", run)
            return
        finally:
            self._finish_reflection(session)
        if result.recorded:
            self.learn(session)

    def _finish_reflection(self, session: str) -> None:
        """Remove the session's pending reflections, unless this process is ending."""
        task = asyncio.current_task()
        if self.services.pending_reflections is None or (task is not None and task.cancelling()):
            return
        try:
            self.services.pending_reflections.remove_session(session)
        except DaikuError:
            logger.warning("session %s stays noted as one to look at", session, exc_info=True)

    def _record_news(self, session: str, news: Sequence[Bullet]) -> None:
        """Record news in a session; keep them if another process holds the session."""
        pending_news = (*self._unrecorded.pop(session, ()), *news)
        try:
            if pending_news:
                self.record(session, pending_news)
        except UsageError as busy:
            if busy.failure.kind != "busy":
                raise
            self._unrecorded[session] = pending_news


def with_learning(
    services: RunServices, stores: Stores, redact: Callable[[str], str], *, outside: Callable[[], bool]
) -> RunServices:
    """Return the services with learning, if the workspace is trusted and learning is on."""
    config, roots = services.config, services.roots
    learning = build_learner(config, roots, stores, redact, outside=outside) if services.trusted else None
    pending_learning = learning and PendingRuns(stores.database, services.workspace_key)
    pending_reflections = learning and PendingRuns(stores.database, services.workspace_key, REFLECTION_TABLE)
    return replace(
        services,
        learning=learning,
        pending_learning=pending_learning,
        pending_reflections=pending_reflections,
        redact=redact,
    )


def build_learner(
    config: Config,
    roots: tuple[Path, ...],
    stores: Stores,
    redact: Callable[[str], str],
    *,
    outside: Callable[[], bool],
) -> Callable[[str], Sequence[Bullet]] | None:
    """Return a function that learns from a session; None if learning is off or nothing is stored.

    `outside`: returns True if runs may have read unrecorded text from outside.
    """
    settings = config.playbook
    if not settings.enabled or settings.learn == "off" or not stores.lasting:
        return None

    @cache
    def learning() -> Learning:
        from daiku.playbook.learning import Learning, allows_unasked  # when used
        from daiku.playbook.repository import open_playbooks  # when used

        playbooks = open_playbooks(stores.database, roots)
        allows = partial(allows_unasked, config.approvals)
        return Learning(settings.learn, stores.journal, stores.database, playbooks, redact, outside, allows)

    def learn(session: str) -> Sequence[Bullet]:
        chunks = stores.journal.chunks(session)
        return learning().learn_from_session(chunks) if may_teach(chunks) else ()

    return learn


def may_teach(chunks: Sequence[Chunk]) -> bool:
    """Return True if a session has a received lesson, a failed command, a correction, or a second request."""
    ended = False
    for chunk in chunks:
        match chunk.event:
            case RunStarted(lessons=lessons) if lessons or (ended and chunk.parent is None):
                return True
            case ToolResponse(tool="shell/run", ok=False) | Reflected():
                return True
            case RunFinished() if chunk.parent is None:
                ended = True
            case _ if is_correction(chunk):
                return True
            case _:
                pass
    return False

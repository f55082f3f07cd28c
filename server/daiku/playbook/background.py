"""What is done with a session besides its runs: a person's actions are recorded, and runs that have ended are learnt from."""

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
from daiku.domain.events import (
    ApprovalGiven,
    Event,
    MessageEvent,
    Notice,
    Restored,
    Review,
    RunFinished,
    RunStarted,
    ToolResponse,
)
from daiku.domain.held import Bullet, Reflected
from daiku.playbook.unlearnt import PENDING_LOOKS, Unlearnt
from daiku.run.live import LiveRun
from daiku.run.recorded.history import starts_of
from daiku.run.recorded.stored_run import add_to_record
from daiku.run.rules.state.state import PERSON
from daiku.run.services import RunServices
from daiku.texts.text import text

if TYPE_CHECKING:
    from pathlib import Path

    from daiku.playbook.learning import Learning
    from daiku.settings.config import Config
    from daiku.trace.stores import Stores

logger = logging.getLogger(__name__)

CAUGHT_UP_LOOKS = 3
"""Sessions of ended processes that a model looks at, at most, when a process starts."""
SETTLE_SECONDS = 10.0
"""How long the end of a program waits for what is still being learnt."""


@dataclass(slots=True)
class Afterwards:
    """Writes to the sessions of a workspace, where runs may be under way, and learns from them one after the other.
    Nobody waits for what is learnt, and no run fails by it."""

    services: RunServices
    live: Mapping[str, LiveRun]
    """The runs of this process, by id."""
    _waiting: dict[str, str] = field(default_factory=dict[str, str], init=False)
    """The sessions to learn from, each with the run that a model is to look at; empty where none is."""
    _untold: dict[str, tuple[Bullet, ...]] = field(default_factory=dict[str, tuple[Bullet, ...]], init=False)
    """News that could not be written while a run was beginning; they are told after it."""
    _task: asyncio.Task[None] | None = field(default=None, init=False)
    holds_looks: bool = field(default=False, init=False)
    """Whether runs of this process are left to the next process to be looked at, unless `settle` waits for that: for
    programs that end with the answer, or block the event loop between runs."""
    _held: dict[str, str] = field(default_factory=dict[str, str], init=False)
    """Runs that a model is to look at, by their sessions."""
    _looks: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"], init=False)
    """Models that look at runs."""
    _told: bool = field(default=False, init=False)
    """Whether the person was told that lessons come by rules alone."""

    def last_run(self, session: str) -> str:
        """The session's last run that the person started. Raises UsageError where there is none."""
        starts = starts_of(self.services.journal.chunks(session))
        if not starts:
            raise UsageError(Failure(kind="not_found", message=text("runs.nothing_done")))
        return starts[-1].run

    def record(self, session: str, events: Sequence[Event], run: str = "") -> None:
        """Add events to the run in progress, or to `run`, or to the last one. Raises UsageError: a run is in progress in
        another process."""
        live = next((each for each in self.live.values() if each.log.session == session), None)
        if live is not None:
            live.record(*events)
        else:
            add_to_record(self.services, session, run or self.last_run(session), *events)
        if any(isinstance(each, Review | Restored) for each in events):
            self.learn(session)

    def begins(self, run: str, session: str) -> None:
        """A run begins: if this process is killed before it was learnt from, another one learns from it."""
        if self.services.unlearnt is not None:
            try:
                self.services.unlearnt.begins(run, session)
            except DaikuError:  # it is learnt from by this process
                logger.warning("run %s is not noted as one to learn from", run, exc_info=True)

    async def catch_up(self) -> None:
        """Learn from runs of this folder that other processes left behind."""
        unlearnt = self.services.unlearnt
        if unlearnt is None:
            return
        from daiku.playbook.unlearnt import left_behind  # when used

        try:
            sessions = await asyncio.to_thread(left_behind, self.services.journal, unlearnt)
        except DaikuError:
            logger.warning("what runs of ended processes taught was not learnt", exc_info=True)
            return
        for session in sessions:
            self.learn(session)
        for session, run in await asyncio.to_thread(self._left_looks):
            self._begin_look(session, run)

    def _left_looks(self) -> tuple[tuple[str, str], ...]:
        """Return the sessions that other processes left to be looked at, each with its last run; the newest few."""
        pending = self.services.pending_looks
        if pending is None or not self._looks_at_runs:
            return ()
        from daiku.playbook.unlearnt import left_behind  # when used

        try:
            sessions = left_behind(self.services.journal, pending)[:CAUGHT_UP_LOOKS]
            return tuple((session, self.last_run(session)) for session in sessions)
        except DaikuError:
            logger.warning("no model looks at the runs of ended processes", exc_info=True)
            return ()

    @property
    def _looks_at_runs(self) -> bool:
        return bool(self.services.config.playbook.reflections and self.services.roots)

    def learn(self, session: str, run: str = "") -> None:
        """Learn from the session, as soon as what is under way now is done. `run` has just ended: a model may look at it
        too."""
        if self.services.learning is None:
            return
        self._waiting[session] = run or self._waiting.get(session, "")
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work(self.services.learning))

    async def settle(self, *, looks: bool = True) -> None:
        """Wait until nothing is left to learn, for a while. `looks`: also for models that look at runs, which they may no
        longer than the settings say."""
        most = SETTLE_SECONDS + (self.services.config.playbook.reflection_seconds if looks else 0)
        with suppress(TimeoutError):
            async with asyncio.timeout(most):
                while under_way := self._under_way(looks=looks):
                    await asyncio.wait(under_way)

    async def stop(self) -> None:
        """The program ends: models that look at a run are left, and what rules learn is waited for."""
        self._waiting = dict.fromkeys(self._waiting, "")
        self.holds_looks = True
        for look in self._looks:
            look.cancel()
        if under_way := self._looks | self._under_way(looks=False):
            await asyncio.wait(under_way, timeout=SETTLE_SECONDS)

    def _under_way(self, *, looks: bool) -> set[asyncio.Task[None]]:
        if looks and (self._task is None or self._task.done()):
            self._begin_looks()
        tasks = {self._task, *(self._looks if looks else ())}
        return {task for task in tasks if task is not None and not task.done()}

    async def _work(self, learning: Callable[[str], Sequence[Bullet]]) -> None:
        while self._waiting:
            session = next(iter(self._waiting))
            run = self._waiting.pop(session)
            try:
                self._tell(session, await asyncio.to_thread(learning, session))
                if self.services.unlearnt is not None:
                    self.services.unlearnt.learnt(session, besides=self.live)
            except Exception:  # whatever is wrong with a playbook, the runs stand
                logger.exception("not everything was learnt from session %s", session)
            if run and self._looks_at_runs:
                self._held[session] = run
                await self._note_look(session, run)
        if not self.holds_looks:
            self._begin_looks()

    async def _note_look(self, session: str, run: str) -> None:
        """Note that a model is to look at the run: if this process ends before, another one does it."""
        from daiku.playbook.reflecting import Reflecting  # when used

        try:
            wanted = await Reflecting(self.services, self.live).wants(session, run)
            if wanted and self.services.pending_looks is not None:
                self.services.pending_looks.begins(run, session)
        except DaikuError:
            logger.warning("run %s is not noted as one to look at", run, exc_info=True)

    def _begin_looks(self) -> None:
        while self._held:
            self._begin_look(*self._held.popitem())

    def _begin_look(self, session: str, run: str) -> None:
        look = asyncio.create_task(self._look_at(session, run))
        self._looks.add(look)
        look.add_done_callback(self._looks.discard)

    async def _look_at(self, session: str, run: str) -> None:
        """Have a model look at a run that has ended, and learn from what it saw."""
        from daiku.playbook.reflecting import Reflecting  # when used

        try:
            found = await Reflecting(self.services, self.live).after(session, run)
            if found.failure is not None and not self._told:
                self._told = True
                why = text("playbook.rules_only", why=found.failure.message)
                self.record(session, (Notice(level="info", text=why),), run)
        except Exception:  # as above
            logger.exception("no model looked at run %s", run)
            return
        finally:
            self._looked(session)
        if found.recorded:
            self.learn(session)

    def _looked(self, session: str) -> None:
        """Note that no model has to look at the session's runs, unless this process is ending."""
        task = asyncio.current_task()
        if self.services.pending_looks is None or (task is not None and task.cancelling()):
            return
        try:
            self.services.pending_looks.learnt(session)
        except DaikuError:
            logger.warning("session %s stays noted as one to look at", session, exc_info=True)

    def _tell(self, session: str, news: Sequence[Bullet]) -> None:
        known = (*self._untold.pop(session, ()), *news)
        try:
            if known:
                self.record(session, known)
        except UsageError as busy:
            if busy.failure.kind != "busy":
                raise
            self._untold[session] = known


def with_learning(
    services: RunServices, stores: Stores, redact: Callable[[str], str], *, outside: Callable[[], bool]
) -> RunServices:
    """The services of runs that are learnt from, where anything is: not where the person does not trust the workspace."""
    config, roots = services.config, services.roots
    learning = learning_of(config, roots, stores, redact, outside=outside) if services.trusted else None
    unlearnt = learning and Unlearnt(stores.database, services.workspace_key)
    looks = learning and Unlearnt(stores.database, services.workspace_key, PENDING_LOOKS)
    return replace(services, learning=learning, unlearnt=unlearnt, pending_looks=looks, redact=redact)


def learning_of(
    config: Config,
    roots: tuple[Path, ...],
    stores: Stores,
    redact: Callable[[str], str],
    *,
    outside: Callable[[], bool],
) -> Callable[[str], Sequence[Bullet]] | None:
    """What is called with a session whose runs are to be learnt from; None where the settings say that nothing is learnt,
    and where nothing is kept. `outside`: whether what they read may come from elsewhere without a trace of it."""
    settings = config.playbook
    if not settings.enabled or settings.learn == "off" or not stores.lasting:
        return None

    @cache
    def learning() -> Learning:
        from daiku.playbook.learning import Learning  # when used
        from daiku.playbook.repository import open_playbooks  # when used
        from daiku.playbook.rules.lessons.automatic import allows_unasked  # when used

        playbooks = open_playbooks(stores.database, roots)
        allows = partial(allows_unasked, config.approvals)
        return Learning(settings.learn, stores.journal, stores.database, playbooks, redact, outside, allows)

    def learn(session: str) -> Sequence[Bullet]:
        chunks = stores.journal.chunks(session)
        return learning().after(chunks) if may_teach(chunks) else ()

    return learn


def may_teach(chunks: Sequence[Chunk]) -> bool:
    """Whether there is anything to learn from in a session: a run was told a lesson, a command failed, a person said
    something besides the first request, refused something, or took changes back."""
    ended = False
    for chunk in chunks:
        match chunk.event:
            case RunStarted(lessons=lessons) if lessons or (ended and chunk.parent is None):
                return True
            case (
                ToolResponse(tool="shell/run", ok=False)
                | Restored()
                | Review(decision="reject")
                | Reflected()
            ):
                return True
            case MessageEvent(role="user", agent=agent) if agent == PERSON:
                return True
            case ApprovalGiven(unattended=False) as given if given.feedback or given.decision.startswith(
                "reject"
            ):
                return True
            case RunFinished() if chunk.parent is None:
                ended = True
            case _:
                pass
    return False

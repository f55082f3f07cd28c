"""Waiting for the person's answers, until a pause; and which questions are still open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

from daiku.dataclass import dataclass, field
from daiku.domain.chunks import Chunk
from daiku.domain.events import ApprovalAsked, ApprovalGiven, InputAsked, InputGiven
from daiku.run.rules.state.state import State
from daiku.texts.text import text

T = TypeVar("T")

NOBODY = text("run.nobody_approves")
NOBODY_ANSWERS = text("run.nobody_answers")


class Paused(BaseException):  # control flow: no place that catches what goes wrong may catch this
    """Ends a wait for a person, and the calls around it, because the run is to pause."""


@dataclass(slots=True)
class Waits(Generic[T]):
    """Questions by their ids, each with its answer to come."""

    _open: dict[str, asyncio.Future[T]] = field(default_factory=dict[str, "asyncio.Future[T]"])
    _paused: bool = False

    async def answer(self, key: str) -> T:
        """Return the answer to question `key`. Raises Paused, also where the pause came before the question."""
        if self._paused:
            raise Paused
        future = self._open[key] = asyncio.get_running_loop().create_future()
        try:
            return await future
        except asyncio.CancelledError:
            if self._paused:  # the pause came first: the question stays open on record
                raise Paused from None
            raise
        finally:
            del self._open[key]

    @property
    def any(self) -> bool:
        """Whether any task waits for an answer."""
        return bool(self._open)

    def give(self, key: str, answer: T) -> None:
        """Deliver `answer` to the task that waits for `key`, if any."""
        future = self._open.get(key)
        if future is not None and not future.done():
            future.set_result(answer)

    def pause(self) -> None:
        """End every wait."""
        self._paused = True
        for future in self._open.values():
            if not future.done():
                future.set_exception(Paused())


@dataclass(slots=True)
class PersonWaits:
    """A run's questions to the person, answered at once unless `attended`. `waiting` is entered while one is open."""

    attended: bool
    waiting: Callable[[], AbstractContextManager[None]]
    _approvals: Waits[ApprovalGiven] = field(default_factory=Waits[ApprovalGiven])
    _inputs: Waits[InputGiven] = field(default_factory=Waits[InputGiven])

    async def approval(self, asked: ApprovalAsked) -> ApprovalGiven:
        """The person's decision. Raises Paused."""
        if not self.attended:
            return ApprovalGiven(
                approval_id=asked.approval_id, decision="reject_once", feedback=NOBODY, unattended=True
            )
        with self.waiting():
            return await self._approvals.answer(asked.approval_id)

    async def answer(self, asked: InputAsked) -> InputGiven:
        """What the person said. Raises Paused."""
        if not self.attended:
            return InputGiven(input_id=asked.input_id, text=NOBODY_ANSWERS, unattended=True)
        with self.waiting():
            return await self._inputs.answer(asked.input_id)

    def give(self, event: ApprovalGiven | InputGiven) -> None:
        """Deliver the person's answer to the task that waits for it, if any."""
        if isinstance(event, ApprovalGiven):
            self._approvals.give(event.approval_id, event)
        else:
            self._inputs.give(event.input_id, event)

    def pause(self) -> None:
        """End every wait."""
        self._approvals.pause()
        self._inputs.pause()

    @property
    def any(self) -> bool:
        """Whether any question to the person is open."""
        return self._approvals.any or self._inputs.any


def may_be_asked(state: State) -> bool:
    """Whether a run may wait for the person: for a pending call, or a question of an MCP server itself."""
    edges = (asked for asked in state.questions.approvals.values() if asked.from_server)
    return bool(state.calls.pending) or any(
        asked.approval_id not in state.questions.decisions for asked in edges
    )


def still_asked(state: State, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield those of a run's `chunks` that ask a question which is not answered yet."""
    open_ids = {call.id for call in state.calls.pending}
    for chunk in chunks:
        match chunk.event:
            case ApprovalAsked(approval_id=key, call_id=call) if key not in state.questions.decisions:
                wanted = state.questions.approvals.get(call)
                if (call in open_ids or chunk.event.from_server) and wanted == chunk.event:
                    yield chunk
            case InputAsked(input_id=key, call_id=call) if key not in state.questions.answers:
                if call in open_ids:
                    yield chunk
            case _:
                pass

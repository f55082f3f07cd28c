"""Questions to the user: waits that a pause ends, and the questions that are still open."""

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


class Paused(BaseException):  # control flow: `except Exception` must not catch it
    """Ends a wait for the user, and the calls around it, because the run pauses."""


@dataclass(slots=True)
class Waits(Generic[T]):
    """Open questions by id, each with a future for its answer."""

    _open: dict[str, asyncio.Future[T]] = field(default_factory=dict[str, "asyncio.Future[T]"])
    _paused: bool = False

    async def answer(self, key: str) -> T:
        """Return the answer to question `key`. Raises Paused, also if the run is already paused."""
        if self._paused:
            raise Paused
        future = self._open[key] = asyncio.get_running_loop().create_future()
        try:
            return await future
        except asyncio.CancelledError:
            if self._paused:  # the question stays open in the journal
                raise Paused from None
            raise
        finally:
            del self._open[key]

    @property
    def is_open(self) -> bool:
        """True if a task waits for an answer."""
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
    """A run's questions to the user; unless `attended`, they are refused immediately.

    `waiting` is entered while a question is open.
    """

    attended: bool
    waiting: Callable[[], AbstractContextManager[None]]
    _approvals: Waits[ApprovalGiven] = field(default_factory=Waits[ApprovalGiven])
    _inputs: Waits[InputGiven] = field(default_factory=Waits[InputGiven])

    async def approval(self, question: ApprovalAsked) -> ApprovalGiven:
        """Wait for the user's decision. Raises Paused."""
        if not self.attended:
            return ApprovalGiven(
                approval_id=question.approval_id, decision="reject_once", feedback=NOBODY, unattended=True
            )
        with self.waiting():
            return await self._approvals.answer(question.approval_id)

    async def answer(self, question: InputAsked) -> InputGiven:
        """Wait for the user's answer. Raises Paused."""
        if not self.attended:
            return InputGiven(input_id=question.input_id, text=NOBODY_ANSWERS, unattended=True)
        with self.waiting():
            return await self._inputs.answer(question.input_id)

    def give(self, event: ApprovalGiven | InputGiven) -> None:
        """Deliver the user's answer to the task that waits for it, if any."""
        if isinstance(event, ApprovalGiven):
            self._approvals.give(event.approval_id, event)
        else:
            self._inputs.give(event.input_id, event)

    def pause(self) -> None:
        """End every wait."""
        self._approvals.pause()
        self._inputs.pause()

    @property
    def is_open(self) -> bool:
        """True if a question to the user is open."""
        return self._approvals.is_open or self._inputs.is_open


def can_ask_user(state: State) -> bool:
    """Return True if the run has a pending call, or an open question of an MCP server."""
    from_servers = (asked for asked in state.questions.approvals.values() if asked.from_server)
    return bool(state.calls.pending) or any(
        asked.approval_id not in state.questions.decisions for asked in from_servers
    )


def open_questions(state: State, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield those `chunks` of a run that ask a question without an answer."""
    open_ids = {call.id for call in state.calls.pending}
    for chunk in chunks:
        match chunk.event:
            case ApprovalAsked(approval_id=key, call_id=call) if key not in state.questions.decisions:
                current = state.questions.approvals.get(call)
                if (call in open_ids or chunk.event.from_server) and current == chunk.event:
                    yield chunk
            case InputAsked(input_id=key, call_id=call) if key not in state.questions.answers:
                if call in open_ids:
                    yield chunk
            case _:
                pass

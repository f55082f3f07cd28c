"""Open questions of a run that a front asks the user, each in a task that ends when it is answered elsewhere."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any

from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError
from daiku.domain.events import ApprovalAsked, ApprovalGiven, InputAsked, InputGiven

log = logging.getLogger(__name__)


class OpenQuestions(ABC):
    """Calls `approve` or `answer` for each question in the run's chunks."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @abstractmethod
    async def approve(self, run: str, approval: ApprovalAsked) -> None:
        """Ask for an approval and `deliver` the decision."""

    @abstractmethod
    async def answer(self, run: str, question: InputAsked) -> None:
        """Ask a question and `deliver` the answer."""

    def hear(self, chunk: Chunk) -> None:
        """Start the task of a question, or cancel that of an answered one."""
        match chunk.event:
            case ApprovalAsked() as request:
                self._start(request.approval_id, self.approve(chunk.run, request))
            case InputAsked() as request:
                self._start(request.input_id, self.answer(chunk.run, request))
            case ApprovalGiven(approval_id=key) | InputGiven(input_id=key):
                self._drop(key)
            case _:
                pass

    def close(self) -> None:
        """Cancel all open questions."""
        for key in tuple(self._tasks):
            self._drop(key)

    async def deliver(self, answer: Coroutine[Any, Any, None]) -> None:
        """Await the call that answers the run; log a failure (already answered, or the run has ended)."""
        try:
            await answer
        except DaikuError as error:
            log.info("%s", error.failure.message)

    def _start(self, key: str, work: Coroutine[Any, Any, None]) -> None:
        self._drop(key)
        self._tasks[key] = asyncio.ensure_future(work)

    def _drop(self, key: str) -> None:
        task = self._tasks.pop(key, None)
        # The task that delivers the answer ends on its own.
        if task is not None and task is not asyncio.current_task():
            task.cancel()

"""The open questions of a run, as a front puts them: each in a task, ended when it is answered elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from daiku.dataclass import dataclass, field
from daiku.domain.chunks import Chunk
from daiku.domain.events import ApprovalAsked, ApprovalGiven, InputAsked, InputGiven

Approve: TypeAlias = Callable[[str, ApprovalAsked], Coroutine[Any, Any, None]]
Answer: TypeAlias = Callable[[str, InputAsked], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class OpenQuestions:
    """Starts `approve` and `answer`, with the run and what it asked, for each question that a run's chunks bring."""

    approve: Approve
    answer: Answer
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, asyncio.Task[None]])

    def hear(self, chunk: Chunk) -> None:
        """Put the question of a chunk, or take one back that was answered."""
        match chunk.event:
            case ApprovalAsked() as asked:
                self._start(asked.approval_id, self.approve(chunk.run, asked))
            case InputAsked() as asked:
                self._start(asked.input_id, self.answer(chunk.run, asked))
            case ApprovalGiven(approval_id=key) | InputGiven(input_id=key):
                self._drop(key)
            case _:
                pass

    def close(self) -> None:
        """Take back all open questions."""
        for key in tuple(self._tasks):
            self._drop(key)

    def _start(self, key: str, work: Coroutine[Any, Any, None]) -> None:
        self._drop(key)
        self._tasks[key] = asyncio.ensure_future(work)

    def _drop(self, key: str) -> None:
        task = self._tasks.pop(key, None)
        # What answered itself ends by itself.
        if task is not None and task is not asyncio.current_task():
            task.cancel()

"""Questions of a run to a person whose editor knows nothing of Daiku: message boxes with buttons."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError
from daiku.domain.events import ApprovalAsked, ApprovalDecision, ApprovalGiven, InputAsked, InputGiven
from daiku.lsp.opening import Json
from daiku.lsp.wire.protocol import Protocol
from daiku.lsp.wire.refused import Refused
from daiku.runs import Runs
from daiku.texts.editor import Texts, shortened

log = logging.getLogger(__name__)

PREVIEW = 2000
WARNING, INFO = 2, 3


class MessageBoxes:
    """Shows what a run asks, hands on the answers. One per run; `close` takes open questions away."""

    def __init__(self, protocol: Protocol, runs: Runs, words: Texts) -> None:
        self._protocol = protocol
        self._runs = runs
        self._words = words
        self._open: dict[str, asyncio.Task[None]] = {}

    def hear(self, chunk: Chunk) -> None:
        """Listen to the run's chunks."""
        match chunk.event:
            case ApprovalAsked() as asked:
                self._start(asked.approval_id, self._approve(chunk.run, asked))
            case InputAsked() as asked:
                self._start(asked.input_id, self._answer(chunk.run, asked))
            case ApprovalGiven(approval_id=key) | InputGiven(input_id=key):
                self._drop(key)
            case _:
                pass

    def close(self) -> None:
        """Nothing is asked any more."""
        for key in tuple(self._open):
            self._drop(key)

    def _start(self, key: str, work: Coroutine[Any, Any, None]) -> None:
        self._drop(key)
        self._open[key] = asyncio.ensure_future(work)

    def _drop(self, key: str) -> None:
        task = self._open.pop(key, None)
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    async def _approve(self, run: str, asked: ApprovalAsked) -> None:
        words = self._words
        buttons: dict[str, ApprovalDecision] = {words.allow: "allow_once"}
        if asked.remember:
            buttons[f"{words.always}: {shortened(asked.remember, 60, words)}"] = "allow_always"
        buttons[words.reject] = "reject_once"
        parts = (words.ask[asked.kind], asked.why, shortened(asked.preview, PREVIEW, words))
        text = "\n".join(part for part in parts if part)
        chosen = await self._box(WARNING, text, tuple(buttons))
        await self._hand_on(self._runs.approve(run, asked.approval_id, buttons.get(chosen, "reject_once")))

    async def _answer(self, run: str, asked: InputAsked) -> None:
        words = self._words
        chosen = await self._box(INFO, asked.question, (*asked.choices, words.no_answer))
        text = chosen if chosen in asked.choices else words.nobody_answered
        await self._hand_on(self._runs.answer(run, asked.input_id, text))

    async def _box(self, kind: int, text: str, buttons: tuple[str, ...]) -> str:
        """The title of the button that was pressed; empty where none was."""
        params = {"type": kind, "message": text, "actions": [{"title": b} for b in buttons]}
        try:
            chosen: Json = await self._protocol.ask("window/showMessageRequest", params)
        except Refused as error:
            log.warning("the editor cannot ask: %s", error.message)
            return ""
        title = chosen.get("title") if isinstance(chosen, dict) else None
        return title if isinstance(title, str) else ""

    async def _hand_on(self, answer: Coroutine[Any, Any, None]) -> None:
        try:
            await answer
        except DaikuError as error:
            # Answered elsewhere meanwhile, or the run has ended.
            log.info("%s", error.failure.message)

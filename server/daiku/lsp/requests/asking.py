"""Questions of a run to a person whose editor knows nothing of Daiku: message boxes with buttons."""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Mapping
from typing import Any

from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError
from daiku.domain.events import ApprovalAsked, ApprovalDecision, ApprovalKind, InputAsked
from daiku.lsp.initialize import Json
from daiku.lsp.wire.protocol import Protocol
from daiku.lsp.wire.refused import Refused
from daiku.sdk.fronts import Runs
from daiku.sdk.questions import OpenQuestions
from daiku.texts.text import render, shortened, text

log = logging.getLogger(__name__)

PREVIEW = 2000
WARNING, INFO = 2, 3
_ASKS: Mapping[ApprovalKind, str] = {
    "edit": "box.ask_edit",
    "command": "box.ask_command",
    "network": "box.ask_network",
    "mcp": "box.ask_mcp",
    "plan": "box.ask_plan",
    "read": "box.ask_read",
    "memory": "box.ask_memory",
}


class MessageBoxes:
    """Shows what a run asks, hands on the answers. One per run; `close` takes open questions away."""

    def __init__(self, protocol: Protocol, runs: Runs, language: str) -> None:
        self._protocol = protocol
        self._runs = runs
        self._language = language
        self._open = OpenQuestions(self._approve, self._answer)

    def hear(self, chunk: Chunk) -> None:
        """Handle one chunk of the run: open or close message boxes."""
        self._open.hear(chunk)

    def close(self) -> None:
        """Close all open message boxes."""
        self._open.close()

    async def _approve(self, run: str, asked: ApprovalAsked) -> None:
        buttons: dict[str, ApprovalDecision] = {self._said("box.allow"): "allow_once"}
        if asked.remember:
            remember = shortened(asked.remember, 60, self._language)
            buttons[f"{self._said('box.always')}: {remember}"] = "allow_always"
        buttons[self._said("box.reject")] = "reject_once"
        preview = shortened(asked.preview, PREVIEW, self._language)
        parts = (self._said(_ASKS[asked.kind]), asked.why, preview)
        chosen = await self._box(WARNING, "\n".join(part for part in parts if part), tuple(buttons))
        await self._hand_on(self._runs.approve(run, asked.approval_id, buttons.get(chosen, "reject_once")))

    async def _answer(self, run: str, asked: InputAsked) -> None:
        chosen = await self._box(INFO, asked.question, (*asked.choices, self._said("box.no_answer")))
        said = chosen if chosen in asked.choices else str(text("box.nobody_answered"))
        await self._hand_on(self._runs.answer(run, asked.input_id, said))

    def _said(self, key: str) -> str:
        return render(text(key), self._language)

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

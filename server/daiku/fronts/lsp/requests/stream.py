"""Display of a run in the client: chunks as partial results, a progress bar, message boxes for questions."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping

from daiku.domain.chunks import Chunk, encode_event
from daiku.domain.events import (
    ApprovalAsked,
    ApprovalDecision,
    ApprovalKind,
    Delta,
    Event,
    InputAsked,
    RunStarted,
    Thinking,
    ToolCallEvent,
    ToolOutput,
)
from daiku.fronts.lsp.initialize import Json
from daiku.fronts.lsp.wire.frames import frame
from daiku.fronts.lsp.wire.jsontext import MessageId
from daiku.fronts.lsp.wire.pipes import OutputQueue
from daiku.fronts.lsp.wire.protocol import Protocol
from daiku.fronts.lsp.wire.refused import RpcError
from daiku.library.fronts import Runs
from daiku.library.questions import OpenQuestions
from daiku.texts.text import render, shortened, text

log = logging.getLogger(__name__)


HOLD_SECONDS = 0.015
"""Seconds for which deltas are buffered while the pipe is busy."""
FULL = 1024 * 1024
"""Bytes of unsent output above which deltas are buffered for longer than HOLD_SECONDS."""


class ChunkStream:
    """Writes chunks as `$/progress` on one token; while the pipe is busy, deltas are buffered and merged."""

    def __init__(self, outlet: OutputQueue, token: MessageId) -> None:
        self._outlet = outlet
        self._head = (
            f'{{"jsonrpc":"2.0","method":"$/progress","params":{{"token":{json.dumps(token)},"value":'
        )
        self._held: list[Chunk] = []
        self._timer: asyncio.TimerHandle | None = None

    def send(self, chunk: Chunk) -> None:
        """Send `chunk` after all earlier chunks."""
        event = chunk.event
        if isinstance(event, Delta | Thinking | ToolOutput) and self._outlet.busy:
            if self._held and not _can_merge(self._held[-1], chunk):
                self.flush()
            self._held.append(chunk)
            if self._timer is None:
                self._wait()
            return
        if self._held:
            self.flush()
        self._write(chunk.json())

    def flush(self) -> None:
        """Send buffered chunks."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        pending, self._held = self._held, []
        if len(pending) == 1:
            self._write(pending[0].json())
        elif pending:
            self._write(_merge_deltas(pending))

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(HOLD_SECONDS, self._due)

    def _due(self) -> None:
        if self._outlet.pending > FULL and not self._outlet.closed:
            self._wait()
        else:
            self.flush()

    def _write(self, value: str) -> None:
        self._outlet.write(frame(f"{self._head}{value}}}}}".encode()))


class ProgressBar:
    """Work-done progress on a token of the client or of the server."""

    def __init__(self, protocol: Protocol, token: MessageId, language: str) -> None:
        self._protocol = protocol
        self._token = token
        self._language = language

    def begin(self, title: str) -> None:
        self._tell({"kind": "begin", "title": title, "cancellable": True})

    def show(self, event: Event) -> None:
        """Report what the run is doing if it has changed."""
        match event:
            case ToolCallEvent(tool=tool, args=args):
                what = next((v for v in args.values() if isinstance(v, str)), "")
                self._tell(
                    {
                        "kind": "report",
                        "message": f"{tool} {what.splitlines()[0][:80] if what else ''}".strip(),
                    }
                )
            case RunStarted():
                self._tell({"kind": "report", "message": render(text("box.thinking"), self._language)})
            case _:
                pass

    def end(self, message: str) -> None:
        self._tell({"kind": "end", "message": message})

    def _tell(self, value: dict[str, str | bool]) -> None:
        self._protocol.notify("$/progress", {"token": self._token, "value": value})


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


class MessageBoxes(OpenQuestions):
    """Asks the user with message boxes, for editors without support for Daiku. One instance per run."""

    def __init__(self, protocol: Protocol, runs: Runs, language: str) -> None:
        super().__init__()
        self._protocol = protocol
        self._runs = runs
        self._language = language

    async def approve(self, run: str, approval: ApprovalAsked) -> None:
        buttons: dict[str, ApprovalDecision] = {self._label("box.allow"): "allow_once"}
        if approval.remember:
            remember = shortened(approval.remember, 60, self._language)
            buttons[f"{self._label('box.always')}: {remember}"] = "allow_always"
        buttons[self._label("box.reject")] = "reject_once"
        preview = shortened(approval.preview, PREVIEW, self._language)
        parts = (self._label(_ASKS[approval.kind]), approval.why, preview)
        button = await self._show_box(WARNING, "\n".join(part for part in parts if part), tuple(buttons))
        await self.deliver(self._runs.approve(run, approval.approval_id, buttons.get(button, "reject_once")))

    async def answer(self, run: str, question: InputAsked) -> None:
        button = await self._show_box(
            INFO, question.question, (*question.choices, self._label("box.no_answer"))
        )
        answer = button if button in question.choices else str(text("box.nobody_answered"))
        await self.deliver(self._runs.answer(run, question.input_id, answer))

    def _label(self, key: str) -> str:
        return render(text(key), self._language)

    async def _show_box(self, kind: int, text: str, buttons: tuple[str, ...]) -> str:
        """Show a message box and return the title of the pressed button; empty if none was pressed."""
        params = {"type": kind, "message": text, "actions": [{"title": b} for b in buttons]}
        try:
            response: Json = await self._protocol.ask("window/showMessageRequest", params)
        except RpcError as error:
            log.warning("the editor cannot ask: %s", error.message)
            return ""
        title = response.get("title") if isinstance(response, dict) else None
        return title if isinstance(title, str) else ""


def fan_out(*listeners: Callable[[Chunk], None]) -> Callable[[Chunk], None]:
    """Combine listeners into one that calls each in order."""
    if len(listeners) == 1:
        return listeners[0]

    def listen(chunk: Chunk) -> None:
        for listener in listeners:
            listener(chunk)

    return listen


def _can_merge(one: Chunk, other: Chunk) -> bool:
    a, b = one.event, other.event
    same = type(a) is type(b) and one.run == other.run and one.agent == other.agent
    if isinstance(a, ToolOutput) and isinstance(b, ToolOutput):
        return same and a.id == b.id
    return same


def _merge_deltas(chunks: list[Chunk]) -> str:
    """Return one chunk for adjacent deltas, with the range of their numbers."""
    last = chunks[-1]
    text = "".join(c.event.text for c in chunks if isinstance(c.event, Delta | Thinking | ToolOutput))
    event = last.event.model_copy(update={"text": text})
    merged = last._replace(event=event, data=encode_event(event)).json()
    return f'{{"seqFrom":{chunks[0].seq},{merged[1:]}'

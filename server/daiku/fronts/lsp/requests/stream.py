"""A run as the client sees it: chunks as partial results, a progress bar, message boxes for questions."""

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
from daiku.fronts.lsp.wire.refused import Refused
from daiku.library.fronts import Runs
from daiku.library.questions import OpenQuestions
from daiku.texts.text import render, shortened, text

log = logging.getLogger(__name__)


HOLD_SECONDS = 0.015
FULL = 1024 * 1024
"""Bytes that a client may lag behind before deltas are held back for longer than HOLD_SECONDS."""


class ChunkStream:
    """Writes chunks as `$/progress` on one token; while the pipe is busy, deltas are held and merged."""

    def __init__(self, outlet: OutputQueue, token: MessageId) -> None:
        self._outlet = outlet
        self._head = (
            f'{{"jsonrpc":"2.0","method":"$/progress","params":{{"token":{json.dumps(token)},"value":'
        )
        self._held: list[Chunk] = []
        self._timer: asyncio.TimerHandle | None = None

    def send(self, chunk: Chunk) -> None:
        """Show `chunk`, after everything before it."""
        event = chunk.event
        if isinstance(event, Delta | Thinking | ToolOutput) and self._outlet.busy:
            if self._held and not _alike(self._held[-1], chunk):
                self.flush()
            self._held.append(chunk)
            if self._timer is None:
                self._wait()
            return
        if self._held:
            self.flush()
        self._write(chunk.json())

    def flush(self) -> None:
        """Write what was held back."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        held, self._held = self._held, []
        if len(held) == 1:
            self._write(held[0].json())
        elif held:
            self._write(_merged(held))

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
    """Work-done progress on a token of the client's, or on one that we make."""

    def __init__(self, protocol: Protocol, token: MessageId, language: str) -> None:
        self._protocol = protocol
        self._token = token
        self._language = language

    def begin(self, title: str) -> None:
        self._tell({"kind": "begin", "title": title, "cancellable": True})

    def show(self, event: Event) -> None:
        """Say what the run is doing, where it says something new."""
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
    """Asks the user of an editor that knows nothing of Daiku, by message boxes with buttons. One per run."""

    def __init__(self, protocol: Protocol, runs: Runs, language: str) -> None:
        super().__init__()
        self._protocol = protocol
        self._runs = runs
        self._language = language

    async def approve(self, run: str, asked: ApprovalAsked) -> None:
        buttons: dict[str, ApprovalDecision] = {self._said("box.allow"): "allow_once"}
        if asked.remember:
            remember = shortened(asked.remember, 60, self._language)
            buttons[f"{self._said('box.always')}: {remember}"] = "allow_always"
        buttons[self._said("box.reject")] = "reject_once"
        preview = shortened(asked.preview, PREVIEW, self._language)
        parts = (self._said(_ASKS[asked.kind]), asked.why, preview)
        chosen = await self._box(WARNING, "\n".join(part for part in parts if part), tuple(buttons))
        await self.deliver(self._runs.approve(run, asked.approval_id, buttons.get(chosen, "reject_once")))

    async def answer(self, run: str, asked: InputAsked) -> None:
        chosen = await self._box(INFO, asked.question, (*asked.choices, self._said("box.no_answer")))
        said = chosen if chosen in asked.choices else str(text("box.nobody_answered"))
        await self.deliver(self._runs.answer(run, asked.input_id, said))

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


def fan_out(*listeners: Callable[[Chunk], None]) -> Callable[[Chunk], None]:
    """Combine listeners into one that calls each in order."""
    if len(listeners) == 1:
        return listeners[0]

    def listen(chunk: Chunk) -> None:
        for listener in listeners:
            listener(chunk)

    return listen


def _alike(one: Chunk, other: Chunk) -> bool:
    a, b = one.event, other.event
    same = type(a) is type(b) and one.run == other.run and one.agent == other.agent
    if isinstance(a, ToolOutput) and isinstance(b, ToolOutput):
        return same and a.id == b.id
    return same


def _merged(chunks: list[Chunk]) -> str:
    """One chunk for adjacent deltas; it says which numbers it stands for."""
    last = chunks[-1]
    text = "".join(c.event.text for c in chunks if isinstance(c.event, Delta | Thinking | ToolOutput))
    event = last.event.model_copy(update={"text": text})
    whole = last._replace(event=event, data=encode_event(event)).json()
    return f'{{"seqFrom":{chunks[0].seq},{whole[1:]}'

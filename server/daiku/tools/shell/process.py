"""A running command in its own session, with one bounded output stream; stopping it kills its descendants."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol, TypeVar

from daiku.guard.rules.redact import Redactor
from daiku.texts.rules.decisive import truncate_output
from daiku.texts.rules.patterns import lazy

KEPT_BYTES = 256 * 1024
"""Bytes that are stored of each end of an output. Bytes between the ends are only counted."""

_ESCAPES = lazy(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?"  # OSC: titles, links, clipboard
    r"|\x1b[PX^_][^\x1b]{0,4096}(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_CONTROLS = lazy("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_OVERWRITTEN = lazy(r"^[^\n]*\r(?=[^\n])", re.MULTILINE)
_UNFINISHED = lazy(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]{0,4096}|[ -/]*)?$")


_MAX_WORD = 400
"""Characters that live output holds back at most until a word is complete."""
_TOKEN_CHARACTER = lazy(r"[0-9_-]")
_REDACTOR = Redactor(())


def _redact_controlled(text: str) -> str:
    """Redact tokens before controls are removed: without them, letters join and tokens are not recognized."""
    return _REDACTOR.redact_controlled(text) if "\x1b" in text or _CONTROLS.search(text) else text


def to_plain(text: str) -> str:
    """Return `text` as it finally looks on a terminal: without escapes, controls, and overwritten lines."""
    text = _ESCAPES.sub("", _redact_controlled(text)).replace("\r\n", "\n")
    if "\r" in text:
        text = _OVERWRITTEN.sub("", text).replace("\r", "")
    return _CONTROLS.sub("", text)


class TruncatedOutput:
    """The first and last bytes of an output, and its total size."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total = 0

    def add(self, data: bytes) -> None:
        """Add output of any length."""
        self.total += len(data)
        if room := self._limit - len(self._head):
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail_size - len(self._tail[0]) >= self._limit:
            self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        """Return the output as plain text, with a note of how many bytes were dropped."""
        tail = b"".join(self._tail)[-self._limit :]
        dropped = self.total - len(self._head) - len(tail)
        if not dropped:
            return to_plain((bytes(self._head) + tail).decode("utf-8", "replace"))
        head = to_plain(self._head.decode("utf-8", "replace"))
        return f"{head}\n[… {dropped} bytes of output were not kept …]\n{to_plain(tail.decode('utf-8', 'replace'))}"

    def format_for_model(self, limit: int) -> str:
        """Return the output for a model: cut to `limit` characters, with the decisive lines."""
        return truncate_output(self.text(), limit, "Send the output to a file or through grep, head or tail")


class LiveOutput:
    """Incremental output as plain text, in pieces that never split a character, an escape, or a token."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._pending = ""

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """Return the text that can be shown now; `final` returns the rest."""
        text = self._pending + self._decode(data, final)
        self._pending = ""
        if not final:
            unfinished = _UNFINISHED.search(text) if "\x1b" in text[-4200:] else None
            end = unfinished.start() if unfinished else len(text) - text.endswith("\r")
            last_word = text[max(0, end - _MAX_WORD) : end].rsplit(maxsplit=1)[-1:]
            if last_word and text[:end].endswith(last_word[0]) and _TOKEN_CHARACTER.search(last_word[0]):
                end -= len(last_word[0])
            text, self._pending = text[:end], text[end:]
        text = _ESCAPES.sub("", _redact_controlled(text)).replace("\r\n", "\n").replace("\r", "\n")
        return _CONTROLS.sub("", text)


READ_BYTES = 65_536
"""Bytes of one read."""
PIECE_SECONDS = 0.04
"""Seconds between two pieces of live output."""
MAX_LIVE = 200_000
"""Characters of live output. The result has both ends of the complete output."""
MAX_END_BYTES = 5_000_000
"""Bytes that are stored of each end of an output. A shorter output can be read and searched in full."""
GRACE_SECONDS = 0.5
"""Seconds to wait for a process after each signal."""
S = TypeVar("S")
_REAPER = (sys.executable, "-I", "-S", str(Path(__file__).with_name("reaper.py")))


def wrap_in_reaper(argv: list[str]) -> list[str]:
    """Wrap `argv` in the reaper, which kills all descendants when the command ends or this server dies."""
    return [*_REAPER, str(os.getpid()), *argv]


def replace_parent(argv: list[str], parent: str) -> list[str]:
    """Replace the parent in the argv of `wrap_in_reaper`. Any other argv is returned unchanged."""
    length = len(_REAPER)
    return [*_REAPER, parent, *argv[length + 1 :]] if tuple(argv[:length]) == _REAPER else argv


class Command(Protocol):
    """A started command, in this server or in the editor's terminal. `output`: both ends of its output."""

    @property
    def output(self) -> TruncatedOutput: ...

    @property
    def started(self) -> float:
        """Start time on the monotonic clock."""
        ...

    async def finish(self, show: Callable[[str], None]) -> int:
        """Wait for the end and return the exit code."""
        ...

    async def stop(self) -> None:
        """Kill the command and its descendants. Does nothing if it has ended."""
        ...


class Process:
    """A started command. `output`: both ends of its output."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        close: Callable[[], None],
        reaped: bool,
    ) -> None:
        self.output = TruncatedOutput(MAX_END_BYTES)
        self.started = time.monotonic()
        self._process = process
        self._reader = reader
        self._close = close
        self._reaped = reaped

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Exit code; None while it runs, 128 + N after signal N."""
        code = self._process.returncode
        return code if code is None or code >= 0 else 128 - code

    async def finish(self, show: Callable[[str], None], *, limit: bool = True) -> int:
        """Read to the end and return the exit code. Does not wait for descendants that hold the output open.

        `show` gets pieces of plain text, at most every 40 ms; with `limit`, at most MAX_LIVE characters.
        """
        pump = asyncio.ensure_future(self._stream_output(show, MAX_LIVE if limit else sys.maxsize))
        try:
            await self._process.wait()
            await asyncio.wait({pump}, timeout=1.0)
        finally:
            await end_task(pump)
            self._close()
        return self.exit_code or 0

    async def stop(self) -> None:
        """Kill the command and its descendants, in under a second. Does nothing if it has ended."""
        if self._process.returncode is None and self._reaped:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GRACE_SECONDS):
                    await self._process.wait()
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GRACE_SECONDS):
                    await self._process.wait()
        self._close()

    async def _stream_output(self, show: Callable[[str], None], limit: int) -> None:
        live = LiveOutput()
        shown_length = 0
        pending = ""
        last_shown = 0.0
        ended = False
        while not ended:
            data = await self._read(
                None if not pending else max(0.0, last_shown + PIECE_SECONDS - time.monotonic())
            )
            if data is not None:
                self.output.add(data)
                ended = not data
                if shown_length <= limit:
                    pending += live.feed(data, final=ended)
            is_due = data is None or ended or time.monotonic() >= last_shown + PIECE_SECONDS
            if pending and is_due:
                shown_length += len(pending)
                show(
                    pending
                    if shown_length <= limit
                    else pending[:READ_BYTES] + "\n[… more output follows; the end is in the result …]\n"
                )
                pending = ""
                last_shown = time.monotonic()

    async def _read(self, seconds: float | None) -> bytes | None:
        """Return bytes, b"" at the end, or None after `seconds` without output."""
        try:
            async with asyncio.timeout(seconds):
                return await self._reader.read(READ_BYTES)
        except TimeoutError:
            return None


async def start(
    argv: list[str], *, cwd: Path, env: dict[str, str], stdin: str | None, terminal: bool, reaped: bool
) -> Process:
    """Start `argv` in its own session, with stdout and stderr as one stream. Raises OSError.

    Without `stdin` it reads end of file; with `terminal` it gets a pseudoterminal.
    """
    start_process = _start_in_pty if terminal else _start_with_pipes
    return await shield_start(start_process(argv, cwd, env, stdin, reaped), Process.stop)


async def shield_start(starting: Coroutine[Any, Any, S], stop: Callable[[S], Awaitable[None]]) -> S:
    """Await `starting`; if the caller is cancelled meanwhile, stop what it starts. Raises OSError.

    On cancellation asyncio would kill only the process that it knows, and wait for its descendants, which go
    on.
    """
    task = asyncio.ensure_future(starting)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.shield(_stop_started(task, stop))
        raise


async def _stop_started(starting: asyncio.Future[S], stop: Callable[[S], Awaitable[None]]) -> None:
    await asyncio.wait({starting})
    if not starting.cancelled() and starting.exception() is None:
        await stop(starting.result())


async def end_task(task: asyncio.Future[Any]) -> None:
    """Cancel `task` and wait for its end. Raises its exception, but not its cancellation.

    With `await task`, its cancellation could not be told from the caller's.
    """
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()


async def _start_with_pipes(
    argv: list[str], cwd: Path, env: dict[str, str], stdin: str | None, reaped: bool
) -> Process:
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    if process.stdin is not None and stdin is not None:
        process.stdin.write(stdin.encode())
        process.stdin.close()
    return Process(process, process.stdout, _do_nothing, reaped)


def _do_nothing() -> None:
    return None


class _TerminalOutput(asyncio.StreamReaderProtocol):
    """Protocol of a pseudoterminal.

    It reports an OSError when the other side closes, which means end of file.
    """

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(None if isinstance(exc, OSError) else exc)


async def _start_in_pty(
    argv: list[str], cwd: Path, env: dict[str, str], stdin: str | None, reaped: bool
) -> Process:
    controller, terminal = os.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=cwd,
            env={**env, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"},
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
    except BaseException:
        os.close(controller)
        raise
    finally:
        os.close(terminal)
    os.write(controller, ((stdin or "") + "\x04").encode())
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: _TerminalOutput(reader), os.fdopen(controller, "rb", 0)
    )
    return Process(process, reader, transport.close, reaped)

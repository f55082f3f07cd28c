"""Trace logger: writes runs as JSON Lines, and spans to a collector, off the event loop."""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Self, TypeAlias, assert_never

from daiku.dataclass import dataclass, field
from daiku.domain.chunks import Chunk, iso_now
from daiku.domain.events import EPHEMERAL, RunFinished
from daiku.logs import take_lock
from daiku.trace.rules.lines import LineRecorder, as_jsonl
from daiku.trace.rules.spans import SpanRecorder
from daiku.trace.telemetry.endpoint import NOTHING, endpoint_problem, parse_endpoint
from daiku.trace.telemetry.sender import SpanSender
from daiku.version import __version__

ONE_FILE = (".jsonl", ".ndjson", ".json")
LOCKED_BYTE = 2**31 - 2
"""Offset of the byte that a writer locks on Windows: after all lines, so that readers are not blocked."""


@dataclass(frozen=True, slots=True)
class TraceFiles:
    """Trace files: one per session in a folder, or one for all if `path` ends in `.jsonl`.

    Methods block and raise OSError.
    """

    path: Path

    def of(self, session: str) -> Path:
        """Return the file of `session`."""
        return self.path if self._is_single_file else self.path / f"{session}.jsonl"

    @property
    def _is_single_file(self) -> bool:
        return self.path.suffix in ONE_FILE

    def add(self, session: str, lines: str) -> None:
        """Append complete lines to the file of `session`: all of them, or none if the disk is full.

        Other processes wait.
        """
        data, written = lines.encode("utf-8", "replace"), 0
        handle = self._open(self.of(session), os.O_RDWR | os.O_APPEND)
        os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
        with suppress(OSError):  # some network file systems have no locks
            take_lock(handle)
        size = os.lseek(handle, 0, os.SEEK_END)
        try:
            if size and _byte_at(handle, size - 1) != b"\n":  # a partial line of a killed process
                data = b"\n" + data
            while written < len(data):
                written += os.write(handle, data[written:])
        except OSError:
            if written and os.fstat(handle).st_size == size + written:
                os.ftruncate(handle, size)
            raise
        finally:
            os.close(handle)

    def rewrite(self, session: str, lines: str) -> None:
        """Replace the file of `session` atomically; do nothing if all sessions share one file."""
        if self._is_single_file:
            return
        path = self.of(session)
        part = path.with_name(f".{path.name}.{os.getpid()}")
        handle = self._open(part, os.O_WRONLY | os.O_TRUNC)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(lines.encode("utf-8", "replace"))
            part.replace(path)
        except OSError:
            part.unlink(missing_ok=True)
            raise

    def forget(self, session: str) -> None:
        """Delete the file of `session`, unless all sessions share one file."""
        if not self._is_single_file:
            self.of(session).unlink(missing_ok=True)

    def _open(self, path: Path, how: int) -> int:
        """Open the file, readable only by its owner regardless of the umask."""
        flags = os.O_CREAT | how | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        try:
            handle = os.open(path, flags, 0o600)
        except FileNotFoundError:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(path, flags, 0o600)
        path.chmod(0o600)
        return handle


def _byte_at(handle: int, place: int) -> bytes:
    os.lseek(handle, place, os.SEEK_SET)
    return os.read(handle, 1)


logger = logging.getLogger(__name__)

MOST_WAITING = 5_000
"""Chunks in the queue, at most; further ones are dropped and counted."""
GATHER_SECONDS = 0.2
"""Seconds of debounce: chunks within it are written together, as waking the thread for each slows runs."""
CLOSE_SECONDS = 5.0
"""Timeout of the disk in seconds when the trace ends."""


@dataclass(frozen=True, slots=True)
class _ResumeItem:
    session: str
    run: str
    chunks: Sequence[Chunk]
    time: str


@dataclass(frozen=True, slots=True)
class _ForgetItem:
    session: str


@dataclass(frozen=True, slots=True)
class _FlushItem:
    """Request to signal when all items before it are written."""

    done: Event = field(default_factory=Event)


_Item: TypeAlias = Chunk | _ResumeItem | _ForgetItem | _FlushItem


class TraceLogger:
    """The trace of runs; call it with every chunk, in order. It never blocks and never raises.

    `path` is a folder, which gets one file per session, or a file that ends in `.jsonl`; None writes no
    files. Each line is the start or the end of an agent, a tool, or a hand-off. With `otlp_endpoint`
    (`http://…`, `https://…`, `grpc://…`) each run is sent as one OTLP trace; messages and arguments are
    included only with `content=True`. A thread does the work, so that a slow disk or collector does not slow
    runs. `close()`, or leaving `with`, writes the rest.

    Raises ValueError for an invalid endpoint.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        otlp_endpoint: str = "",
        otlp_headers: Mapping[str, str] = NOTHING,
        content: bool = False,
    ) -> None:
        if otlp_endpoint and (problem := endpoint_problem(otlp_endpoint)):
            raise ValueError(f"otlp_endpoint: {problem}")
        self.missed = 0
        """Chunks that were dropped because the disk was too slow or full."""
        self._files = None if path is None else TraceFiles(Path(path).expanduser())
        self._sender = (
            SpanSender(parse_endpoint(otlp_endpoint, otlp_headers), version=__version__, content=content)
            if otlp_endpoint
            else None
        )
        self._queue = _Queue()
        self._work = _TraceWorker(self._queue, self._files, self._sender, self._count_dropped)
        self._lock = Lock()
        self._thread: Thread | None = None

    def __call__(self, chunk: Chunk) -> None:
        """Add the next chunk of a run."""
        if chunk.event.type in EPHEMERAL:
            return
        if self._queue.qsize() >= MOST_WAITING:
            self._count_dropped(1, "the disk does not keep up")
            return
        self._enqueue(chunk)

    def resume(self, run: str, chunks: Sequence[Chunk]) -> None:
        """Continue `run`: update its file from `chunks`, all of its session, after its process was killed."""
        if chunks:
            self._enqueue(_ResumeItem(chunks[0].session, run, chunks, iso_now()))

    def forget(self, session: str) -> None:
        """Delete the file of a session."""
        self._enqueue(_ForgetItem(session))

    def flush(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Wait until all lines are written; return False after `seconds`. Not for an event loop."""
        if self._thread is None:
            return True
        flush = _FlushItem()
        self._enqueue(flush)
        self._queue.hurried.set()
        return flush.done.wait(seconds)

    @property
    def collector(self) -> str:
        """Address of the collector without parts that may be secret; empty if there is none."""
        return "" if self._sender is None else self._sender.address

    def try_collector(self) -> str:
        """Return why the collector cannot be reached; empty if it can. Not for an event loop."""
        return "" if self._sender is None else self._sender.test_connection()

    def close(self) -> None:
        """Write and send the rest. Not for an event loop. The logger can be used again."""
        with self._lock:  # a concurrent call starts a new thread afterwards
            thread, self._thread = self._thread, None
            if thread is not None:
                atexit.unregister(self.close)
                self._queue.put(None)
                self._queue.hurried.set()
                thread.join(CLOSE_SECONDS)
        if self._sender is not None:
            self._sender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _enqueue(self, item: _Item) -> None:
        self._queue.put(item)
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = Thread(target=self._work, name="daiku-trace", daemon=True)
                    self._thread.start()
                    atexit.register(self.close)

    def _count_dropped(self, count: int, why: str) -> None:
        if not self.missed:
            logger.warning("the trace is not complete: %s", why)
        self.missed += count


class _Queue(SimpleQueue["_Item | None"]):
    """Items for the thread, in order; None ends it. Only the first item wakes the thread."""

    def __init__(self) -> None:
        self.hurried = Event()

    def take(self) -> list[_Item | None]:
        """Wait for items, and return them with those that arrive within GATHER_SECONDS."""
        first = self.get()
        self.hurried.wait(GATHER_SECONDS)
        self.hurried.clear()
        return [first, *(self.get() for _ in range(self.qsize()))]


@dataclass(slots=True)
class _SessionRecorders:
    """Recorders of a session with a live run."""

    lines: LineRecorder = field(default_factory=LineRecorder)
    spans: SpanRecorder = field(default_factory=SpanRecorder)


class _TraceWorker:
    """Worker of the thread: converts chunks to lines and spans, in order and in batches."""

    def __init__(
        self,
        queue: _Queue,
        files: TraceFiles | None,
        sender: SpanSender | None,
        miss: Callable[[int, str], None],
    ) -> None:
        self._queue, self._files, self._sender, self._count_dropped = queue, files, sender, miss
        self._sessions: dict[str, _SessionRecorders] = {}
        self._texts: dict[str, list[str]] = {}
        self._reported: set[str] = set()

    def __call__(self) -> None:
        is_over = False
        while not is_over:
            for item in self._queue.take():
                if item is None:
                    is_over = True
                    continue
                try:
                    self._handle(item)
                except Exception:  # the thread's boundary: tracing must not end a run
                    logger.exception("something of the trace is missing")
            self._write()

    def _handle(self, item: _Item) -> None:
        match item:
            case Chunk():
                self._add_chunk(item)
            case _ResumeItem():
                self._resume(item)
            case _ForgetItem(session):
                self._write()
                self._sessions.pop(session, None)
                self._try_write(session, lambda files: files.forget(session))
            case _FlushItem(done):
                self._write()
                done.set()
            case _:
                assert_never(item)

    def _add_chunk(self, chunk: Chunk) -> None:
        session = self._sessions.get(chunk.session)
        if session is None:
            session = self._sessions[chunk.session] = _SessionRecorders()
        if self._files is not None and (line := session.lines(chunk)) is not None:
            self._texts.setdefault(chunk.session, []).append(line.jsonl())
        if self._sender is not None:
            self._sender.offer(session.spans(chunk))
        if isinstance(chunk.event, RunFinished) and chunk.parent is None:
            del self._sessions[chunk.session]

    def _resume(self, item: _ResumeItem) -> None:
        self._write()
        session = self._sessions[item.session] = _SessionRecorders()
        first = next((c.seq for c in item.chunks if c.run == item.run), 0)
        for chunk in item.chunks:
            if chunk.seq >= first:
                session.lines(chunk)
                session.spans(chunk)
        session.spans.resume(item.time)
        self._try_write(item.session, lambda files: files.rewrite(item.session, as_jsonl(item.chunks)))

    def _write(self) -> None:
        texts, self._texts = self._texts, {}
        for session, lines in texts.items():
            if not self._try_write(session, lambda files: files.add(session, "".join(lines))):  # noqa: B023  # called immediately
                self._count_dropped(len(lines), "it could not be written")

    def _try_write(self, session: str, act: Callable[[TraceFiles], None]) -> bool:
        """Run `act` on the files; return False if the disk failed, which must not end a run."""
        if self._files is None:
            return True
        try:
            act(self._files)
        except OSError as error:
            if session not in self._reported:
                self._reported.add(session)
                logger.warning("the trace of %s was not written: %s", session, error)
            return False
        return True

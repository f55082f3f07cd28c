"""Writes the trace of runs as they happen, off the event loop: as JSON Lines, and as spans to a collector."""

from __future__ import annotations

import atexit
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Self, TypeAlias, assert_never

from daiku.dataclass import dataclass, field
from daiku.domain.chunks import Chunk, iso_now
from daiku.domain.events import EPHEMERAL, RunFinished
from daiku.trace.rules.lines import LineRecorder, as_jsonl
from daiku.trace.rules.spans import SpanRecorder
from daiku.trace.telemetry.endpoint import NOTHING, endpoint_problem, parse_endpoint
from daiku.trace.telemetry.files import TraceFiles
from daiku.trace.telemetry.sender import SpanSender
from daiku.version import __version__

logger = logging.getLogger(__name__)

MOST_WAITING = 5_000
"""Chunks that wait to be written; of more the new ones are left out, and counted."""
GATHER_SECONDS = 0.2
"""Seconds within which chunks are written together: waking the thread for each would slow the runs."""
CLOSE_SECONDS = 5.0
"""Seconds that a slow disk is given at the end."""


@dataclass(frozen=True, slots=True)
class _Resumed:
    session: str
    run: str
    chunks: Sequence[Chunk]
    time: str


@dataclass(frozen=True, slots=True)
class _Forgotten:
    session: str


@dataclass(frozen=True, slots=True)
class _Reached:
    """Somebody waits until everything before this is done."""

    done: Event = field(default_factory=Event)


_Item: TypeAlias = Chunk | _Resumed | _Forgotten | _Reached


class TraceLogger:
    """The trace of runs: call it with every chunk, in order; it never waits and never raises.

    `path` is a folder, which gets one file a session, or a file that ends in `.jsonl`; with None there are no
    files. A line stands for the beginning or the end of an agent, a tool or a handoff (R1.55, R1.56). Where
    `otlp_endpoint` is given (`http://…`, `https://…`, `grpc://…`), each run is sent to it as one OTLP trace (R1.57);
    what was said and done goes along with `content=True` only. Lines and spans are made in a thread, so that a slow
    disk or a dead collector costs a run nothing (R1.77, R1.78). `close()`, or leaving `with`, writes what is left.

    Raises ValueError for an endpoint that is none.
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
        """Chunks that were left out because the disk did not keep up, or was full."""
        self._files = None if path is None else TraceFiles(Path(path).expanduser())
        self._sender = (
            SpanSender(parse_endpoint(otlp_endpoint, otlp_headers), version=__version__, content=content)
            if otlp_endpoint
            else None
        )
        self._queue = _Queue()
        self._work = _Work(self._queue, self._files, self._sender, self._miss)
        self._lock = Lock()
        self._thread: Thread | None = None

    def __call__(self, chunk: Chunk) -> None:
        """Take the next chunk of a run."""
        if chunk.event.type in EPHEMERAL:
            return
        if self._queue.qsize() >= MOST_WAITING:
            self._miss(1, "the disk does not keep up")
            return
        self._put(chunk)

    def resume(self, run: str, chunks: Sequence[Chunk]) -> None:
        """Continue `run`: bring its file up to `chunks`, all of its session, if its process was killed."""
        if chunks:
            self._put(_Resumed(chunks[0].session, run, chunks, iso_now()))

    def forget(self, session: str) -> None:
        """Delete the file of a session."""
        self._put(_Forgotten(session))

    def flush(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Wait until all lines are written; whether they were within `seconds`. Not for an event loop."""
        if self._thread is None:
            return True
        reached = _Reached()
        self._put(reached)
        self._queue.hurried.set()
        return reached.done.wait(seconds)

    @property
    def collector(self) -> str:
        """The collector that spans are sent to, without what may be secret in its address; empty where there is none."""
        return "" if self._sender is None else self._sender.address

    def try_collector(self) -> str:
        """Why the collector cannot be reached; empty where it can. Not for an event loop."""
        return "" if self._sender is None else self._sender.try_out()

    def close(self) -> None:
        """Write and send what is left. Not for an event loop. It may be used again afterwards."""
        with self._lock:  # whoever logs meanwhile begins anew, once this is over
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

    def _put(self, item: _Item) -> None:
        self._queue.put(item)
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = Thread(target=self._work, name="daiku-trace", daemon=True)
                    self._thread.start()
                    atexit.register(self.close)

    def _miss(self, count: int, why: str) -> None:
        if not self.missed:
            logger.warning("the trace is not complete: %s", why)
        self.missed += count


class _Queue(SimpleQueue["_Item | None"]):
    """Items for the thread, in order; None is the end. It is woken for the first one only, and waits for more."""

    def __init__(self) -> None:
        self.hurried = Event()

    def take(self) -> list[_Item | None]:
        """Return the items once there are some, with those that came soon after."""
        first = self.get()
        self.hurried.wait(GATHER_SECONDS)
        self.hurried.clear()
        return [first, *(self.get() for _ in range(self.qsize()))]


@dataclass(slots=True)
class _Session:
    """What is known of a session while a run of it is under way."""

    lines: LineRecorder = field(default_factory=LineRecorder)
    spans: SpanRecorder = field(default_factory=SpanRecorder)


class _Work:
    """What the thread does: chunks to lines and spans, in their order, many at a time where many wait."""

    def __init__(
        self,
        queue: _Queue,
        files: TraceFiles | None,
        sender: SpanSender | None,
        miss: Callable[[int, str], None],
    ) -> None:
        self._queue, self._files, self._sender, self._miss = queue, files, sender, miss
        self._sessions: dict[str, _Session] = {}
        self._texts: dict[str, list[str]] = {}
        self._told: set[str] = set()

    def __call__(self) -> None:
        over = False
        while not over:
            for item in self._queue.take():
                if item is None:
                    over = True
                    continue
                try:
                    self._do(item)
                except Exception:  # the thread's boundary: tracing never takes a run along
                    logger.exception("something of the trace is missing")
            self._write()

    def _do(self, item: _Item) -> None:
        match item:
            case Chunk():
                self._trace(item)
            case _Resumed():
                self._resume(item)
            case _Forgotten(session):
                self._write()
                self._sessions.pop(session, None)
                self._on_disk(session, lambda files: files.forget(session))
            case _Reached(done):
                self._write()
                done.set()
            case _:
                assert_never(item)

    def _trace(self, chunk: Chunk) -> None:
        session = self._sessions.get(chunk.session)
        if session is None:
            session = self._sessions[chunk.session] = _Session()
        if self._files is not None and (line := session.lines(chunk)) is not None:
            self._texts.setdefault(chunk.session, []).append(line.jsonl())
        if self._sender is not None:
            self._sender.offer(session.spans(chunk))
        if isinstance(chunk.event, RunFinished) and chunk.parent is None:
            del self._sessions[chunk.session]

    def _resume(self, item: _Resumed) -> None:
        self._write()
        session = self._sessions[item.session] = _Session()
        first = next((c.seq for c in item.chunks if c.run == item.run), 0)
        for chunk in item.chunks:
            if chunk.seq >= first:
                session.lines(chunk)
                session.spans(chunk)
        session.spans.go_on(item.time)
        self._on_disk(item.session, lambda files: files.rewrite(item.session, as_jsonl(item.chunks)))

    def _write(self) -> None:
        texts, self._texts = self._texts, {}
        for session, lines in texts.items():
            if not self._on_disk(session, lambda files: files.add(session, "".join(lines))):  # noqa: B023  # at once
                self._miss(len(lines), "it could not be written")

    def _on_disk(self, session: str, act: Callable[[TraceFiles], None]) -> bool:
        """Whether it worked: a full disk must not take anything away but the trace."""
        if self._files is None:
            return True
        try:
            act(self._files)
        except OSError as error:
            if session not in self._told:
                self._told.add(session)
                logger.warning("the trace of %s was not written: %s", session, error)
            return False
        return True

"""Session event streams for any number of readers: recent chunks in memory, older ones from the journal.

A reader only keeps its position. A slow reader delays nobody and uses no memory: chunks that are no longer
buffered come from the journal, except ephemeral ones.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Protocol

from daiku.dataclass import dataclass, field
from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError
from daiku.domain.runs import RunResult

log = logging.getLogger(__name__)

COMMENT = b": nothing new\n\n"
"""Keep-alive comment of server-sent events."""


def chunk_frame(chunk: Chunk) -> bytes:
    """Return the server-sent event of a chunk, with the chunk's JSON unchanged (R1.9); JSON has no line breaks."""
    return f"id: {chunk.seq}\nevent: {chunk.event.type}\ndata: {chunk.json()}\n\n".encode("utf-8", "replace")


def result_frame(result: RunResult) -> bytes:
    """Return the last event of a run's stream; it has no id, so that clients resume after the last chunk."""
    data = result.model_dump_json(by_alias=True, exclude_none=True)
    return f"event: result\ndata: {data}\n\n".encode()


HELD_BYTES = 256 * 1024
"""Bytes of recent chunks to buffer per session with a run or a reader."""
PAGE = 200
"""Number of chunks per read of the journal."""
SENT_AT_ONCE = 64 * 1024
"""Approximate maximum bytes per write."""
TOGETHER_SECONDS = 0.01
"""Minimum interval in seconds between two wake-ups of a reader; faster chunks are batched."""
LOOK_SECONDS = 1.0
"""Poll interval in seconds for journal entries of other processes."""


class TailJournal(Protocol):
    """The part of the journal that streams read."""

    def tail(self, session: str, after_seq: int, most: int) -> list[Chunk]:
        """Return up to `most` durable chunks after `after_seq`, oldest first."""
        ...

    def last_seq(self, session: str) -> int:
        """Return the number of the last durable chunk, or 0."""
        ...


class Pace:
    """Rate limiter for waking readers (debounce)."""

    def __init__(self) -> None:
        self._due: set[Reader] = set()
        self._timer: asyncio.TimerHandle | None = None

    def wake(self, readers: set[Reader]) -> None:
        """Wake `readers` now, or after a moment if they were just woken."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for reader in readers:
            if now - reader.woken >= TOGETHER_SECONDS:
                reader.woken = now
                reader.wake()
            else:
                self._due.add(reader)
        if self._due and self._timer is None:
            self._timer = loop.call_later(TOGETHER_SECONDS, self._wake_due)

    def _wake_due(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for reader in self._due:
            reader.woken = now
            reader.wake()
        self._due.clear()


@dataclass(eq=False, slots=True)
class Channel:
    """The chunks of one session. The buffer is complete from `complete_from` on (0: empty)."""

    session: str
    journal: TailJournal
    pace: Pace
    start: int = 0
    """Position of the first buffered chunk; positions rise and are never reused."""
    complete_from: int = 0
    last: int = 0
    """Highest known chunk number."""
    runs: int = 0
    readers: set[Reader] = field(default_factory=set["Reader"])
    _frames: deque[tuple[int, bytes]] = field(default_factory=deque[tuple[int, bytes]])
    _bytes: int = 0

    @property
    def end(self) -> int:
        """Position after the last chunk."""
        return self.start + len(self._frames)

    def start_run(self) -> None:
        """Register a run; chunks that others wrote meanwhile are read from the journal."""
        self.runs += 1
        self.check_journal()

    def check_journal(self) -> None:
        """Check the journal for chunks that were not published here."""
        last = self.journal.last_seq(self.session)
        if last > self.last:
            self._clear_buffer()
            self.last = last
            self.wake()

    def publish(self, chunk: Chunk) -> None:
        """Send `chunk` to all readers. An open question that is repeated has an old number."""
        seq = chunk.seq
        if seq > self.last:
            if seq != self.last + 1:
                self._clear_buffer()
            self.complete_from = self.complete_from or seq
            self.last = seq
        frame = chunk_frame(chunk)
        self._frames.append((seq, frame))
        self._bytes += len(frame)
        while self._bytes > HELD_BYTES and len(self._frames) > 1:
            dropped, dropped_frame = self._frames.popleft()
            self._bytes -= len(dropped_frame)
            self.start += 1
            if self.complete_from and dropped >= self.complete_from:
                self.complete_from = dropped + 1
        if self.readers:
            self.pace.wake(self.readers)

    def frame_at(self, place: int) -> tuple[int, bytes]:
        """Return the number and the frame of the chunk at `place`."""
        return self._frames[place - self.start]

    def wake(self) -> None:
        """Wake all readers."""
        for reader in self.readers:
            reader.wake()

    def _clear_buffer(self) -> None:
        """Clear the buffer, so that every reader continues from the journal."""
        self.start += len(self._frames) + 1
        self._frames.clear()
        self._bytes = self.complete_from = 0


class Reader:
    """One reader's position in a channel; `seq` is the last number it received.

    A reader of one run receives everything of that run; other readers receive no chunk twice.
    """

    def __init__(self, channel: Channel, seq: int, place: int, *, of_run: bool) -> None:
        self.channel, self.seq, self.place = channel, seq, place
        self.closed = False
        self.woken = 0.0
        """Time of the last wake-up, by the event loop's clock."""
        self._of_run = of_run
        self._end: tuple[int, int] | None = None
        self._waiting: asyncio.Future[None] | None = None
        channel.readers.add(self)

    @property
    def complete(self) -> bool:
        """True if the reader has received everything."""
        return self._end is not None and self.place >= self._end[0]

    def end_at(self, seq: int) -> None:
        """End the stream at the current position, and not after `seq`."""
        self._end = (self.channel.end, seq)
        self.wake()

    def take(self) -> bytes:
        """Return the next complete events; empty if there are none now."""
        channel = self.channel
        if self.place < channel.start:
            if page := self._page():
                self.seq = page[-1].seq
                return b"".join(map(chunk_frame, page))
            self.place = channel.start
        end = channel.end if self._end is None else min(channel.end, self._end[0])
        frames, size = list[bytes](), 0
        while self.place < end and size < SENT_AT_ONCE:
            seq, frame = channel.frame_at(self.place)
            self.place += 1
            if seq > self.seq or self._of_run:
                self.seq = max(self.seq, seq)
                frames.append(frame)
                size += len(frame)
        return frames[0] if len(frames) == 1 else b"".join(frames)

    def _page(self) -> list[Chunk]:
        """Return the next chunks from the journal, up to the buffered ones."""
        until, last = self.channel.complete_from, self._end
        return [
            chunk
            for chunk in self.channel.journal.tail(self.channel.session, self.seq, PAGE)
            if (not until or chunk.seq < until) and (last is None or chunk.seq <= last[1])
        ]

    async def wait(self) -> None:
        """Wait until there may be something new."""
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    def wake(self) -> None:
        """Wake up `wait`."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def close(self) -> None:
        """End the stream."""
        self.closed = True
        self.channel.readers.discard(self)
        self.wake()


class Channels:
    """The open channels; `close` ends all their readers."""

    def __init__(self, journal: TailJournal) -> None:
        self._journal = journal
        self._pace = Pace()
        self._open: dict[str, Channel] = {}
        self._poll_timer: asyncio.TimerHandle | None = None
        self.closed = False

    def open(self, session: str) -> Channel:
        """Return the channel of a session. Call `release` after use."""
        channel = self._open.get(session)
        if channel is None:
            channel = self._open[session] = Channel(session, self._journal, self._pace)
            channel.last = self._journal.last_seq(session)
        if self._poll_timer is None:
            self._schedule_poll()
        return channel

    def release(self, channel: Channel) -> None:
        """Drop `channel` if it has no runs and no readers."""
        if not channel.runs and not channel.readers and self._open.get(channel.session) is channel:
            del self._open[channel.session]

    def check_journal(self, session: str) -> None:
        """Check the journal of `session` for entries written outside its runs."""
        if channel := self._open.get(session):
            channel.check_journal()

    def end(self, session: str) -> None:
        """End the readers of a deleted session."""
        if channel := self._open.get(session):
            for reader in tuple(channel.readers):
                reader.close()

    def close(self) -> None:
        """End all readers and stop polling."""
        self.closed = True
        if self._poll_timer is not None:
            self._poll_timer.cancel()
        for session in tuple(self._open):
            self.end(session)

    def _schedule_poll(self) -> None:
        self._poll_timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._poll)

    def _poll(self) -> None:
        """Check the journals for entries of other processes, and wake readers for keep-alive comments."""
        for channel in tuple(self._open.values()):
            try:
                if not channel.runs:
                    channel.check_journal()
            except DaikuError as error:  # a locked or damaged file: retried at the next poll
                log.warning("the journal of %s was not looked at: %s", channel.session, error)
            channel.wake()
        if self._open and not self.closed:
            self._schedule_poll()
        else:
            self._poll_timer = None

"""What happens in each session, for any number of readers: the last chunks in memory, all others in the journal.

A reader holds nothing but its place. A slow one neither slows others nor costs memory: what is no longer held when
it comes to it, it reads from the journal, and of that it misses only what the journal does not keep.
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


def chunk_frame(chunk: Chunk) -> bytes:
    """The event of a chunk; its data is the chunk's JSON, unchanged (R1.9). JSON holds no line breaks."""
    return f"id: {chunk.seq}\nevent: {chunk.event.type}\ndata: {chunk.json()}\n\n".encode("utf-8", "replace")


def result_frame(result: RunResult) -> bytes:
    """The last event of a run's stream. It has no id: a client goes on behind the last chunk."""
    data = result.model_dump_json(by_alias=True, exclude_none=True)
    return f"event: result\ndata: {data}\n\n".encode()


HELD_BYTES = 256 * 1024
"""Of each session with a run or a reader, so many bytes of its last chunks are held."""
PAGE = 200
"""Chunks that are read from the journal at once."""
SENT_AT_ONCE = 64 * 1024
"""About so many bytes are given out at once."""
TOGETHER_SECONDS = 0.01
"""A reader is woken at most this often: of chunks that come faster, several are sent at once."""
LOOK_SECONDS = 1.0
"""How often the journal is looked at for what another process wrote."""


class Recorded(Protocol):
    """The journal, as far as a stream needs it."""

    def tail(self, session: str, after_seq: int, most: int) -> list[Chunk]:
        """Up to `most` durable chunks behind `after_seq`, the oldest first."""
        ...

    def last_seq(self, session: str) -> int:
        """The number of the last durable chunk, 0 where there is none."""
        ...


class Pace:
    """Wakes readers: one that was not woken just now at once, others together a moment later."""

    def __init__(self) -> None:
        self._due: set[Reader] = set()
        self._timer: asyncio.TimerHandle | None = None

    def wake(self, readers: set[Reader]) -> None:
        """Let `readers` look for something new, now or in a moment."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for reader in readers:
            if now - reader.woken >= TOGETHER_SECONDS:
                reader.woken = now
                reader.wake()
            else:
                self._due.add(reader)
        if self._due and self._timer is None:
            self._timer = loop.call_later(TOGETHER_SECONDS, self._all)

    def _all(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for reader in self._due:
            reader.woken = now
            reader.wake()
        self._due.clear()


@dataclass(eq=False, slots=True)
class Channel:
    """The chunks of one session. Those that are held are all from `whole_from` on (0: none is held)."""

    session: str
    journal: Recorded
    pace: Pace
    start: int = 0
    """The place of the first chunk that is held; places rise and are never used again."""
    whole_from: int = 0
    last: int = 0
    """The highest number that is known here."""
    runs: int = 0
    readers: set[Reader] = field(default_factory=set["Reader"])
    _held: deque[tuple[int, bytes]] = field(default_factory=deque[tuple[int, bytes]])
    _bytes: int = 0

    @property
    def end(self) -> int:
        """The place behind the last chunk."""
        return self.start + len(self._held)

    def begin(self) -> None:
        """A run begins here: what others wrote meanwhile stands between what is held and what will come."""
        self.runs += 1
        self.look()

    def look(self) -> None:
        """Take notice of what is in the journal and was not shown here."""
        last = self.journal.last_seq(self.session)
        if last > self.last:
            self._let_go()
            self.last = last
            self.wake()

    def publish(self, chunk: Chunk) -> None:
        """Give `chunk` to all readers. An open question that is shown once more has an old number."""
        seq = chunk.seq
        if seq > self.last:
            if seq != self.last + 1:
                self._let_go()
            self.whole_from = self.whole_from or seq
            self.last = seq
        frame = chunk_frame(chunk)
        self._held.append((seq, frame))
        self._bytes += len(frame)
        while self._bytes > HELD_BYTES and len(self._held) > 1:
            gone, old = self._held.popleft()
            self._bytes -= len(old)
            self.start += 1
            if self.whole_from and gone >= self.whole_from:
                self.whole_from = gone + 1
        if self.readers:
            self.pace.wake(self.readers)

    def held(self, place: int) -> tuple[int, bytes]:
        """The number and the bytes of the chunk at `place`."""
        return self._held[place - self.start]

    def wake(self) -> None:
        """Let all readers look for something new."""
        for reader in self.readers:
            reader.wake()

    def _let_go(self) -> None:
        """Hold nothing; every reader is behind now, and looks into the journal."""
        self.start += len(self._held) + 1
        self._held.clear()
        self._bytes = self.whole_from = 0


class Reader:
    """One reader's place in a channel: `seq` is the last number that it was given. A reader of one run is given
    whatever that run shows, others nothing twice."""

    def __init__(self, channel: Channel, seq: int, place: int, *, of_run: bool) -> None:
        self.channel, self.seq, self.place = channel, seq, place
        self.closed = False
        self.woken = 0.0
        """When it was last woken, by the clock of the loop."""
        self._of_run = of_run
        self._last: tuple[int, int] | None = None
        self._waiting: asyncio.Future[None] | None = None
        channel.readers.add(self)

    @property
    def complete(self) -> bool:
        """Whether everything was given that there will be."""
        return self._last is not None and self.place >= self._last[0]

    def end_at(self, seq: int) -> None:
        """Nothing behind this moment, nor behind `seq`, is given any more."""
        self._last = (self.channel.end, seq)
        self.wake()

    def take(self) -> bytes:
        """What comes next, in whole events; empty where there is nothing now."""
        channel = self.channel
        if self.place < channel.start:
            if page := self._page():
                self.seq = page[-1].seq
                return b"".join(map(chunk_frame, page))
            self.place = channel.start
        end = channel.end if self._last is None else min(channel.end, self._last[0])
        taken, size = list[bytes](), 0
        while self.place < end and size < SENT_AT_ONCE:
            seq, frame = channel.held(self.place)
            self.place += 1
            if seq > self.seq or self._of_run:
                self.seq = max(self.seq, seq)
                taken.append(frame)
                size += len(frame)
        return taken[0] if len(taken) == 1 else b"".join(taken)

    def _page(self) -> list[Chunk]:
        """The next chunks from the journal, up to those that are held."""
        until, last = self.channel.whole_from, self._last
        return [
            chunk
            for chunk in self.channel.journal.tail(self.channel.session, self.seq, PAGE)
            if (not until or chunk.seq < until) and (last is None or chunk.seq <= last[1])
        ]

    async def wait(self) -> None:
        """Return when there may be something new."""
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    def wake(self) -> None:
        """Let `wait` return."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def close(self) -> None:
        """Give nothing any more."""
        self.closed = True
        self.channel.readers.discard(self)
        self.wake()


class Channels:
    """The channels that are in use; `close` ends all their readers."""

    def __init__(self, journal: Recorded) -> None:
        self._journal = journal
        self._pace = Pace()
        self._open: dict[str, Channel] = {}
        self._looking: asyncio.TimerHandle | None = None
        self.closed = False

    def of(self, session: str) -> Channel:
        """The channel of a session. Whoever takes it calls `settle` when done with it."""
        channel = self._open.get(session)
        if channel is None:
            channel = self._open[session] = Channel(session, self._journal, self._pace)
            channel.last = self._journal.last_seq(session)
        if self._looking is None:
            self._look_later()
        return channel

    def settle(self, channel: Channel) -> None:
        """Forget `channel` where nothing runs in it and nobody reads it."""
        if not channel.runs and not channel.readers and self._open.get(channel.session) is channel:
            del self._open[channel.session]

    def look(self, session: str) -> None:
        """Something was written to the journal of `session` beside its runs."""
        if channel := self._open.get(session):
            channel.look()

    def end(self, session: str) -> None:
        """`session` is gone: end its readers."""
        if channel := self._open.get(session):
            for reader in tuple(channel.readers):
                reader.close()

    def close(self) -> None:
        """End all readers; nothing is read any more."""
        self.closed = True
        if self._looking is not None:
            self._looking.cancel()
        for session in tuple(self._open):
            self.end(session)

    def _look_later(self) -> None:
        self._looking = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """Look at what others wrote; readers look at the clock too."""
        for channel in tuple(self._open.values()):
            try:
                if not channel.runs:
                    channel.look()
            except DaikuError as wrong:  # a locked or broken file: the next look may find it whole
                log.warning("the journal of %s was not looked at: %s", channel.session, wrong)
            channel.wake()
        if self._open and not self.closed:
            self._look_later()
        else:
            self._looking = None

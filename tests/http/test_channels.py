"""Many readers of a session: each is given everything once, a slow one holds nothing and slows nobody."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from daiku.domain.chunks import Chunk, encode_event
from daiku.domain.events import Delta, Event, MessageEvent
from daiku.fronts.http import channels
from daiku.fronts.http.channels import Channels, Reader, chunk_frame
from daiku.texts.text import Text
from tests.http.serving import served, until


class Book:
    """A journal of one session: chunks that are durable, by number."""

    def __init__(self) -> None:
        self.durable: list[Chunk] = []
        self.number = 0
        self.reads = 0

    def tail(self, session: str, after_seq: int, most: int) -> list[Chunk]:
        self.reads += 1
        return [chunk for chunk in self.durable if chunk.seq > after_seq][:most]

    def last_seq(self, session: str) -> int:
        return self.durable[-1].seq if self.durable else 0

    def chunk(self, event: Event) -> Chunk:
        self.number += 1
        made = Chunk(self.number, "t", "ses_1", "run_1", "a", event, encode_event(event))
        if not isinstance(event, Delta):
            self.durable.append(made)
        return made

    def delta(self, length: int = 1) -> Chunk:
        return self.chunk(Delta(text=Text("x" * length)))

    def message(self, length: int = 1) -> Chunk:
        return self.chunk(MessageEvent(role="assistant", text=Text("m" * length), agent="a"))


def seqs(data: bytes) -> list[int]:
    return [int(line[4:]) for line in data.split(b"\n") if line.startswith(b"id: ")]


def everything(reader: Reader) -> list[int]:
    found = list[int]()
    while data := reader.take():
        found += seqs(data)
    return found


@pytest.fixture
async def book() -> Book:
    return Book()


async def test_a_reader_is_given_what_is_held_then_what_comes(book: Book) -> None:
    open_channels = Channels(book)
    channel = open_channels.open("ses_1")
    channel.start_run()
    for _ in range(3):
        channel.publish(book.delta())
    reader = Reader(channel, 1, -1, of_run=False)
    assert everything(reader) == [2, 3]
    channel.publish(book.message())
    assert everything(reader) == [4]
    assert everything(reader) == []
    open_channels.close()


async def test_what_is_held_of_a_session_is_bounded_and_a_slow_reader_goes_to_the_journal(book: Book) -> None:
    """X.19: of what it missed, it is given every durable event, exactly once and in order."""
    open_channels = Channels(book)
    channel = open_channels.open("ses_1")
    channel.start_run()
    slow, quick = (Reader(channel, 0, channel.end, of_run=False) for _ in range(2))
    quick_had = list[int]()
    for number in range(1, 20_001):
        channel.publish(book.message(50) if number % 10 == 0 else book.delta(50))
        quick_had += everything(quick)
        assert sum(len(frame) for _, frame in channel._frames) <= channels.HELD_BYTES + 500
    assert quick_had == list(range(1, 20_001))
    had = everything(slow)
    assert had == sorted(set(had))
    assert [seq for seq in had if seq % 10 == 0] == list(range(10, 20_001, 10))
    assert had[-500:] == list(range(19_501, 20_001))  # those are still held
    open_channels.close()


async def test_one_chunk_larger_than_all_that_is_held_is_given_to_who_waits(book: Book) -> None:
    open_channels = Channels(book)
    channel = open_channels.open("ses_1")
    channel.start_run()
    reader = Reader(channel, 0, channel.end, of_run=True)
    chunk = book.message(2 * channels.HELD_BYTES)
    channel.publish(chunk)
    assert reader.take() == chunk_frame(chunk)
    open_channels.close()


async def test_what_others_wrote_meanwhile_is_given_in_its_place(book: Book) -> None:
    open_channels = Channels(book)
    channel = open_channels.open("ses_1")
    channel.start_run()
    reader = Reader(channel, 0, channel.end, of_run=False)
    channel.publish(book.message())
    channel.runs -= 1
    assert everything(reader) == [1]
    book.message()
    book.message()
    open_channels.check_journal("ses_1")
    assert everything(reader) == [2, 3]
    book.message()  # and nobody said so, when the next run begins
    channel.start_run()
    channel.publish(book.delta())
    assert everything(reader) == [4, 5]
    late = Reader(channel, 0, -1, of_run=False)
    assert everything(late) == [1, 2, 3, 4, 5]
    open_channels.close()


async def test_a_runs_reader_is_given_an_old_question_again_and_nothing_of_the_next_run(book: Book) -> None:
    old = book.message()
    open_channels = Channels(book)
    channel = open_channels.open("ses_1")
    channel.start_run()
    own, other = (Reader(channel, channel.last, channel.end, of_run=each) for each in (True, False))
    channel.publish(old)
    channel.publish(book.message())
    own.end_at(channel.last)
    channel.publish(book.message())
    assert everything(own) == [1, 2]
    assert own.complete
    assert everything(other) == [2, 3]
    open_channels.close()


async def test_a_runs_reader_that_fell_behind_ends_with_its_run(book: Book) -> None:
    open_channels = Channels(book)
    channel = open_channels.open("ses_1")
    channel.start_run()
    own = Reader(channel, channel.last, channel.end, of_run=True)
    for _ in range(40):
        channel.publish(book.message(20_000))
    own.end_at(channel.last)
    for _ in range(40):
        channel.publish(book.message(20_000))
    assert everything(own) == list(range(1, 41))
    assert own.complete
    open_channels.close()


async def test_a_channel_that_nobody_uses_is_forgotten(book: Book) -> None:
    open_channels = Channels(book)
    channel = open_channels.open("ses_1")
    reader = Reader(channel, 0, -1, of_run=False)
    open_channels.release(channel)
    assert open_channels.open("ses_1") is channel
    reader.close()
    open_channels.release(channel)
    assert open_channels.open("ses_1") is not channel
    open_channels.close()


async def test_a_quiet_stream_shows_that_it_is_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daiku.fronts.http.work.COMMENT_SECONDS", 0.05)
    monkeypatch.setattr(channels, "LOOK_SECONDS", 0.02)
    async with served(tmp_path, {"text": "x"}) as s, s.following(await s.session()) as events:
        first = await anext(events)
        second = await anext(events)
    assert first == second
    assert (first.type, first.data, bool(first.comment)) == ("", "", True)


async def test_what_another_process_writes_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "LOOK_SECONDS", 0.02)
    async with served(tmp_path, {"text": "x"}) as s:
        session = await s.session()
        run = (await s.run(session))[-1].json["runId"]
        async with s.following(session) as events:
            await until(events, "run_finished")
            said = MessageEvent(role="user", text=Text("from elsewhere"), agent="user")
            s.app.journal.writer(session).write(run, None, "user", (said,))
            shown = (await until(events, "message"))[-1]
    assert shown.json["data"]["text"] == "from elsewhere"


@pytest.mark.slow(seconds=20)
async def test_a_thousand_readers_of_a_session_are_given_the_same(tmp_path: Path) -> None:
    words = " ".join(f"w{i}" for i in range(20))
    async with served(tmp_path, {"text": words, "delay_ms": 2}) as s:
        session = await s.session()
        streams = [s.following(session) for _ in range(1000)]
        every = await asyncio.gather(*(stream.__aenter__() for stream in streams))
        reading = [asyncio.create_task(until(events, "run_finished")) for events in every]
        own = [sent for sent in await s.run(session) if sent.type != "result"]
        told = await asyncio.gather(*reading)
        assert all(each == own for each in told)
        for stream in streams:
            await stream.__aexit__(None, None, None)
        gc.collect()
        async with asyncio.timeout(10):
            while any(isinstance(each, Reader) for each in gc.get_objects()):
                await asyncio.sleep(0.05)
                gc.collect()


@pytest.mark.slow
async def test_a_client_that_does_not_read_slows_nobody(tmp_path: Path) -> None:
    """It costs its socket's buffers; once it reads, it is given every durable event."""
    line = {"text": "y" * 200_000, "thinking": "z" * 200_000}
    async with served(tmp_path, *[line] * 8) as s:
        session = await s.session()
        async with s.following(session) as stuck, s.following(session) as other:
            await asyncio.sleep(0.1)
            for _ in range(8):
                await s.run(session)
            async with asyncio.timeout(20):
                ends = 0
                async for sent in other:
                    ends += sent.type == "run_finished"
                    if ends == 8:
                        break
            recorded = [chunk.seq for chunk in s.app.journal.chunks(session)]
            had, ends = list[int](), 0
            async for sent in stuck:
                if not sent.comment:
                    had.append(sent.seq)
                    ends += sent.type == "run_finished"
                if ends == 8:
                    break
            assert had == sorted(set(had))
            assert set(recorded) <= set(had)

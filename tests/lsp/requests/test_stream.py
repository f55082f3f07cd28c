from __future__ import annotations

import asyncio
import json
import os
from typing import Any

from daiku.domain.chunks import Chunk, encode_event
from daiku.domain.events import Delta, Event, MessageEvent, ToolOutput
from daiku.fronts.lsp.requests.stream import HOLD_SECONDS, ChunkStream
from daiku.fronts.lsp.wire.frames import Frames
from daiku.fronts.lsp.wire.pipes import FdSink, OutputQueue, read_fd
from daiku.texts.text import Text
from tests.lsp.pair import MemorySink


def chunk(seq: int, event: Event, run: str = "run_1") -> Chunk:
    return Chunk(seq, "2026-11-21T00:00:00.000Z", "ses_1", run, "coordinator", event, encode_event(event))


class Reader:
    """What a client has read so far."""

    def __init__(self) -> None:
        self.values: list[dict[str, Any]] = []
        self.writes = 0
        self._frames = Frames()
        self.sink = MemorySink(self._take)

    def _take(self, data: bytes) -> None:
        self.writes += 1
        for body in self._frames.feed(data):
            assert isinstance(body, bytes)
            message = json.loads(body)
            assert message["params"]["token"] == "t"
            self.values.append(message["params"]["value"])


async def test_a_delta_goes_out_at_once_and_alone() -> None:
    reader = Reader()
    stream = ChunkStream(OutputQueue(reader.sink), "t")
    stream.send(chunk(1, Delta(text="日本")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert reader.values == [json.loads(chunk(1, Delta(text="日本")).json())]


async def test_what_is_said_in_one_turn_of_the_loop_is_one_write() -> None:
    reader = Reader()
    stream = ChunkStream(OutputQueue(reader.sink), "t")
    for i in range(100):
        stream.send(chunk(i, Delta(text="x")))
    await asyncio.sleep(0.01)
    assert (len(reader.values), reader.writes) == (100, 1)


async def test_deltas_that_meet_a_busy_pipe_become_one_that_says_which_it_is() -> None:
    reader = Reader()
    outlet = OutputQueue(reader.sink)
    stream = ChunkStream(outlet, "t")
    reader.sink.stuck = True
    stream.send(chunk(1, Delta(text="a")))
    await asyncio.sleep(0.005)
    for i in range(2, 6):
        stream.send(chunk(i, Delta(text=str(i))))
    stream.send(chunk(6, ToolOutput(id="c", text="out")))
    stream.send(chunk(7, Delta(text="b"), run="run_2"))
    stream.send(chunk(8, MessageEvent(role="assistant", text=Text("whole"))))
    reader.sink.free()
    await asyncio.sleep(0.005)
    assert [(v.get("seqFrom"), v["seq"], v["data"].get("text")) for v in reader.values] == [
        (None, 1, "a"),
        (2, 5, "2345"),
        (None, 6, "out"),
        (None, 7, "b"),
        (None, 8, "whole"),
    ]


async def test_what_two_commands_print_at_a_time_is_kept_apart() -> None:
    reader = Reader()
    outlet = OutputQueue(reader.sink)
    stream = ChunkStream(outlet, "t")
    reader.sink.stuck = True
    stream.send(chunk(1, Delta(text="a")))
    await asyncio.sleep(0.005)
    for seq, call, text in ((2, "one", "1"), (3, "one", "1"), (4, "two", "2"), (5, "one", "1")):
        stream.send(chunk(seq, ToolOutput(id=call, text=text)))
    stream.flush()
    reader.sink.free()
    await asyncio.sleep(0.005)
    said = [(v["data"]["id"], v["data"]["text"]) for v in reader.values[1:]]
    assert said == [("one", "11"), ("two", "2"), ("one", "1")]


async def test_held_deltas_are_said_after_forty_milliseconds() -> None:
    reader = Reader()
    outlet = OutputQueue(reader.sink)
    stream = ChunkStream(outlet, "t")
    reader.sink.stuck = True
    stream.send(chunk(1, Delta(text="a")))
    await asyncio.sleep(0.005)
    stream.send(chunk(2, Delta(text="b")))
    stream.send(chunk(3, Delta(text="c")))
    before = outlet.pending
    await asyncio.sleep(HOLD_SECONDS * 2)
    assert outlet.pending > before or outlet._fresh
    reader.sink.free()
    await asyncio.sleep(0.005)
    assert "".join(v["data"]["text"] for v in reader.values) == "abc"


async def test_a_client_that_reads_nothing_costs_bounded_memory_and_no_text() -> None:
    reader = Reader()
    outlet = OutputQueue(reader.sink)
    stream = ChunkStream(outlet, "t")
    reader.sink.stuck = True
    words = ["word " * 20] * 20_000
    for i, word in enumerate(words):
        stream.send(chunk(i + 1, Delta(text=word)))
        if i % 1000 == 0:
            await asyncio.sleep(0.001)
    await asyncio.sleep(0)
    assert outlet.pending < 4 * 1024 * 1024
    reader.sink.free()
    stream.flush()
    await asyncio.sleep(0.01)
    assert "".join(v["data"]["text"] for v in reader.values) == "".join(words)
    seqs = [n for v in reader.values for n in range(v.get("seqFrom", v["seq"]), v["seq"] + 1)]
    assert seqs == list(range(1, len(words) + 1))


async def test_a_full_pipe_never_stops_the_loop() -> None:
    read, write = os.pipe()
    outlet = OutputQueue(FdSink(write))
    data = b"x" * 300_000
    outlet.write(data)
    await asyncio.sleep(0.01)
    assert outlet.busy
    ticks = 0
    for _ in range(5):
        await asyncio.sleep(0.001)
        ticks += 1
    assert ticks == 5
    got = bytearray()
    reading = asyncio.ensure_future(read_fd(read, got.extend))
    await outlet.wait_drained(5)
    outlet.close()
    os.close(write)
    await reading
    os.close(read)
    assert bytes(got) == data


async def test_a_reader_that_went_away_is_no_error() -> None:
    read, write = os.pipe()
    outlet = OutputQueue(FdSink(write))
    os.close(read)
    outlet.write(b"x")
    await asyncio.sleep(0.01)
    assert outlet.closed
    outlet.write(b"y")
    os.close(write)

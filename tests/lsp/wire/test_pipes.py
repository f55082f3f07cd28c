"""What the server says goes out, and waits for nobody who has left."""

from __future__ import annotations

import asyncio
from typing import Any

from daiku.fronts.lsp.wire.pipes import OutputQueue, StreamSink


class Leaving:
    """A client over TCP whose side is full, and who goes away while it is waited for."""

    def __init__(self) -> None:
        self.transport = self
        self.gone = False
        self.closed = False

    def get_write_buffer_size(self) -> int:
        return StreamSink.LIMIT + 1

    def is_closing(self) -> bool:
        return self.gone

    async def drain(self) -> None:
        self.gone = True
        raise ConnectionResetError

    def close(self) -> None:
        self.closed = True


async def test_a_client_that_leaves_while_it_is_waited_for_ends_the_output() -> None:
    client: Any = Leaving()
    outlet = OutputQueue(StreamSink(client))
    outlet.write(b"anybody there?")
    async with asyncio.timeout(5):
        await outlet.wait_drained(4)
    assert (outlet.closed, outlet.pending, client.closed) == (True, 0, True)

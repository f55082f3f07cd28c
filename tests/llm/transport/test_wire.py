"""Connections: each is given back when its reply has ended, and one that the server closed costs no try."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from daiku.domain.base import JsonObject
from daiku.domain.config import ProviderSettings
from daiku.domain.messages import Reply, Restarted
from daiku.models.openai.chat import ChatDecoder
from daiku.models.transport.service import Service
from daiku.models.transport.stream import encode_json
from daiku.models.transport.wire import stream_reply
from daiku.run.rules.calls.toolnames import NameMap
from tests.llm.doors import DOORS, Door
from tests.llm.server import LEAVE, Answer, ModelServer
from tests.llm.talk import closing, request

SERVICE = Service(name="x", label="X")


class Pieces(httpx2.AsyncByteStream):
    """A body that arrives in pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            await asyncio.sleep(0)
            yield piece

    async def aclose(self) -> None:
        self.closed = True


def timers() -> int:
    """How many calls the loop still has to make at some time."""
    loop: Any = asyncio.get_running_loop()
    return sum(not handle.cancelled() for handle in loop._scheduled)


async def test_a_reply_that_has_ended_leaves_no_timer_and_no_connection_behind() -> None:
    said: list[JsonObject] = [{"choices": [{"delta": {"content": word}}]} for word in ("Hel", "lo")]
    end: JsonObject = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    body = Pieces(*(b"data: " + encode_json(each) + b"\n\n" for each in (*said, end)), b"data: [DONE]\n\n")

    async def open_response() -> httpx2.Response:
        return httpx2.Response(200, stream=body)

    before = timers()
    decoder = ChatDecoder(SERVICE, NameMap())
    heard = [event async for event in stream_reply(SERVICE, ProviderSettings(), open_response, decoder)]
    assert isinstance(heard[-1], Reply)
    assert heard[-1].message.text == "Hello"
    assert (timers() - before, body.closed) == (0, True)


@pytest.mark.parametrize("door", DOORS, ids=str)
@pytest.mark.parametrize(("closed", "tries"), [(1, 0), (2, 1)])
async def test_a_request_is_sent_again_at_once_if_the_server_had_closed_its_connection(
    door: Door, closed: int, tries: int, model_server: ModelServer
) -> None:
    """llama.cpp says that it keeps a connection and closes it with each streamed reply."""
    said = door.says(["Hello"], "stop")
    model_server.answer(door.path, said, *[Answer([LEAVE])] * closed, said)
    models, adapter = door.open(model_server)
    first, second = [[e async for e in adapter.stream(request(model=door.model))] for _ in range(2)]
    await models.aclose()
    assert [closing(heard).message.text for heard in (first, second)] == ["Hello", "Hello"]
    assert [type(event) for event in second].count(Restarted) == tries
    assert sum(each.path.startswith(door.path) for each in model_server.asked) == 2 + closed

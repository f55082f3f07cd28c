from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from daiku.domain.errors import Failure, UsageError
from daiku.fronts.lsp.wire.frames import frame
from daiku.fronts.lsp.wire.protocol import Protocol
from daiku.fronts.lsp.wire.refused import RpcError
from daiku.texts.text import Text
from tests.cases import examples
from tests.lsp.pair import Client, retained


class Params(BaseModel):
    text: str
    number: int = 0


async def echo(params: Any) -> str:
    return Params.model_validate({} if params is None else params).model_dump_json()


async def sleep(_: Any) -> str:
    await asyncio.sleep(60)
    return "null"


async def boom(_: Any) -> str:
    raise KeyError("sk-secret")


async def expected(_: Any) -> str:
    raise UsageError(Failure(kind="not_found", message=Text("No such thing."), hint=Text("Look elsewhere.")))


def connect(*, ready: bool = True) -> Client:
    protocol = Protocol()

    async def initialize(_: Any) -> str:
        return "{}"

    async def shutdown(_: Any) -> str:
        return "null"

    async def ask(_: Any) -> str:
        try:
            async with asyncio.timeout(0.05):
                return json.dumps(await protocol.ask("client/slow", {}))
        except TimeoutError:
            return '"given up"'

    protocol.handlers.update(
        {"initialize": initialize, "shutdown": shutdown, "echo": echo, "sleep": sleep, "boom": boom}
        | {"expected": expected, "ask": ask}
    )
    client = Client(protocol)
    client.attach()
    if ready:
        protocol.mark_initialized()
    return client


async def test_a_request_gets_its_result() -> None:
    client = connect()
    assert await client.request("echo", {"text": "hi"}) == {"text": "hi", "number": 0}
    assert await client.request("echo", {"text": "hi"}, "an id of letters") == {"text": "hi", "number": 0}


async def test_wrong_params_are_answered_with_every_problem() -> None:
    client = connect()
    error = await client.refused("echo", {"number": "x"})
    assert error.code == -32602
    assert len(error.data) == 2
    assert any(p.startswith("text:") for p in error.data)
    assert any(p.startswith("number:") for p in error.data)


@pytest.mark.parametrize("params", [[], [1], "text", 7, 1.5, True, False, {"text": None}, None])
async def test_params_of_any_json_type_are_answered(params: Any) -> None:
    error = await connect().refused("echo", params)
    assert error.code == -32602
    assert error.data


async def test_an_unknown_method_is_told() -> None:
    assert (await connect().refused("textDocument/nothing")).code == -32601
    assert (await connect().refused("daiku/nothing", {})).code == -32601


async def test_an_unexpected_error_tells_its_class_and_nothing_else() -> None:
    error = await connect().refused("boom", {})
    assert (error.code, error.message, error.data) == (-32603, "KeyError", None)


async def test_an_expected_error_tells_what_it_is_and_what_to_do() -> None:
    error = await connect().refused("expected", {})
    assert (error.code, error.message) == (-32803, "No such thing.")
    assert error.data == {"kind": "not_found", "message": "No such thing.", "hint": "Look elsewhere."}


async def test_a_cancelled_request_is_answered_at_once() -> None:
    client = connect()
    waiting = client.start("sleep", {}, "s")
    await asyncio.sleep(0)
    client.notify("$/cancelRequest", {"id": "s"})
    assert (await client.answer_to("s"))["error"]["code"] == -32800
    waiting.cancel()


async def test_a_request_cancelled_before_it_began_is_answered() -> None:
    client = connect()
    request = {"jsonrpc": "2.0", "id": 9, "method": "sleep"}
    cancel = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 9}}
    client.raw(frame(json.dumps(request).encode()) + frame(json.dumps(cancel).encode()))
    assert (await client.answer_to(9))["error"]["code"] == -32800


async def test_requests_before_initialize_and_after_shutdown_are_refused() -> None:
    client = connect(ready=False)
    assert (await client.refused("echo", {"text": "x"})).code == -32002
    client.notify("textDocument/didOpen", {"anything": 1})
    assert await client.request("initialize", {}) == {}
    assert (await client.refused("initialize", {})).code == -32600
    assert await client.request("shutdown") is None
    assert (await client.refused("echo", {"text": "x"})).code == -32600


@pytest.mark.parametrize(
    ("body", "code", "answered"),
    [
        (b"{", -32700, None),
        (b"", -32700, None),
        (b"nonsense", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":NaN}}', -32700, None),
        (b"[" * 100_000, -32700, None),
        (b"3", -32600, None),
        (b"null", -32600, None),
        (b'"text"', -32600, None),
        (b"{}", -32600, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":7,"method":"echo"}]', -32600, 7),
        (b'{"id":7,"method":"echo"}', -32600, 7),
        (b'{"jsonrpc":"1.0","id":7,"method":"echo"}', -32600, 7),
        (b'{"jsonrpc":2.0,"id":7,"method":"echo"}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":12}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":null}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":7}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":null,"method":"echo"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"echo"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":{"a":1},"method":"echo"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"nothing"}', -32601, 1.5),
    ],
)
async def test_a_malformed_message_is_answered(body: bytes, code: int, answered: Any) -> None:
    client = connect()
    client.raw(frame(body))
    assert (await client.answer_to(answered))["error"]["code"] == code
    assert await client.request("echo", {"text": "alive"})


@pytest.mark.parametrize(
    "data",
    [
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: 99999999999999999999\r\n\r\n",
        b"Content-Type: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\xff\xfe\x00\x00\r\n\r\n",
    ],
)
async def test_a_malformed_frame_is_answered(data: bytes) -> None:
    client = connect()
    client.raw(data)
    assert (await client.answer_to(None))["error"]["code"] == -32700
    assert await client.request("echo", {"text": "alive"})


async def test_a_length_that_is_too_long_costs_no_more_than_its_own_message() -> None:
    client = connect()
    good = frame(b'{"jsonrpc":"2.0","id":"after","method":"echo","params":{"text":"x"}}')
    client.raw(b'Content-Length: 90\r\n\r\n{"jsonrpc":"2.0","id":1,"method":"echo"}' + good + good[:0])
    assert (await client.answer_to(None))["error"]["code"] == -32700
    assert "result" in await client.answer_to("after")


async def test_a_jsonrpc_key_within_params_is_just_data() -> None:
    client = connect()

    async def whole(params: Any) -> str:
        return json.dumps(params)

    client.protocol.handlers["whole"] = whole
    params = {"a": {"jsonrpc": "2.0", "id": 1, "method": "x"}, "b": [{"jsonrpc": "2.0", "result": None}]}
    assert await client.request("whole", params) == params


async def test_half_a_pair_and_broken_utf8_are_mended_not_refused() -> None:
    client = connect()
    client.raw(frame(b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"a\\ud83db"}}'))
    assert (await client.answer_to(1))["result"]["text"] == "a\ufffdb"
    client.raw(frame(b'{"jsonrpc":"2.0","id":2,"method":"echo","params":{"text":"a\xffb"}}'))
    assert (await client.answer_to(2))["result"]["text"] == "a\ufffdb"


async def test_a_second_request_with_an_id_under_way_is_refused() -> None:
    client = connect()
    client.start("sleep", {}, 5)
    client.send({"jsonrpc": "2.0", "id": 5, "method": "echo", "params": {"text": "x"}})
    assert (await client.answer_to(5))["error"]["code"] == -32600
    client.notify("$/cancelRequest", {"id": 5})
    await client.until(lambda: sum("method" not in m for m in client.heard) == 2)
    assert (await client.request("echo", {"text": "again"}, 5))["text"] == "again"


@pytest.mark.parametrize("msg_id", [12345, "no", None, 1.5])
async def test_an_answer_to_nothing_is_ignored(msg_id: Any) -> None:
    client = connect()
    client.send({"jsonrpc": "2.0", "id": msg_id, "result": {}})
    client.send({"jsonrpc": "2.0", "id": msg_id, "error": {"code": 1, "message": "x"}})
    assert await client.request("echo", {"text": "alive"})
    assert len(client.heard) == 1


async def test_giving_up_a_question_tells_the_client_and_a_late_answer_harms_nobody() -> None:
    client = connect()

    async def slow(_: Any) -> str:
        await client.until(lambda: client.said("$/cancelRequest"))
        return "late"

    client.on["client/slow"] = slow
    assert await client.request("ask") == "given up"
    assert client.said("$/cancelRequest") == [{"id": 1}]
    assert await client.request("echo", {"text": "alive"})
    assert not client.said("window/showMessage")


async def test_the_client_may_answer_with_anything() -> None:
    client = connect()
    for error in ({"code": "x"}, "text", None, {}, {"code": -1, "message": {"a": 1}}):
        asked = asyncio.ensure_future(client.protocol.ask("client/slow", {}))
        msg_id = client.protocol.next_token
        await client.until(lambda n=msg_id: any(m.get("id") == n for m in client.heard))
        client.send({"jsonrpc": "2.0", "id": msg_id, "error": error})
        with pytest.raises(RpcError):
            await asked


async def test_nothing_is_kept_of_what_is_over() -> None:
    client = connect()
    for i in range(200):
        client.notify("textDocument/didChange", {"version": i})
        await client.request("echo", {"text": "x"})
    await client.refused("boom", {})
    await client.refused("ask")
    assert retained(client.protocol) == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
ODD = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "2.0", "2.0", 2, None]),
        "id": JSON,
        "method": st.sampled_from(["echo", "boom", "sleep", "$/cancelRequest", "exit", "$/progress"]) | JSON,
        "params": JSON,
        "result": JSON,
        "error": JSON,
    },
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.binary(max_size=30) | ODD.map(lambda m: frame(json.dumps(m).encode())), max_size=6))
def test_whatever_comes_in_the_server_lives_and_answers(pieces: list[bytes]) -> None:
    async def scenario() -> None:
        client = connect()
        for piece in pieces:
            client.raw(piece)
        client.raw(b"\r\n\r\n")
        client.raw(frame(b'{"jsonrpc":"2.0","id":"alive","method":"echo","params":{"text":"x"}}'))
        for _ in range(3):  # the longest header block that garbage may have left open ends here
            client.raw(
                b"\r\n\r\n" + frame(b'{"jsonrpc":"2.0","id":"alive2","method":"echo","params":{"text":"x"}}')
            )
        await client.until(lambda: any(m.get("id") in ("alive", "alive2") for m in client.heard))
        client.protocol.cancel_all()
        client.protocol.end()

    asyncio.run(scenario())

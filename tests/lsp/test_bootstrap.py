from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter

from daiku import __version__, api
from daiku.fronts.lsp import bootstrap, initialize, server
from daiku.fronts.lsp.bootstrap import answer_initialize
from daiku.fronts.lsp.requests.methods import METHODS
from daiku.fronts.lsp.wire.frames import Frames, frame
from tests.cases import for_each
from tests.conftest import ROOT
from tests.test_api import PARAMS_OF_INITIALIZE


def initialize_request(params: Any, msg_id: Any = 1) -> bytes:
    return frame(
        json.dumps({"jsonrpc": "2.0", "id": msg_id, "method": "initialize", "params": params}).encode()
    )


def knock(data: bytes) -> tuple[list[Any], bytes, initialize.Offer | None]:
    """What the door says to `data`, and what it hands on."""
    inlet, feed = os.pipe()
    read, outlet = os.pipe()
    os.write(feed, data)
    os.close(feed)
    early, offer = answer_initialize(inlet, outlet)
    os.close(outlet)
    said = os.read(read, 1_000_000)
    os.close(read)
    os.close(inlet)
    return [json.loads(body) for body in Frames().feed(said) if isinstance(body, bytes)], early, offer


def test_the_generated_names_of_methods_are_true() -> None:
    assert tuple(METHODS) == initialize.METHODS, "run npm run gen"


converter = cache(default_converter)


def computed(capabilities: types.ClientCapabilities) -> dict[str, Any]:
    """What pygls computes from features like ours."""
    server = LanguageServer(
        "daiku",
        __version__,
        text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
        converter_factory=converter,
    )
    for command in api.COMMANDS:
        server.command(command)(lambda *_: None)
    kinds = [types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite, types.CodeActionKind.Source]
    options = types.CodeActionOptions(code_action_kinds=kinds, resolve_provider=True)
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)(lambda *_: None)
    server.feature(types.CODE_ACTION_RESOLVE)(lambda *_: None)
    gen = server.protocol.lsp_initialize(types.InitializeParams(capabilities=capabilities))
    with pytest.raises(StopIteration) as end:
        next(gen)
    return converter().unstructure(end.value.value)


@settings(deadline=None)  # pygls takes its time
@given(st.lists(st.sampled_from(["utf-8", "utf-16", "utf-32", "utf-7", "x"]), max_size=4) | st.none())
def test_the_static_answer_is_what_pygls_computes(encodings: list[str] | None) -> None:
    general = types.GeneralClientCapabilities(position_encodings=encodings)
    expected = computed(types.ClientCapabilities(general=general))
    offer = initialize.read_offer({"capabilities": {"general": {"positionEncodings": encodings}}})
    said: Any = json.loads(json.dumps(initialize.initialize_result(offer)))
    experimental = said["capabilities"].pop("experimental")
    assert said == json.loads(json.dumps(expected))
    daiku = api.ServerOffer.model_validate(experimental["daiku"])
    assert daiku.methods == tuple(METHODS)


def test_the_door_answers_initialize_and_hands_on_the_rest() -> None:
    after = frame(b'{"jsonrpc":"2.0","method":"initialized"}') + b"Content-Le"
    said, early, offer = knock(initialize_request(PARAMS_OF_INITIALIZE, "first") + after)
    assert said[0]["id"] == "first"
    assert said[0]["result"]["serverInfo"]["name"] == "daiku"
    assert early == after
    assert offer is not None
    assert (offer.encoding, offer.locale, offer.approvals) == ("utf-8", "ja", True)
    assert offer.folders == ("/tmp/a b",)


@for_each(
    "data",
    [
        b"",
        b"hello\r\n\r\n" + initialize_request({}),
        frame(b"{"),
        frame(b"[" * 20_000),
        frame(b'{"jsonrpc":"2.0","id":1,"method":"daiku/chat"}'),
        initialize_request([]),
        initialize_request({"capabilities": 5}),
        initialize_request({"initializationOptions": {"client": {"approvals": "yes"}}}),
        initialize_request({}, None),
        initialize_request({}, True),
    ],
)
def test_the_door_leaves_everything_unusual_to_the_server(data: bytes) -> None:
    assert knock(data) == ([], data, None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        "processId",
        "rootUri",
        "capabilities",
        "initializationOptions",
        "workspaceFolders",
        "client",
        "general",
        "workspace",
        "window",
        "positionEncodings",
        "settings",
        "locale",
        "workspaceEdit",
        "resourceOperations",
    ]
)


@given(st.recursive(JSON, lambda inner: st.dictionaries(KEYS, inner, max_size=5), max_leaves=12))
def test_params_of_initialize_are_either_told_to_be_wrong_or_read(params: Any) -> None:
    found = initialize.find_problems(params)
    if not found:
        offer = initialize.read_offer(params)
        assert offer.encoding in initialize.ENCODINGS
        json.dumps(initialize.initialize_result(offer))
    else:
        assert all(isinstance(problem, str) and problem for problem in found)


@for_each(
    ("options", "place"),
    [
        (["--tcp", "127.0.0.1:4000"], ("127.0.0.1", 4000)),
        (["--tcp=host:5"], ("host", 5)),
        (["--tcp", ":4000"], ("127.0.0.1", 4000)),
        (["--tcp", "[::1]:4000"], ("::1", 4000)),
    ],
)
def test_an_address_to_listen_at_is_understood_as_people_write_it(
    monkeypatch: pytest.MonkeyPatch, options: list[str], place: tuple[str, int]
) -> None:
    heard: list[tuple[str, int]] = []

    def serve(*, tcp: tuple[str, int]) -> int:
        heard.append(tcp)
        return 0

    monkeypatch.setattr(server, "main", serve)
    assert bootstrap.main(options) == 0
    assert heard == [place]


def test_the_door_imports_nothing_heavy() -> None:
    code = "import sys, daiku.fronts.lsp.bootstrap; print([m for m in ('pydantic','pygls','lsprotocol','click','asyncio') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "server", capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"

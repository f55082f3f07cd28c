from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.errors import LLMError
from daiku.fronts.lsp.connection import ClientModels
from tests.lsp.conftest import connected
from tests.lsp.pair import Answered, retained

LENT: dict[str, Any] = {"approvals": True, "languageModel": True}
EDITOR: dict[str, Any] = {"llm": {"provider": "editor", "model": "copilot-x"}}
OFFERED = {"models": [{"id": "copilot-x", "name": "X", "vendor": "copilot", "context": 64000}]}


async def test_a_chat_can_be_answered_by_the_editors_model(workspace: Path) -> None:
    async with connected(workspace, client=LENT, settings=EDITOR) as server:
        client = server.client

        def answer(params: Any) -> Any:
            for text in ("Hel", "lo."):
                client.notify(
                    "$/progress",
                    {"token": params["partialResultToken"], "value": {"type": "text", "text": text}},
                )
            client.notify("$/progress", {"token": params["partialResultToken"], "value": {"type": "?"}})
            return {"parts": [{"type": "text", "text": "Hello."}], "promptTokens": 5, "completionTokens": 2}

        client.on["daiku/languageModel"] = answer
        client.on["daiku/languageModel/list"] = lambda _: OFFERED
        result = await client.request("daiku/chat", {"text": "Hi", "partialResultToken": "t"})
        assert (result["status"], result["text"]) == ("completed", "Hello.")
        assert [c["data"]["text"] for c in client.chunks("t") if c["type"] == "delta"] == ["Hel", "lo."]
        asked = client.said("daiku/languageModel")[0]
        assert asked["model"] == "copilot-x"
        assert asked["messages"][-1]["parts"][-1]["text"].endswith("Hi")
        models = await client.request("daiku/models")
        assert "editor/copilot-x" in [m["id"] for m in models["models"]]


async def test_stopping_the_run_stops_the_editors_model(workspace: Path) -> None:
    async with connected(workspace, client=LENT, settings=EDITOR) as server:
        client = server.client
        client.on["daiku/languageModel"] = lambda _: client.until(lambda: client.said("$/cancelRequest"))
        client.on["daiku/languageModel/list"] = lambda _: OFFERED
        waiting = client.start("daiku/chat", {"text": "Hi", "partialResultToken": "t"})
        await client.until(lambda: client.said("daiku/languageModel"))
        asked = next(m for m in client.heard if m.get("method") == "daiku/languageModel")
        await client.request("daiku/cancel", {"runId": client.chunks("t")[0]["run"]})
        assert (await waiting)["status"] == "cancelled"
        assert client.said("$/cancelRequest") == [{"id": asked["id"]}]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (
            Answered(
                {"code": -32803, "message": "x", "data": {"kind": "rate_limit", "message": "Slow down."}}
            ),
            "rate_limit",
        ),
        (Answered({"code": -32603, "message": "Boom", "data": {"kind": ["odd"]}}), "bad_request"),
        ({"parts": [{"type": "unknown"}]}, "format"),
        (None, "format"),
    ],
)
async def test_what_goes_wrong_in_the_editor_is_an_error_of_the_model(
    workspace: Path, answer: Any, kind: str
) -> None:
    async with connected(workspace, client=LENT, settings=EDITOR) as server:

        def give(_: Any) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        server.client.on["daiku/languageModel"] = give
        bridge = ClientModels(server.client.protocol)
        with pytest.raises(LLMError) as error:
            await bridge.request("m", [], [])
        assert error.value.failure.kind == kind
        assert error.value.failure.message


Script = Callable[..., str]


async def test_nothing_of_the_bridge_is_kept(workspace: Path) -> None:
    async with connected(workspace, client=LENT, settings=EDITOR) as server:
        client = server.client
        client.on["daiku/languageModel"] = lambda _: {"parts": []}
        bridge = ClientModels(client.protocol)
        for _ in range(20):
            await bridge.request("m", [], [], lambda _: None)
        await asyncio.sleep(0.01)
        assert retained(client.protocol) == 0

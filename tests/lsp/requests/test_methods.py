from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daiku import api
from daiku.domain.runs import RunResult
from daiku.fronts.lsp.requests.methods import METHODS
from tests.lsp.conftest import connected, started

Script = Callable[..., str]


async def test_a_chat_streams_chunks_and_is_answered_with_a_run_result(
    workspace: Path, script: Script
) -> None:
    model = script({"text": "Hello, " + "world. " * 5})
    async with connected(workspace) as server:
        result = await server.client.request(
            "daiku/chat", {"text": "Hi", "model": model, "partialResultToken": "t"}
        )
        RunResult.model_validate(result)
        chunks = server.client.chunks("t")
        assert result["status"] == "completed"
        assert result["text"].startswith("Hello, world.")
        assert chunks[0]["type"] == "run_started"
        assert chunks[0]["data"]["prompt"] == "Hi"
        assert chunks[-1]["type"] == "run_finished"
        assert [c["seq"] for c in chunks] == list(range(1, len(chunks) + 1))
        assert "".join(c["data"]["text"] for c in chunks if c["type"] == "delta") == result["text"]
        assert result["lastSeq"] == chunks[-1]["seq"]
        for chunk in chunks:
            api.ChunkRecord.model_validate(chunk)


async def test_nothing_streams_after_the_answer(workspace: Path, script: Script) -> None:
    async with connected(workspace) as server:
        await server.client.request(
            "daiku/chat", {"text": "a", "model": script({"text": "b"}), "partialResultToken": 1}
        )
        await asyncio.sleep(0.1)
        answer = next(
            i for i, m in enumerate(server.client.heard) if "result" in m and "runId" in (m["result"] or {})
        )
        assert not [m for m in server.client.heard[answer:] if m.get("method") == "$/progress"]


async def test_a_session_is_made_listed_read_forked_exported_and_deleted(
    workspace: Path, script: Script, daiku_home: Path
) -> None:
    model = script({"text": "one"}, {"text": "two"})
    async with connected(workspace) as server:
        ask = server.client.request
        session = await ask("daiku/session/new", {"title": "Trees"})
        key = session["sessionId"]
        first = await ask(
            "daiku/chat", {"text": "a", "sessionId": key, "model": model, "partialResultToken": "t"}
        )
        assert first["sessionId"] == key
        listed = (await ask("daiku/session/list", {}))["sessions"]
        assert [s["sessionId"] for s in listed] == [key]
        assert not (await ask("daiku/session/list", {"query": "nothing like this"}))["sessions"]
        whole = await ask("daiku/session/get", {"sessionId": key})
        shown = [
            c for c in server.client.chunks("t") if c["type"] not in ("delta", "thinking", "tool_output")
        ]
        assert whole["chunks"] == shown
        after = shown[1]["seq"]
        tail = await ask("daiku/session/get", {"sessionId": key, "afterSeq": after})
        assert tail["chunks"] == [c for c in shown if c["seq"] > after]
        forked = await ask("daiku/session/fork", {"sessionId": key, "atSeq": first["lastSeq"]})
        assert forked["sessionId"] != key
        begun = await ask("daiku/session/fork", {"sessionId": key, "atSeq": 0})
        assert (await ask("daiku/session/get", {"sessionId": begun["sessionId"]}))["chunks"] == []
        for form in ("markdown", "json", "jsonl"):
            text = (await ask("daiku/session/export", {"sessionId": key, "format": form}))["text"]
            assert "one" in text
        trace = daiku_home / "traces" / f"{key}.jsonl"
        await ask("daiku/session/delete", {"sessionId": begun["sessionId"]})  # what waits is written before
        assert trace.exists()
        assert await ask("daiku/session/delete", {"sessionId": key}) is None
        assert not trace.exists()
        gone = await server.client.refused("daiku/session/get", {"sessionId": key})
        assert (gone.code, gone.data["kind"]) == (-32803, "not_found")


async def test_cancelling_the_request_is_answered_as_cancelled_and_the_run_is_ended(
    workspace: Path, script: Script
) -> None:
    model = script({"text": "word " * 500, "delay_ms": 20})
    async with connected(workspace) as server:
        client = server.client
        client.start(
            "daiku/chat", {"text": "a", "model": model, "partialResultToken": "t"}, "run"
        ).add_done_callback(lambda f: f.exception())
        await client.until(lambda: any(c["type"] == "delta" for c in client.chunks("t")))
        client.notify("$/cancelRequest", {"id": "run"})
        answer = await client.answer_to("run")
        assert answer["error"]["code"] == -32800
        assert client.chunks("t")[-1]["type"] == "run_finished"
        assert client.chunks("t")[-1]["data"]["status"] == "cancelled"


async def test_cancelling_the_run_answers_its_request_with_a_result(workspace: Path, script: Script) -> None:
    model = script({"text": "word " * 500, "delay_ms": 20})
    async with connected(workspace) as server:
        client = server.client
        waiting = client.start("daiku/chat", {"text": "a", "model": model, "partialResultToken": "t"})
        chunk = (await client.until(lambda: client.chunks("t")))[0]
        cancelled = await client.request("daiku/cancel", {"runId": chunk["run"]})
        assert cancelled["status"] == "cancelled"
        assert (await waiting)["status"] == "cancelled"


async def test_a_paused_run_goes_on_where_it_stopped(workspace: Path, script: Script) -> None:
    model = script(
        {"text": "word " * 20, "delay_ms": 10, "calls": [{"tool": "plan/get"}]}, {"text": "The end."}
    )
    async with connected(workspace) as server:
        client = server.client
        waiting = client.start("daiku/chat", {"text": "a", "model": model, "partialResultToken": "t"})
        run = (await client.until(lambda: client.chunks("t")))[0]["run"]
        paused = await client.request("daiku/pause", {"runId": run})
        assert paused["status"] == "paused"
        assert (await waiting)["status"] == "paused"
        resumed = await client.request("daiku/resume", {"runId": run, "partialResultToken": "u"})
        assert (resumed["runId"], resumed["status"], resumed["text"]) == (run, "completed", "The end.")
        again = await client.request("daiku/resume", {"runId": run})
        assert again["text"] == "The end."


PLAN = {
    "tool": "plan/propose",
    "args": {"goal": "Green tests", "name": "Mend", "steps": [{"name": "Look"}, {"name": "Mend"}]},
}


async def test_a_plan_is_answered_read_changed_and_approved(workspace: Path, script: Script) -> None:
    model = script({"text": "A plan.", "calls": [PLAN]}, {"text": "There it is."})
    async with connected(workspace) as server:
        ask = server.client.request
        result = await ask("daiku/plan", {"goal": "Green tests", "model": model, "approvals": "all"})
        api.PlanResult.model_validate(result)
        plan = result["plan"]
        assert [s["name"] for s in plan["steps"]] == ["Look", "Mend"]
        assert await ask("daiku/plan/get", {"planId": plan["planId"]}) == plan
        changed = await ask("daiku/plan/update", {"planId": plan["planId"], "name": "Repair"})
        assert changed == {**plan, "name": "Repair"}
        approved = await ask("daiku/plan/approve", {"planId": plan["planId"]})
        assert (approved["status"], approved["name"]) == ("approved", "Repair")
        assert await ask("daiku/plan/get", {"planId": plan["planId"]}) == approved
        assert (await server.client.refused("daiku/plan/get", {"planId": "plan_00000000"})).data[
            "kind"
        ] == "not_found"


async def test_commands_are_reported_with_their_exit_codes(workspace: Path, script: Script) -> None:
    calls = [{"tool": "shell/run", "args": {"command": c}} for c in ("echo one", "exit 3")]
    model = script({"calls": calls}, {"text": "Done."})
    async with connected(workspace) as server:
        result = await server.client.request(
            "daiku/run", {"commands": ["echo one", "exit 3"], "model": model, "approvals": "all"}
        )
        api.CommandsResult.model_validate(result)
        assert [(c["command"], c["exitCode"]) for c in result["commands"]] == [("echo one", 0), ("exit 3", 3)]
        assert "one" in result["commands"][0]["output"]


@pytest.mark.parametrize("method", ["daiku/code", "daiku/run"])
async def test_a_request_for_nothing_is_told_what_is_missing(workspace: Path, method: str) -> None:
    async with connected(workspace) as server:
        error = await server.client.refused(method, {})
        assert (error.code, bool(error.data)) == (-32602, True)


async def test_models_come_with_why_a_provider_cannot_be_used(workspace: Path, script: Script) -> None:
    async with connected(workspace) as server:
        found = await server.client.request("daiku/models")
        api.ModelsResult.model_validate(found)
        states = {p["provider"]: p for p in found["providers"]}
        assert not states["openai"]["usable"]
        assert states["openai"]["error"]["message"]
        assert states["scripted"]["usable"]
        assert found["selected"].startswith("scripted/")


async def test_models_are_told_of_in_the_language_of_the_client(workspace: Path, script: Script) -> None:
    async with connected(workspace, client={"locale": "ja"}) as server:
        found = await server.client.request("daiku/models")
        error = next(p["error"] for p in found["providers"] if p["provider"] == "openai")
        assert error["message"] == "OpenAI には API キーが必要ですが、設定されていません。"
        (demo,) = (model for model in found["models"] if model["provider"] == "scripted")
        assert demo["trait"] == "台本の再生で、モデルは答えません"


async def test_tools_and_agents_are_listed(workspace: Path) -> None:
    async with connected(workspace) as server:
        tools = {t["name"]: t for t in (await server.client.request("daiku/tools", {}))["tools"]}
        assert tools["shell/run"]["effect"] == "command"
        assert tools["shell/run"]["parameters"]["type"] == "object"
        agents = (await server.client.request("daiku/agents", {}))["agents"]
        assert "coordinator" in [a["name"] for a in agents]


async def test_configured_mcp_servers_are_listed_with_how_they_stand_and_not_started(workspace: Path) -> None:
    started = workspace / "started"
    command = [sys.executable, "-c", f"open({str(started)!r}, 'w').close()"]
    servers = [
        {"mcp_server_name": "files", "command": command},
        {"mcp_server_name": "odd", "url": "no address"},
    ]
    settings = {"llm": {"provider": "scripted"}, "mcp_servers": servers}
    async with connected(workspace, settings=settings, trusted=True) as server:
        found = (await server.client.request("daiku/tools", {}))["servers"]
        assert [(s["name"], s["status"], s["tools"]) for s in found] == [
            ("files", "unasked", []),
            ("odd", "unusable", []),
        ]
        assert found[0]["hint"] == "To allow it, run: daiku mcp allow files"
        assert found[1]["why"]
        told = (await server.client.request("workspace/executeCommand", {"command": "daiku.doctor"}))["text"]
        wanted = "MCP server files: unasked: Daiku does not use it until you allow it To allow it, run: daiku mcp allow files"
        assert f"· {wanted}" in told.splitlines()
    assert not started.exists()


@pytest.mark.parametrize(
    "params", [{"unknown": 1}, [], "x", 5, {"text": 1, "runId": 2, "sessionId": [], "planId": {}}]
)
async def test_every_method_answers_wrong_params(workspace: Path, params: Any) -> None:
    async with connected(workspace) as server:
        for method in sorted(METHODS):
            error = await server.client.refused(method, params)
            assert (method, error.code) == (method, -32602)
            assert isinstance(error.data, list), method
            assert error.data, method


async def test_an_unknown_run_is_told(workspace: Path) -> None:
    async with connected(workspace) as server:
        for method in ("pause", "cancel", "resume"):
            error = await server.client.refused(f"daiku/{method}", {"runId": "run_0"})
            assert (error.code, error.data["kind"]) == (-32803, "not_found")
        error = await server.client.refused(
            "daiku/approve", {"runId": "run_0", "approvalId": "x", "decision": "allow_once"}
        )
        assert error.code == -32803


async def test_a_wrong_setting_is_told_once_and_in_every_answer_and_can_be_mended(workspace: Path) -> None:
    async with connected(workspace, settings={"llm": {"modle": "x"}}) as server:
        shown = (await server.client.until(lambda: server.client.said("window/showMessage")))[0]
        assert "llm.modle" in shown["message"]
        assert "\n" not in shown["message"]
        error = await server.client.refused("daiku/models")
        assert (error.code, error.data["kind"]) == (-32803, "usage")
        server.client.notify(
            "workspace/didChangeConfiguration", {"settings": {"daiku": {"llm": {"provider": "scripted"}}}}
        )
        assert (await server.client.request("daiku/models"))["selected"].startswith("scripted/")


async def test_settings_are_fetched_from_a_client_that_offers_configuration(workspace: Path) -> None:
    async with started() as server:
        client = server.client
        client.on["workspace/configuration"] = lambda _: [{"llm": {"provider": "scripted"}}]
        await client.request("initialize", {"capabilities": {"workspace": {"configuration": True}}})
        client.notify("initialized", {})
        await client.until(lambda: client.said("workspace/configuration"))
        assert (await client.request("daiku/models"))["selected"].startswith("scripted/")


async def test_a_server_without_a_folder_works(script: Script) -> None:
    async with started() as server:
        await server.client.request("initialize", {"capabilities": {}})
        server.client.notify("initialized", {})
        assert (await server.client.request("daiku/session/list"))["sessions"] == []

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.conftest import connected
from tests.lsp.pair import Client

Script = Callable[..., str]
TOUCH = {"tool": "shell/run", "args": {"command": "touch made.txt"}}
ASK = {"tool": "user/ask", "args": {"question": "Tabs or spaces?", "choices": ["tabs", "spaces"]}}
PLAIN: dict[str, Any] = {"approvals": False}


def press(button: str) -> Callable[[Any], Any]:
    """Answers a message box with the button whose title begins so."""
    return lambda params: next((a for a in params["actions"] if a["title"].startswith(button)), None)


async def chat(client: Client, model: str) -> dict[str, Any]:
    return await client.request("daiku/chat", {"text": "go", "model": model, "partialResultToken": "t"})


def responses(client: Client) -> list[dict[str, Any]]:
    return [c["data"] for c in client.chunks("t") if c["type"] == "tool_response"]


async def test_a_client_that_approves_itself_is_asked_by_a_chunk(workspace: Path, script: Script) -> None:
    async with connected(workspace) as server:
        client = server.client
        waiting = client.start(
            "daiku/chat",
            {"text": "go", "model": script({"calls": [TOUCH]}, {"text": "ok"}), "partialResultToken": "t"},
        )
        asked = (
            await client.until(lambda: [c for c in client.chunks("t") if c["type"] == "approval_asked"])
        )[0]
        assert "touch made.txt" in asked["data"]["preview"]
        assert not client.said("window/showMessageRequest")
        answer = {"runId": asked["run"], "approvalId": asked["data"]["approvalId"], "decision": "allow_once"}
        assert await client.request("daiku/approve", answer) is None
        assert (await waiting)["status"] == "completed"
        assert (workspace / "made.txt").exists()
        assert (await client.refused("daiku/approve", answer)).code == -32803


@pytest.mark.parametrize(("button", "ok"), [("Allow", True), ("Reject", False), ("nothing", False)])
async def test_a_plain_editor_is_asked_by_a_message_box(
    workspace: Path, script: Script, button: str, ok: bool
) -> None:
    async with connected(workspace, client=PLAIN) as server:
        server.client.on["window/showMessageRequest"] = press(button)
        result = await chat(server.client, script({"calls": [TOUCH]}, {"text": "ok"}))
        assert result["status"] == "completed"
        assert [r["ok"] for r in responses(server.client)] == [ok]
        assert (workspace / "made.txt").exists() == ok
        box = server.client.said("window/showMessageRequest")[0]
        assert "touch made.txt" in box["message"]


async def test_a_plain_editor_is_told_what_a_read_asks_for(workspace: Path, script: Script) -> None:
    (workspace / ".env").write_text("TOKEN=abc\n", encoding="utf-8")
    async with connected(workspace, client=PLAIN) as server:
        server.client.on["window/showMessageRequest"] = press("Reject")
        look = {"tool": "files/read", "args": {"path": ".env"}}
        await chat(server.client, script({"calls": [look]}, {"text": "ok"}))
        box = server.client.said("window/showMessageRequest")[0]
        assert box["message"].startswith("Daiku wants to read this.\n.env looks like a secrets file")


async def test_an_editor_that_cannot_ask_rejects(workspace: Path, script: Script) -> None:
    async with connected(workspace, client=PLAIN) as server:
        result = await chat(server.client, script({"calls": [TOUCH]}, {"text": "ok"}))
        assert result["status"] == "completed"
        assert [r["ok"] for r in responses(server.client)] == [False]


async def test_buttons_are_in_the_language_of_the_editor(workspace: Path, script: Script) -> None:
    async with connected(workspace, client={**PLAIN, "locale": "ja-JP"}) as server:
        server.client.on["window/showMessageRequest"] = press("許可")
        await chat(server.client, script({"calls": [TOUCH]}, {"text": "ok"}))
        box = server.client.said("window/showMessageRequest")[0]
        assert box["message"].startswith("Daiku がコマンドを実行")
        assert (workspace / "made.txt").exists()


async def test_why_is_told_in_the_language_of_the_editor_and_kept_so(workspace: Path, script: Script) -> None:
    danger = {"tool": "shell/run", "args": {"command": "touch .git/hooks/pre-commit && rm -rf ~"}}
    careful = {"tool": "shell/run", "args": {"command": "touch .git/hooks/pre-commit"}}
    async with connected(workspace, client={"approvals": True, "locale": "ja"}) as server:
        client = server.client
        model = script(
            {"calls": [danger]}, {"calls": [careful]}, {"error": {"kind": "auth", "message": "No."}}
        )
        waiting = client.start("daiku/chat", {"text": "go", "model": model, "partialResultToken": "t"})
        asked = (
            await client.until(lambda: [c for c in client.chunks("t") if c["type"] == "approval_asked"])
        )[0]
        assert asked["data"]["why"].startswith(".git/hooks/pre-commit に触れます: git 自身のファイルです。")
        refused = responses(client)[0]
        assert refused["result"].startswith("常に拒否されます: あなたのホームフォルダー")
        answer = {"runId": asked["run"], "approvalId": asked["data"]["approvalId"], "decision": "reject_once"}
        await client.request("daiku/approve", answer)
        result = await waiting
        shown = await client.request("daiku/session/get", {"sessionId": result["sessionId"]})
        kept = [c["data"]["why"] for c in shown["chunks"] if c["type"] == "approval_asked"]
        assert kept == [asked["data"]["why"]]


async def test_an_export_for_people_is_in_their_language_and_one_for_programs_as_on_record(
    workspace: Path, script: Script
) -> None:
    model = script({"text": "never", "when": "no such words"})
    async with connected(workspace, client={"locale": "ja"}) as server:
        client = server.client
        session = (await chat(client, model))["sessionId"]

        async def exported(form: str) -> str:
            return (await client.request("daiku/session/export", {"sessionId": session, "format": form}))[
                "text"
            ]

        assert "**エラー:** 台本" in await exported("markdown")
        assert "The script" in await exported("jsonl")


async def test_a_command_tells_how_it_ended_in_the_language_of_the_editor(
    workspace: Path, script: Script
) -> None:
    model = script({"text": "never", "when": "no such words"})
    async with connected(workspace, client={"locale": "ja"}, settings={"llm": {"model": model}}) as server:
        await server.client.request(
            "workspace/executeCommand", {"command": "daiku.plan", "arguments": ["do it"]}
        )
        assert server.client.said("window/showMessage")[-1]["message"].startswith("台本")


async def test_failures_are_told_in_the_language_of_the_editor(workspace: Path, script: Script) -> None:
    async with connected(workspace, client={"approvals": True, "locale": "ja-JP"}) as server:
        error = await server.client.refused("daiku/cancel", {"runId": "run_0"})
        assert error.message == "実行 'run_0' はありません。"
        assert error.data["hint"] == "一覧は `daiku sessions list` で表示します。"
        result = await chat(server.client, script({"calls": [{"tool": "files/list", "args": {}}]}))
        assert result["error"]["message"].startswith("台本 "), result
        told = [c["data"]["message"] for c in server.client.chunks("t") if c["type"] == "error"]
        assert told == [result["error"]["message"]]


async def test_a_question_is_a_message_box_with_its_choices(workspace: Path, script: Script) -> None:
    async with connected(workspace, client=PLAIN) as server:
        server.client.on["window/showMessageRequest"] = press("spaces")
        await chat(server.client, script({"calls": [ASK]}, {"text": "ok"}))
        box = server.client.said("window/showMessageRequest")[0]
        assert box["message"] == "Tabs or spaces?"
        given = [c["data"]["text"] for c in server.client.chunks("t") if c["type"] == "input_given"]
        assert given == ["spaces"]


async def test_an_answer_from_elsewhere_takes_the_message_box_away(workspace: Path, script: Script) -> None:
    async with connected(workspace, client=PLAIN) as server:
        client = server.client
        forever: Any = client.until(lambda: client.said("$/cancelRequest"))
        client.on["window/showMessageRequest"] = lambda _: forever
        waiting = client.start(
            "daiku/chat",
            {"text": "go", "model": script({"calls": [ASK]}, {"text": "ok"}), "partialResultToken": "t"},
        )
        asked = (await client.until(lambda: [c for c in client.chunks("t") if c["type"] == "input_asked"]))[0]
        await client.until(lambda: client.said("window/showMessageRequest"))
        await client.request(
            "daiku/answer", {"runId": asked["run"], "inputId": asked["data"]["inputId"], "text": "both"}
        )
        assert (await waiting)["status"] == "completed"
        assert client.said("$/cancelRequest")


async def test_the_progress_bar_shows_the_run_and_its_button_cancels_it(
    workspace: Path, script: Script
) -> None:
    async with connected(workspace) as server:
        client = server.client
        model = script({"text": "word " * 500, "delay_ms": 20})
        waiting = client.start("daiku/chat", {"text": "go", "model": model, "workDoneToken": "w"})
        await client.until(lambda: len(client.said("$/progress")) >= 2)
        assert client.said("$/progress")[0]["value"]["kind"] == "begin"
        assert client.said("$/progress")[0]["value"]["cancellable"]
        client.notify("window/workDoneProgress/cancel", {"token": "w"})
        assert (await waiting)["status"] == "cancelled"
        assert client.said("$/progress")[-1]["value"] == {"kind": "end", "message": "cancelled"}


PLAN = """Project Name: p
Your Reply to the Human Prompter: Sure.
Current Focus: f
Plan:
- [ ] Step 1: Do it
Summary: Here you are."""
COMMANDS_OF_A_RUN = {
    "daiku.plan": (PLAN, "Here you are."),
    "daiku.generateCode": ("No change: here you are.", "No change: here you are."),
    "daiku.runCommands": ('{"commands": []}', "Nothing has to be run."),
    "daiku.explain": ("Here you are.", "Here you are."),
    "daiku.review": ("Here you are.", "Here you are."),
}
"""What the model says in the form of the command's agent, and what a person is shown of it."""


@pytest.mark.parametrize("command", COMMANDS_OF_A_RUN)
async def test_a_command_runs_with_progress_and_shows_what_was_said(
    workspace: Path, script: Script, command: str
) -> None:
    reply, shown = COMMANDS_OF_A_RUN[command]
    model = script({"text": reply})
    settings = {"llm": {"provider": "scripted", "model": model.removeprefix("scripted/")}}
    window = {"window": {"workDoneProgress": True}}
    async with connected(workspace, client=PLAIN, settings=settings, capabilities=window) as server:
        client = server.client
        client.on["window/workDoneProgress/create"] = lambda _: None
        result = await client.request(
            "workspace/executeCommand", {"command": command, "arguments": ["do it"]}
        )
        assert result["text"] == shown
        assert client.said("$/progress")[0]["value"]["kind"] == "begin"
        assert client.said("$/progress")[-1]["value"]["kind"] == "end"
        assert client.said("window/showMessage")[-1]["message"] == shown


async def test_new_chat_stop_resume_undo_and_doctor_are_commands(workspace: Path, script: Script) -> None:
    async with connected(workspace) as server:
        client = server.client

        async def command(name: str, *arguments: Any) -> Any:
            return await client.request(
                "workspace/executeCommand", {"command": name, "arguments": list(arguments)}
            )

        session = await command("daiku.newChat")
        assert session["sessionId"]
        assert await command("daiku.stop") is None
        report = await command("daiku.doctor")
        assert "openai" in report["text"]
        for name in ("daiku.undo", "daiku.resume"):
            error = await client.refused("workspace/executeCommand", {"command": name})
            assert (error.code, error.data["kind"]) == (-32803, "not_found")
        assert (await client.refused("workspace/executeCommand", {"command": "daiku.nothing"})).code == -32602
        assert (await client.refused("workspace/executeCommand", {"command": "daiku.plan"})).code == -32602
        assert (await client.refused("workspace/executeCommand", {"arguments": 5})).code == -32602

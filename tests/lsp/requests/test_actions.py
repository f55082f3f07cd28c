"""Code actions: listed at once and without a model, resolved to a command, carried out with what they are about."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.protocol import default_converter

from tests.lsp.conftest import Whole, connected, started
from tests.timing import uncollected

Script = Callable[..., str]
LAZY = {
    "codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}},
    "dataSupport": True,
    "resolveSupport": {"properties": ["edit", "command"]},
}
CODE = "def one():\n    return 1\n\n\ndef two():\n    x = 1\n    return y\n"
WRONG = {
    "range": {"start": {"line": 6, "character": 11}, "end": {"line": 6, "character": 12}},
    "message": "undefined\nname 'y'",
    "severity": 1,
    "source": "pyflakes",
    "code": "F821",
    "data": {"kept": True},
}
NOWHERE = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}


def capabilities(action: Any = LAZY) -> dict[str, Any]:
    return {"textDocument": {"codeAction": action}, "window": {"workDoneProgress": True}}


def lines(first: int, last: int) -> dict[str, Any]:
    return {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}}


def opened(server: Whole, workspace: Path, text: str = CODE) -> str:
    uri = (workspace / "code.py").as_uri()
    item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
    server.client.notify("textDocument/didOpen", {"textDocument": item})
    return uri


async def listed(server: Whole, uri: str, where: Any, **context: Any) -> Any:
    context.setdefault("diagnostics", [])
    params = {"textDocument": {"uri": uri}, "range": where, "context": context}
    return await server.client.request("textDocument/codeAction", params)


def titles(actions: Any) -> list[str]:
    return [action["title"] for action in actions]


async def test_each_problem_has_its_fix_and_a_selection_its_rewrites(workspace: Path) -> None:
    async with connected(workspace, capabilities=capabilities()) as server:
        uri = opened(server, workspace)
        other = {**WRONG, "message": "second", "range": lines(5, 6)}
        actions = await listed(server, uri, lines(4, 7), diagnostics=[WRONG, WRONG, other])
        assert titles(actions) == [
            "Fix with Daiku: undefined name 'y'",
            "Fix with Daiku: second",
            "Fix all 2 problems here with Daiku",
            "Refactor with Daiku…",
            "Document with Daiku",
            "Write tests with Daiku",
            "Translate comments with Daiku",
            "Explain with Daiku",
            "Review this file with Daiku",
        ]
        assert [a["kind"] for a in actions] == ["quickfix"] * 3 + ["refactor.rewrite"] * 4 + ["source"] * 2
        assert actions[0]["diagnostics"] == [WRONG]
        assert not any("command" in a or "edit" in a for a in actions)
        default_converter().structure(actions, list[types.CodeAction])


async def test_only_what_was_asked_for_is_listed(workspace: Path) -> None:
    async with connected(workspace, capabilities=capabilities()) as server:
        uri = opened(server, workspace)

        async def kinds(where: Any = NOWHERE, **context: Any) -> set[str]:
            return {a["kind"] for a in await listed(server, uri, where, **context)}

        some = {"diagnostics": [WRONG]}
        assert await kinds(lines(0, 2), only=["quickfix"], **some) == {"quickfix"}
        assert await kinds(lines(0, 2), only=["refactor"], **some) == {"refactor.rewrite"}
        assert await kinds(lines(0, 2), only=["source.fixAll"], **some) == set()
        assert await kinds(lines(0, 2), only=["ref"], **some) == set()
        assert await kinds() == {"source"}
        assert await kinds(triggerKind=2) == set()
        assert await kinds(triggerKind=2, **some) == {"quickfix"}


async def test_titles_are_in_the_language_of_the_person(workspace: Path) -> None:
    client = {"locale": "ja", "approvals": True}
    async with connected(workspace, capabilities=capabilities(), client=client) as server:
        actions = await listed(server, opened(server, workspace), lines(4, 7), diagnostics=[WRONG])
        assert titles(actions)[:2] == ["Daiku で修正: undefined name 'y'", "Daiku でリファクタリング…"]
        assert all(any(ord(sign) > 0x3000 for sign in title) for title in titles(actions))


async def test_resolving_adds_the_command_and_nothing_else(workspace: Path) -> None:
    async with connected(workspace, capabilities=capabilities()) as server:
        uri = opened(server, workspace)
        action = (await listed(server, uri, lines(4, 7), diagnostics=[WRONG]))[0]
        resolved = await server.client.request("codeAction/resolve", action)
        command = resolved.pop("command")
        assert resolved == action
        assert command["command"] == "daiku.fix"
        assert command["arguments"] == [{"uri": uri, "range": WRONG["range"], "diagnostics": [WRONG]}]
        again = await server.client.request("codeAction/resolve", {**action, "command": command})
        assert again["command"] == command
        foreign = {"title": "Not ours", "data": 5}
        assert await server.client.request("codeAction/resolve", foreign) == foreign
        for wrong in ({}, [], {"title": 5}):
            assert (await server.client.refused("codeAction/resolve", wrong)).code == -32602


async def test_clients_that_cannot_resolve_get_the_commands_at_once(workspace: Path) -> None:
    eager = {**LAZY, "resolveSupport": {"properties": ["edit"]}}
    async with connected(workspace, capabilities=capabilities(eager)) as server:
        actions = await listed(server, opened(server, workspace), lines(4, 7))
        assert all(a["command"]["command"].startswith("daiku.") for a in actions)
    async with connected(workspace) as server:
        commands = await listed(server, opened(server, workspace), lines(4, 7))
        default_converter().structure(commands, list[types.Command])
        assert {type(c["command"]) for c in commands} == {str}


@pytest.mark.parametrize("params", [None, [], {}, {"textDocument": 5}, {"range": 1, "textDocument": {}}])
async def test_wrong_params_are_told(workspace: Path, params: Any) -> None:
    async with connected(workspace) as server:
        error = await server.client.refused("textDocument/codeAction", params)
        assert (error.code, bool(error.data)) == (-32602, True)


async def test_the_list_takes_no_longer_than_a_breath_and_asks_no_model(workspace: Path) -> None:
    async with started() as server:  # no folder, no settings, no App: nothing that it could ask
        await server.client.request("initialize", {"capabilities": capabilities()})
        uri = opened(server, workspace, CODE * 2000)
        problems = [{**WRONG, "message": f"problem {n}"} for n in range(200)]

        async def empty(_: Any) -> str:
            await asyncio.sleep(0)
            return "[]"

        server.client.protocol.handlers["test/empty"] = empty
        params = {"textDocument": {"uri": uri}, "range": lines(4, 7), "context": {"diagnostics": problems}}

        async def seconds(method: str) -> float:
            begin = time.process_time()  # this process's own work: others may be busy, too
            await server.client.request(method, params)
            return time.process_time() - begin

        await seconds("textDocument/codeAction")  # the models of the params are built once
        with uncollected():
            ours = statistics.median([await seconds("textDocument/codeAction") for _ in range(20)])
            nothing = statistics.median([await seconds("test/empty") for _ in range(20)])
        assert ours < nothing + 0.05
        assert ours < 0.25
        assert server.client.said("daiku/languageModel") == []


async def chosen(server: Whole, action: dict[str, Any], **more: Any) -> Any:
    """The answer to the command of a chosen action."""
    command = (await server.client.request("codeAction/resolve", action))["command"]
    return await server.client.request(
        "workspace/executeCommand", {"command": command["command"], "arguments": command["arguments"], **more}
    )


async def test_a_chosen_fix_edits_the_open_document_with_what_it_is_about(
    workspace: Path, script: Script
) -> None:
    edit = {
        "tool": "files/edit",
        "args": {"path": "code.py", "edits": [{"search": "return y", "replace": "return x"}]},
    }
    model = script({"text": "I see.", "calls": [edit]}, {"text": "Fixed."})
    settings = {
        "llm": {"provider": "scripted", "model": model.removeprefix("scripted/")},
        "approvals": {"edit": "allow"},
    }
    (workspace / "code.py").write_text(CODE)
    offered = capabilities() | {"workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}}
    plain: dict[str, Any] = {}
    async with connected(workspace, client=plain, settings=settings, capabilities=offered) as server:
        client = server.client
        client.on["workspace/applyEdit"] = lambda _: {"applied": True}
        client.on["window/workDoneProgress/create"] = lambda _: None
        uri = opened(server, workspace)
        action = (await listed(server, uri, lines(4, 7), diagnostics=[WRONG]))[0]
        result = await chosen(server, action, workDoneToken="bar", partialResultToken="run")
        assert (result["status"], result["text"]) == ("completed", "Fixed.")
        (edited,) = client.said("workspace/applyEdit")
        assert uri in json.dumps(edited)
        assert [p["value"]["kind"] for p in client.said("$/progress") if p["token"] == "bar"][::100][:1] == [
            "begin"
        ]
        assert client.said("window/showMessage")[-1]["message"] == "Fixed."
        begun = client.chunks("run")[0]["data"]
        items = {item["kind"]: item for item in begun["context"]}
        assert items["selection"]["text"] == "y"
        assert items["symbol"]["text"] == "def two():\n    x = 1\n    return y"
        assert items["diagnostics"]["text"] == "7: error: undefined\nname 'y' (pyflakes F821)"
        assert begun["mode"] == "act"


async def test_a_place_outside_of_definitions_comes_with_the_lines_around_it(
    workspace: Path, script: Script
) -> None:
    settings = {"llm": {"provider": "scripted", "model": script({"text": "ok"}).removeprefix("scripted/")}}
    async with connected(workspace, settings=settings, capabilities=capabilities()) as server:
        uri = opened(server, workspace, "".join(f"line {n}\n" for n in range(100)))
        place = {"start": {"line": 50, "character": 0}, "end": {"line": 50, "character": 4}}
        action = next(a for a in await listed(server, uri, place) if a["title"].startswith("Explain"))
        await chosen(server, action, partialResultToken="t")
        begun = server.client.chunks("t")[0]["data"]
        (selection, around) = begun["context"]
        assert (selection["kind"], selection["text"]) == ("selection", "line")
        assert around["text"].splitlines() == [f"line {n}" for n in range(30, 71)]
        assert begun["mode"] == "ask"


async def test_the_terminals_last_failure_is_fixed_from_its_own_words(
    workspace: Path, script: Script
) -> None:
    settings = {"llm": {"provider": "scripted", "model": script({"text": "ok"}).removeprefix("scripted/")}}
    async with connected(workspace, settings=settings) as server:
        item = {"kind": "terminal", "text": "$ make\nexit code 2\nno rule"}
        await server.client.request(
            "workspace/executeCommand",
            {"command": "daiku.fix", "arguments": [{"context": [item]}], "partialResultToken": "t"},
        )
        begun = server.client.chunks("t")[0]["data"]
        assert "terminal failed" in begun["prompt"]
        assert begun["context"][0]["text"] == item["text"]


async def test_where_nothing_is_trusted_every_command_only_asks(workspace: Path, script: Script) -> None:
    settings = {"llm": {"provider": "scripted", "model": script({"text": "ok"}).removeprefix("scripted/")}}
    async with connected(workspace, settings=settings, trusted=False) as server:
        params = {"command": "daiku.fix", "arguments": ["x"], "partialResultToken": "t"}
        await server.client.request("workspace/executeCommand", params)
        assert server.client.chunks("t")[0]["data"]["mode"] == "ask"


def git(folder: Path, *words: str) -> str:
    clean = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    who = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, env=clean, check=True, capture_output=True, text=True
    )
    return done.stdout


async def test_a_commit_message_is_written_from_what_is_staged_else_from_all_and_nothing_is_committed(
    workspace: Path, script: Script
) -> None:
    model = script({"text": "```\nSay {{user}}\n```"})
    settings = {"llm": {"provider": "scripted", "model": model.removeprefix("scripted/")}}
    git(workspace, "init", "-q")
    (workspace / "a.txt").write_text("first\n")
    git(workspace, "add", "a.txt")
    git(workspace, "commit", "-q", "-m", "Begin")
    head = git(workspace, "rev-parse", "HEAD")
    runs: list[Any] = []
    async with connected(workspace, settings=settings) as server:

        async def message() -> str:
            params = {"command": "daiku.commitMessage", "arguments": [{"uri": workspace.as_uri()}]}
            result = await server.client.request("workspace/executeCommand", params)
            runs.append(result)
            return result["text"]

        (workspace / "a.txt").write_text("staged\n")
        git(workspace, "add", "a.txt")
        (workspace / "a.txt").write_text("not staged\n")
        said = await message()
        assert said.startswith("Say Write the commit message")
        assert "<earlier_commits>\nBegin\n" in said
        assert "+staged" in said
        assert "+not staged" not in said
        git(workspace, "reset", "-q")
        assert "+not staged" in await message()
        assert server.client.said("$/progress") == []
        assert git(workspace, "rev-parse", "HEAD") == head
        assert git(workspace, "diff", "--cached") == ""
        # It is a run like any other: in a session of its own, with its cost.
        asked = {"sessionId": runs[0]["sessionId"]}
        chunks = (await server.client.request("daiku/session/get", asked))["chunks"]
        told = ["run_started", "agent_start", "message", "usage", "agent_end", "run_finished"]
        assert [c["type"] for c in chunks] == told
        assert {c["agent"] for c in chunks} == {"committer"}


async def test_a_commit_message_that_is_cancelled_or_costs_too_much_is_no_message(
    workspace: Path, script: Script
) -> None:
    git(workspace, "init", "-q")
    (workspace / "a.txt").write_text("first\n")
    slow = script({"text": "word " * 500, "delay_ms": 20})
    settings = {"llm": {"provider": "scripted", "model": slow.removeprefix("scripted/")}}
    async with connected(workspace, settings=settings, capabilities=capabilities()) as server:
        params = {"command": "daiku.commitMessage", "partialResultToken": "t", "workDoneToken": "bar"}
        waiting = asyncio.ensure_future(server.client.refused("workspace/executeCommand", params))
        await server.client.until(lambda: [c for c in server.client.chunks("t") if c["type"] == "delta"])
        server.client.notify("window/workDoneProgress/cancel", {"token": "bar"})
        assert (await waiting).code == -32800
        assert server.client.chunks("t")[-1]["data"]["status"] == "cancelled"
    limited = {**settings, "limits": {"max_tokens": 5}}
    async with connected(workspace, settings=limited) as server:
        error = await server.client.refused("workspace/executeCommand", {"command": "daiku.commitMessage"})
        assert (error.code, error.data["kind"]) == (-32803, "limit")


async def test_without_changes_or_repository_there_is_no_commit_message(
    workspace: Path, script: Script
) -> None:
    async with connected(workspace) as server:
        error = await server.client.refused("workspace/executeCommand", {"command": "daiku.commitMessage"})
        assert (error.code, error.data["kind"]) == (-32803, "usage")
        git(workspace, "init", "-q")
        (workspace / ".gitignore").write_text("*\n")
        error = await server.client.refused("workspace/executeCommand", {"command": "daiku.commitMessage"})
        assert "There are no changes" in error.data["message"]

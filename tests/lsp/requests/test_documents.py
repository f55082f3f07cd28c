"""`daiku/document` and the command `daiku.document`: one edit of an open, unsaved document, and its change map."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daiku import api
from daiku.edits.rules.changes.changemap import apply_map
from daiku.fronts.lsp.documents.open_documents import to_uri
from tests.agents.drafting.revising import SCORES, drafted, issues, said
from tests.lsp.conftest import connected
from tests.lsp.documents.test_editor import FULL, FakeEditor, splice

Script = Callable[..., str]
SAVED = "# Guide\r\n\r\nold\r\n"
TYPED = "# Guide\r\n\r\nDaiku 😀 writes teh code.\r\n\r\n## Setup\r\n\r\nRun it.\r\n"
NEW = TYPED.replace("writes teh code", "proves teh code")
LINES = (
    said("draft", drafted(NEW.replace("\r\n", "\n"))),
    said("style", issues(("teh code", "the code"))),
    said("eval", SCORES),
)
DONE = NEW.replace("teh", "the")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_an_unsaved_document_is_revised_by_one_edit_and_its_change_map_told(
    workspace: Path, script: Script, encoding: str
) -> None:
    """R1.59, R1.96, C1.8, X.16: `newText` and `changeMap` of the document as it stood, and the same by position."""
    path = workspace / "guide.md"
    path.write_bytes(SAVED.encode())
    model = script(*LINES)
    capabilities = {"workspace": FULL, "general": {"positionEncodings": [encoding]}}
    async with connected(workspace, capabilities=capabilities) as server:
        client = server.client
        editor = FakeEditor(client)
        uri = editor.open(path, TYPED)
        params = {
            "uri": uri,
            "instruction": "Clearer.",
            "model": model,
            "approvals": "edits",
            "partialResultToken": "t",
        }
        result = await client.request("daiku/document", params)
        api.DocumentResult.model_validate(result)
        assert result["status"] == "completed", result
        assert editor.texts[uri] == DONE
        assert len(editor.edits) == 1, "one edit, which the editor undoes as one"
        assert path.read_bytes().decode() == SAVED, "the server writes no file that is open"
        assert result["patch"]["newText"] == DONE
        changes = [api.DocumentResult.model_validate(result).patch]
        assert changes[0] is not None
        assert apply_map(TYPED, changes[0].change_map) == DONE
        text = TYPED
        if encoding == "utf-16":
            for edit in reversed(result["edits"]):
                text = splice(text, edit)
            assert text == DONE
        streamed = client.chunks("t")
        drafts = "".join(
            c["data"]["text"] for c in streamed if c["type"] == "delta" and c["agent"] == "draft"
        )
        assert "proves teh code" in drafts, "the draft streams"
        listed = await client.request("daiku/changes/list", {"sessionId": result["sessionId"]})
        assert [each["path"] for each in listed["files"]] == ["guide.md"], "it is in the same review as code"


async def test_a_selection_is_revised_alone(workspace: Path, script: Script) -> None:
    """R1.60: what stands around it is not shown to the draft and not changed."""
    path = workspace / "guide.md"
    path.write_bytes(TYPED.encode())
    model = script(
        said("draft", drafted("## Setup\n\nStart it.")), said("style", issues()), said("eval", SCORES)
    )
    async with connected(workspace) as server:
        where = {"start": {"line": 4, "character": 0}, "end": {"line": 6, "character": 3}}
        params = {
            "uri": to_uri(path),
            "instruction": "Say start.",
            "range": where,
            "model": model,
            "approvals": "edits",
            "partialResultToken": "t",
        }
        result = await server.client.request("daiku/document", params)
        assert result["status"] == "completed", result
        assert path.read_bytes().decode() == TYPED.replace("Run it.", "Start it.")
        told = [
            c["data"]["told"]
            for c in server.client.chunks("t")
            if c["type"] == "run_started" and c["agent"] == "draft"
        ]
        assert "teh code" not in told[0]


async def test_the_command_revises_prose_and_documents_code(workspace: Path, script: Script) -> None:
    """PROTOCOL 3: `daiku.document`, also for a plain client, which says nothing more than where."""
    path = workspace / "guide.md"
    path.write_bytes(TYPED.encode())
    model = script(*LINES, {"text": "Documented."})
    async with connected(workspace) as server:
        args: dict[str, Any] = {"uri": to_uri(path), "model": model, "approvals": "edits"}
        result = await server.client.request(
            "workspace/executeCommand", {"command": "daiku.document", "arguments": [args]}
        )
        assert result["patch"]["newText"] == DONE == path.read_bytes().decode()
        code = workspace / "a.py"
        code.write_text("def f(): ...\n")
        args["uri"] = to_uri(code)
        result = await server.client.request(
            "workspace/executeCommand", {"command": "daiku.document", "arguments": [args]}
        )
        assert (result["text"], "patch" in result) == ("Documented.", False)


async def test_a_selection_of_prose_offers_a_revision_and_one_of_code_its_documentation(
    workspace: Path,
) -> None:
    async with connected(workspace) as server:
        selected = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
        for name, title in [("a.md", "Revise with Daiku…"), ("a.py", "Document with Daiku")]:
            params = {
                "textDocument": {"uri": to_uri(workspace / name)},
                "range": selected,
                "context": {"diagnostics": []},
            }
            actions = await server.client.request("textDocument/codeAction", params)
            titles = [a["title"] for a in actions]
            assert title in titles
            assert len({"Revise with Daiku…", "Document with Daiku"} & set(titles)) == 1


async def test_a_chat_that_is_routed_to_the_document_agent_works_on_the_file_that_came_along(
    workspace: Path, script: Script
) -> None:
    """R1.8, R1.11, R1.58: a rule of the settings gives prose to the drafting agents."""
    path = workspace / "guide.md"
    path.write_bytes(TYPED.encode())
    model = script(*LINES)
    settings = {"llm": {"provider": "scripted"}, "router": {"rules": [["(?i)revise", ["document"]]]}}
    async with connected(workspace, settings=settings) as server:
        item = {"kind": "file", "uri": to_uri(path)}
        params = {"text": "Revise the guide.", "context": [item], "model": model, "approvals": "edits"}
        result = await server.client.request("daiku/chat", params)
        assert result["status"] == "completed", result
        assert path.read_bytes().decode() == DONE
        nothing = await server.client.request("daiku/chat", {"text": "Revise it.", "model": model})
        assert (nothing["status"], nothing["error"]["kind"]) == ("failed", "usage")


async def test_a_document_that_cannot_be_is_an_error_with_what_to_do(workspace: Path, script: Script) -> None:
    """PROTOCOL 3: -32602 for wrong types, -32803 for what is expected to happen."""
    model = script(*LINES)
    async with connected(workspace) as server:
        refused = server.client.refused
        assert (await refused("daiku/document", {"uri": "file:///x.md"})).code == -32602
        params = {"uri": to_uri(workspace / "a.md"), "instruction": "x", "model": model}
        assert (await refused("daiku/document", {**params, "depth": 9})).code == -32602
        outside = await refused("daiku/document", {**params, "uri": "file:///etc/hostname"})
        assert outside.code == -32803
        (workspace / ".daiku").mkdir()
        (workspace / ".daiku/rubric.json").write_text('{"criteria": []}')
        broken = await refused("daiku/document", params)
        assert "criteria" in broken.data["message"]


@pytest.mark.parametrize(
    ("language", "words"), [("en", "has not been saved"), ("ja", "まだファイルではありません")]
)
async def test_a_document_that_was_never_saved_is_refused_by_one_sentence_and_nothing_is_written(
    workspace: Path, script: Script, language: str, words: str
) -> None:
    model = script(*LINES)
    before = sorted(workspace.rglob("*"))
    async with connected(workspace, client={"approvals": True, "locale": language}) as server:
        for name in ("untitled:Untitled-1", "untitled:/notes/guide.md"):
            opened = {"uri": name, "languageId": "markdown", "version": 1, "text": TYPED}
            server.client.notify("textDocument/didOpen", {"textDocument": opened})
            params = {"uri": name, "instruction": "Clearer.", "model": model, "approvals": "edits"}
            refused = await server.client.refused("daiku/document", params)
            assert (refused.code, words in refused.data["message"]) == (-32803, True)
            command = {"command": "daiku.document", "arguments": [{"uri": name, "model": model}]}
            refused = await server.client.refused("workspace/executeCommand", command)
            assert (refused.code, words in refused.data["message"]) == (-32803, True)
    assert sorted(workspace.rglob("*")) == before


async def test_a_chat_that_is_routed_to_the_document_agent_passes_over_what_was_never_saved(
    workspace: Path, script: Script
) -> None:
    model = script(*LINES)
    settings = {"llm": {"provider": "scripted"}, "router": {"rules": [["revise", ["document"]]]}}
    async with connected(workspace, settings=settings) as server:
        item = {"kind": "file", "uri": "untitled:/guide.md"}
        params = {"text": "revise this", "context": [item], "model": model, "approvals": "edits"}
        result = await server.client.request("daiku/chat", params)
    assert "no document to work on" in str(result)
    assert not list(workspace.glob("**/guide.md"))

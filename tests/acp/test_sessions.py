"""Sessions of a client: listed, loaded again with their conversation, shared with the editor, kept to their folder."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError
from acp.schema import McpServerStdio, SseMcpServer

from tests.acp.pair import Editor, connected
from tests.lsp import conftest as lsp
from tests.tools.mcp.play import SERVICES

Script = Callable[..., None]
EDIT = {"tool": "files/edit", "args": {"path": "a.py", "edits": [{"search": "old", "replace": "new"}]}}


def shown(editor: Editor) -> list[tuple[str, str]]:
    """What a person sees of a conversation: kinds of updates with their words."""
    found: list[tuple[str, str]] = []
    for _, update in editor.updates:
        match update.session_update:
            case "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" as kind:
                if found and found[-1][0] == kind:
                    found[-1] = (kind, found[-1][1] + update.content.text)
                else:
                    found.append((kind, update.content.text))
            case "tool_call":
                found.append(("tool_call", update.title))
            case "tool_call_update" if update.status in ("completed", "failed"):
                found.append(("ended", update.status))
            case _:
                pass
    return found


async def test_a_session_is_loaded_with_all_that_was_said_and_done(workspace: Path, script: Script) -> None:
    (workspace / "a.py").write_text("old\n")
    script({"thinking": "Hm.", "text": "I edit.", "calls": [EDIT]}, {"text": "Done."}, {"text": "More."})
    async with connected() as pair:
        session = await pair.new(workspace)
        await pair.prompt(session, "please edit")
        live = shown(pair.editor)
    async with connected() as pair:
        loaded = await pair.agent.load_session(cwd=str(workspace), session_id=session, mcp_servers=[])
        assert loaded.modes.current_mode_id == "act"
        assert shown(pair.editor) == [("user_message_chunk", "please edit"), *live]
        diffs = [c for u in pair.editor.of("tool_call_update") for c in u.content or () if c.type == "diff"]
        assert ("old\n", "new\n") in [(d.old_text, d.new_text) for d in diffs]
        await pair.prompt(session, "and now?")
        assert pair.editor.said.endswith("More.")


async def test_a_session_made_here_is_in_the_editors_history_and_the_other_way_round(
    workspace: Path, script: Script
) -> None:
    script({"text": "Hello."})
    async with connected() as pair:
        made = await pair.new(workspace)
        await pair.prompt(made, "from the client")
    async with lsp.connected(workspace) as whole:
        listed = (await whole.client.request("daiku/session/list", {}))["sessions"]
        assert [(s["sessionId"], s["title"]) for s in listed] == [(made, "from the client")]
        got = await whole.client.request("daiku/session/get", {"sessionId": made})
        assert [c["data"]["text"] for c in got["chunks"] if c["type"] == "message"] == ["Hello."]
        model = "scripted/script.jsonl"
        theirs = await whole.client.request("daiku/chat", {"text": "from the panel", "model": model})
    async with connected() as pair:
        found = await pair.agent.list_sessions(cwd=str(workspace))
        assert {(s.session_id, s.title) for s in found.sessions} == {
            (made, "from the client"),
            (theirs["sessionId"], "from the panel"),
        }
        assert {s.cwd for s in found.sessions} == {str(workspace)}
        await pair.agent.load_session(cwd=str(workspace), session_id=theirs["sessionId"], mcp_servers=[])
        assert shown(pair.editor)[0] == ("user_message_chunk", "from the panel")


async def test_sessions_of_all_folders_are_listed_where_none_is_named(
    workspace: Path, tmp_path: Path, script: Script
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    script({"text": "Hello."})
    (other / "script.jsonl").write_bytes((workspace / "script.jsonl").read_bytes())
    async with connected() as pair:
        for folder in (workspace, other):
            await pair.prompt(await pair.new(folder), f"in {folder.name}")
        everywhere = await pair.agent.list_sessions()
        assert {s.cwd for s in everywhere.sessions} == {str(workspace), str(other)}
        here = await pair.agent.list_sessions(cwd=str(other))
        assert [s.title for s in here.sessions] == ["in other"]


async def test_a_session_of_another_folder_is_not_loaded(
    workspace: Path, tmp_path: Path, script: Script
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    script({"text": "secret"})
    async with connected() as pair:
        session = await pair.new(workspace)
        await pair.prompt(session, "hi")
    async with connected() as pair:
        with pytest.raises(RequestError) as refused:
            await pair.agent.load_session(cwd=str(other), session_id=session, mcp_servers=[])
        assert str(workspace) in str(refused.value)
        assert pair.editor.updates == []
        with pytest.raises(RequestError) as refused:
            await pair.prompt(session, "hi")
        assert refused.value.code == -32002


async def test_a_session_that_nothing_was_said_in_is_listed_nowhere(workspace: Path, script: Script) -> None:
    script({"text": "x"})
    async with connected() as pair:
        await pair.new(workspace)
        assert (await pair.agent.list_sessions(cwd=str(workspace))).sessions == []
    async with lsp.connected(workspace) as whole:
        assert (await whole.client.request("daiku/session/list", {}))["sessions"] == []


@pytest.mark.parametrize("folder", ["relative/path", "/nowhere/at/all", ""])
async def test_a_folder_that_is_none_is_refused_with_a_sentence(folder: str) -> None:
    async with connected() as pair:
        with pytest.raises(RequestError) as refused:
            await pair.agent.new_session(cwd=folder, mcp_servers=[])
        assert repr(folder) in str(refused.value)


async def test_an_unknown_session_is_not_loaded(workspace: Path) -> None:
    async with connected() as pair:
        with pytest.raises(RequestError) as refused:
            await pair.agent.load_session(cwd=str(workspace), session_id="ses_nobody", mcp_servers=[])
        assert refused.value.code == -32002


async def test_a_closed_session_can_be_opened_again_without_its_conversation(
    workspace: Path, script: Script
) -> None:
    script({"text": "One."}, {"text": "Two."})
    async with connected() as pair:
        session = await pair.new(workspace)
        await pair.prompt(session, "first")
        await pair.agent.close_session(session_id=session)
        with pytest.raises(RequestError):
            await pair.prompt(session, "closed")
        said = len(pair.editor.updates)
        await pair.agent.resume_session(cwd=str(workspace), session_id=session)
        assert len(pair.editor.updates) == said
        await pair.prompt(session, "second")
        assert pair.editor.said.endswith("Two.")


async def test_a_client_that_leaves_amid_a_question_leaves_a_run_that_can_be_gone_on_with(
    workspace: Path, script: Script
) -> None:
    (workspace / "a.py").write_text("old\n")
    script({"calls": [EDIT]}, {"text": "Done."})
    async with connected(Editor(pick=lambda call, options: "wait")) as pair:
        session = await pair.new(workspace)
        turn = asyncio.ensure_future(pair.prompt(session, "edit"))
        await pair.editor.until(lambda: pair.editor.asked)
        pair.leave()
        async with asyncio.timeout(5):
            await pair.ended
        assert (await turn).stop_reason == "cancelled"
    assert (workspace / "a.py").read_text() == "old\n"
    async with lsp.connected(workspace) as whole:
        [found] = (await whole.client.request("daiku/session/list", {}))["sessions"]
        assert found["status"] == "interrupted"
    async with connected() as pair:
        await pair.agent.load_session(cwd=str(workspace), session_id=session, mcp_servers=[])
        [offered] = pair.editor.of("available_commands_update")
        assert [c.name for c in offered.available_commands] == ["resume"]
        assert (await pair.prompt(session, "/resume")).stop_reason == "end_turn"
        assert len(pair.editor.asked) == 1
    assert (workspace / "a.py").read_text() == "new\n"


async def test_a_client_that_leaves_amid_words_leaves_a_run_that_can_be_gone_on_with(
    workspace: Path, script: Script
) -> None:
    script({"text": "word " * 300, "delay_ms": 20})
    async with connected() as pair:
        session = await pair.new(workspace)
        turn = asyncio.ensure_future(pair.prompt(session, "talk"))
        await pair.editor.until(lambda: pair.editor.said)
        pair.leave()
        async with asyncio.timeout(5):
            await pair.ended
        assert (await turn).stop_reason == "cancelled"
    async with lsp.connected(workspace) as whole:
        [found] = (await whole.client.request("daiku/session/list", {}))["sessions"]
        assert found["status"] == "interrupted"


async def test_a_question_that_waits_for_words_survives_the_client(workspace: Path, script: Script) -> None:
    ask: dict[str, Any] = {"tool": "user/ask", "args": {"question": "What name?"}}
    script({"calls": [ask]}, {"text": "Thanks."})
    async with connected() as pair:
        session = await pair.new(workspace)
        await pair.prompt(session, "go")
    async with connected() as pair:
        await pair.agent.load_session(cwd=str(workspace), session_id=session, mcp_servers=[])
        assert "What name?" in pair.editor.said
        await pair.prompt(session, "Daiku")
        assert pair.editor.said.endswith("Thanks.")
        done = [u for u in pair.editor.of("tool_call_update") if u.status == "completed"]
        assert "Daiku" in done[-1].content[0].content.text


async def test_what_is_no_message_is_answered_and_the_connection_lives(
    workspace: Path, script: Script
) -> None:
    script({"text": "Fine."})
    async with connected() as pair:
        for line in (b"[1]\n", b"nonsense\n", b"5\n", b"\n", b'{"jsonrpc":"2.0","id":7}\n'):
            pair.agent._conn._transport._sender._writer.write(line)
        assert (await pair.prompt(await pair.new(workspace), "hi")).stop_reason == "end_turn"
        with pytest.raises(RequestError) as refused:
            await pair.agent._conn.send_request("session/prompt", None)
        assert refused.value.code == -32602
        with pytest.raises(RequestError) as refused:
            await pair.agent._conn.send_request("session/nonsense", {})
        assert refused.value.code == -32601


async def test_mcp_servers_of_the_client_wait_for_the_persons_word(workspace: Path, script: Script) -> None:
    script({"text": "ok"})
    started = workspace / "started"
    server = McpServerStdio(name="my server", command="touch", args=[str(started)], env=[])
    async with connected(Editor(pick=lambda call, options: "reject_once")) as pair:
        made = await pair.agent.new_session(cwd=str(workspace), mcp_servers=[server])
        await pair.prompt(made.session_id, "hi")
        [(call, _)] = pair.editor.asked
        assert str(started) in call.content[-1].content.text
    assert not started.exists()


@pytest.mark.slow
async def test_an_mcp_server_of_the_client_works_once_it_is_allowed(workspace: Path, script: Script) -> None:
    search = {"tool": "my-demo/search", "args": {"query": "daiku"}}
    script({"calls": [search]}, {"text": "ok"})
    server = McpServerStdio(
        name="my demo", command=sys.executable, args=[str(SERVICES / "mcp_demo.py")], env=[]
    )
    async with connected(Editor(pick=lambda call, options: "allow_once")) as pair:
        made = await pair.agent.new_session(cwd=str(workspace), mcp_servers=[server])
        await pair.prompt(made.session_id, "search")
        assert len(pair.editor.asked) == 2, "the server, and the call"
        assert pair.editor.of("tool_call_update")[-1].status == "completed"


async def test_a_kind_of_server_that_was_not_announced_is_refused_with_a_sentence(workspace: Path) -> None:
    server = SseMcpServer(type="sse", name="old", url="http://127.0.0.1:1/sse", headers=[])
    async with connected() as pair:
        with pytest.raises(RequestError, match="sse"):
            await pair.agent.new_session(cwd=str(workspace), mcp_servers=[server])


async def test_a_session_that_the_panel_is_at_work_in_is_busy_here_and_is_not_disturbed(
    workspace: Path, script: Script
) -> None:
    script({"text": "word " * 100, "delay_ms": 20})
    async with lsp.connected(workspace) as whole, connected() as pair:
        params = {"text": "talk", "model": "scripted/script.jsonl", "partialResultToken": "t"}
        running = whole.client.start("daiku/chat", params)
        await whole.client.until(lambda: whole.client.chunks("t"))
        session = whole.client.chunks("t")[0]["session"]
        await pair.agent.load_session(cwd=str(workspace), session_id=session, mcp_servers=[])
        with pytest.raises(RequestError) as refused:
            await pair.prompt(session, "me too")
        assert (refused.value.data or {})["kind"] == "busy"
        await pair.agent.close_session(session_id=session)
        assert (await running)["status"] == "completed"


async def test_a_new_session_of_the_editor_is_not_forgotten_by_looking_at_it(workspace: Path) -> None:
    async with lsp.connected(workspace) as whole:
        made = await whole.client.request("daiku/session/new", {"title": "Later"})
        async with connected() as pair:
            session = made["sessionId"]
            await pair.agent.load_session(cwd=str(workspace), session_id=session, mcp_servers=[])
        listed = (await whole.client.request("daiku/session/list", {}))["sessions"]
        assert [s["title"] for s in listed] == ["Later"]

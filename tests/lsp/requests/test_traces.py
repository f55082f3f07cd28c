"""daiku/trace/get: what a session did and what that took, also while it is under way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from daiku import api
from tests.lsp.conftest import connected

Script = Callable[..., str]
READ = {"tool": "files/read", "args": {"path": "a.txt"}}


async def test_a_session_is_shown_as_a_tree_with_tokens_and_times(workspace: Path, script: Script) -> None:
    (workspace / "a.txt").write_text("a\n")
    model = script({"calls": [READ]}, {"text": "Done."})
    async with connected(workspace) as server:
        ran = await server.client.request("daiku/chat", {"text": "Go", "model": model})
        found = await server.client.request("daiku/trace/get", {"sessionId": ran["sessionId"]})
        result = api.TraceResult.model_validate(found)
    assert [(span.kind, span.name, span.status) for span in result.spans] == [
        ("agent", "coordinator", "ok"),
        ("chat", model, "ok"),
        ("tool", "files/read", "ok"),
        ("chat", model, "ok"),
    ]
    root = result.spans[0]
    assert [span.parent for span in result.spans] == [None, root.key, root.key, root.key]
    chats = [span.usage for span in result.spans if span.kind == "chat"]
    assert root.usage is not None
    assert sum(used.prompt_tokens for used in chats if used is not None) == root.usage.prompt_tokens > 0
    assert all(span.duration_ms is not None for span in result.spans)
    assert [span.seq for span in result.spans] == sorted(span.seq for span in result.spans)
    assert result.session.session_id == ran["sessionId"]


async def test_a_run_under_way_is_shown_as_far_as_it_is(workspace: Path, script: Script) -> None:
    model = script({"calls": [{"tool": "user/ask", "args": {"question": "Which?"}}]}, {"text": "Done."})
    async with connected(workspace) as server:
        client = server.client
        task = client.start("daiku/chat", {"text": "Go", "model": model, "partialResultToken": "t"})
        asked = await client.until(lambda: [c for c in client.chunks("t") if c["type"] == "input_asked"])
        chunk = asked[0]
        found = await server.client.request("daiku/trace/get", {"sessionId": chunk["session"]})
        spans = api.TraceResult.model_validate(found).spans
        assert [(span.kind, span.status) for span in spans] == [("agent", "running"), ("chat", "ok")]
        assert spans[0].duration_ms is None
        await server.client.request("daiku/cancel", {"runId": chunk["run"]})
        await task
        found = await server.client.request("daiku/trace/get", {"sessionId": chunk["session"]})
        assert {span["status"] for span in found["spans"]} == {"cancelled", "ok"}


async def test_a_session_without_runs_has_no_spans_and_an_unknown_one_is_an_error(workspace: Path) -> None:
    async with connected(workspace) as server:
        session = await server.client.request("daiku/session/new", {})
        found = await server.client.request("daiku/trace/get", {"sessionId": session["sessionId"]})
        assert (found["spans"], found["until"]) == ([], "")
        unknown = {"sessionId": "ses_0000000000000000"}
        gone = await server.client.refused("daiku/trace/get", unknown)
        assert (gone.code, gone.data["kind"]) == (-32803, "not_found")

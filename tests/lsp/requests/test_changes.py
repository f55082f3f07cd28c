"""Reviewing over the wire: what was changed, decided on hunk by hunk, brought back, after restarts too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from daiku import api
from tests.lsp.conftest import Whole, connected
from tests.lsp.documents.test_editor import FULL, FakeEditor

Script = Callable[..., str]

BEFORE = "".join(f"line {i}\n" for i in range(1, 21))


def edit_of(path: str, *edits: tuple[str, str]) -> dict[str, Any]:
    found = [{"search": a, "replace": b} for a, b in edits]
    return {"calls": [{"tool": "files/edit", "args": {"path": path, "edits": found}}]}


def call(tool: str, **args: Any) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "args": args}]}


async def worked(server: Whole, model: str, session: str | None = None) -> str:
    """The session of a run that did what the script says."""
    params: dict[str, Any] = {"text": "go", "model": model, "approvals": "all"}
    result = await server.client.request("daiku/chat", params | ({"sessionId": session} if session else {}))
    assert result["status"] == "completed", result
    return result["sessionId"]


async def changes(server: Whole, session: str) -> list[dict[str, Any]]:
    result = await server.client.request("daiku/changes/list", {"sessionId": session})
    api.ChangesResult.model_validate(result)
    return result["files"]


async def decide(server: Whole, session: str, decision: str, **params: Any) -> dict[str, Any]:
    return await server.client.request(
        "daiku/changes/decide", {"sessionId": session, "decision": decision, **params}
    )


TWO = edit_of("a.txt", ("line 3\n", "LINE 3\nmore\n"), ("line 15\n", ""))


async def test_changes_are_listed_by_hunk_and_rejected_one_by_one(workspace: Path, script: Script) -> None:
    (workspace / "a.txt").write_text(BEFORE)
    async with connected(workspace) as server:
        session = await worked(server, script(TWO, {"text": "done"}))
        (file,) = await changes(server, session)
        assert (file["path"], file["kind"], file["added"], file["removed"]) == ("a.txt", "edit", 2, 2)
        first, second = file["hunks"]
        assert first["text"] == "-line 3\n+LINE 3\n+more\n"
        assert [first[k] for k in ("oldStart", "oldLines", "newStart", "newLines")] == [3, 1, 3, 2]
        assert [second[k] for k in ("oldStart", "oldLines", "newStart", "newLines")] == [15, 1, 15, 0]
        original = await server.client.request(
            "daiku/changes/original", {"sessionId": session, "path": "a.txt"}
        )
        assert original == {"text": BEFORE}
        left = await decide(server, session, "reject", path="a.txt", hunkIds=[first["hunkId"]])
        assert (workspace / "a.txt").read_text() == BEFORE.replace("line 15\n", "")
        assert [h["hunkId"] for f in left["files"] for h in f["hunks"]] == [second["hunkId"]]
        done = await decide(server, session, "accept", hunkIds=[second["hunkId"]])
        assert done["files"] == []
        assert (workspace / "a.txt").read_text() == BEFORE.replace("line 15\n", "")


async def test_a_decision_survives_a_restart_and_is_on_record(workspace: Path, script: Script) -> None:
    (workspace / "a.txt").write_text(BEFORE)
    async with connected(workspace) as server:
        session = await worked(server, script(TWO, {"text": "done"}))
        (file,) = await changes(server, session)
        await decide(server, session, "accept", path="a.txt", hunkIds=[file["hunks"][0]["hunkId"]])
    async with connected(workspace) as server:
        (left,) = await changes(server, session)
        assert [h["hunkId"] for h in left["hunks"]] == [file["hunks"][1]["hunkId"]]
        chunks = (await server.client.request("daiku/session/get", {"sessionId": session}))["chunks"]
        (review,) = [c for c in chunks if c["type"] == "review"]
        assert review["data"]["decision"] == "accept"
        assert (review["data"]["path"], review["data"]["hunks"]) == ("a.txt", 1)
        await decide(server, session, "reject")
        assert (workspace / "a.txt").read_text() == BEFORE.replace("line 3\n", "LINE 3\nmore\n")


async def test_typing_in_the_same_lines_makes_the_hunk_stale_and_shows_what_is_there(
    workspace: Path, script: Script
) -> None:
    (workspace / "a.txt").write_text(BEFORE)
    async with connected(workspace) as server:
        session = await worked(server, script(TWO, {"text": "done"}))
        (file,) = await changes(server, session)
        text = (workspace / "a.txt").read_text().replace("more\n", "my own\n").replace("line 9\n", "nine\n")
        (workspace / "a.txt").write_text(text)
        error = await server.client.refused(
            "daiku/changes/decide",
            {"sessionId": session, "decision": "reject", "hunkIds": [file["hunks"][0]["hunkId"]]},
        )
        assert error.data["kind"] == "stale"
        assert "+my own" in error.data["hint"]
        assert (workspace / "a.txt").read_text() == text
        left = await decide(server, session, "reject")
        assert (workspace / "a.txt").read_text() == text.replace("line 14\n", "line 14\nline 15\n")
        (touched,) = left["files"][0]["hunks"]
        assert touched["touched"]
        assert "+my own\n" in touched["text"]
        original = await server.client.request(
            "daiku/changes/original", {"sessionId": session, "path": "a.txt"}
        )
        assert original["text"] == BEFORE.replace("line 9\n", "nine\n")


# ---- before: only some hunks of an edit


async def test_only_the_chosen_hunks_are_made_and_the_model_is_told_of_the_rest(
    workspace: Path, script: Script
) -> None:
    (workspace / "a.txt").write_text(BEFORE)
    async with connected(workspace) as server:
        client = server.client
        waiting = client.start(
            "daiku/chat", {"text": "go", "model": script(TWO, {"text": "ok"}), "partialResultToken": "t"}
        )
        asked = (
            await client.until(lambda: [c for c in client.chunks("t") if c["type"] == "approval_asked"])
        )[0]
        assert asked["data"]["hunks"] == 2
        given = {"runId": asked["run"], "approvalId": asked["data"]["approvalId"], "decision": "allow_once"}
        wrong = await client.refused("daiku/approve", given | {"hunks": [2]})
        assert "0 to 1" in wrong.message
        await client.request("daiku/approve", given | {"hunks": [1], "feedback": "LINE 3 stays small"})
        assert (await waiting)["status"] == "completed"
        assert (workspace / "a.txt").read_text() == BEFORE.replace("line 15\n", "")
        (told,) = [c["data"] for c in client.chunks("t") if c["type"] == "tool_response"]
        assert told["ok"]
        assert "They said: LINE 3 stays small" in told["result"]
        assert "+LINE 3" in told["result"]
        (edit,) = [c["data"] for c in client.chunks("t") if c["type"] == "edit"]
        assert "LINE 3" not in "".join(line for line in edit["diff"].splitlines() if line.startswith("+"))
        (file,) = await changes(server, asked["session"])
        assert [h["text"] for h in file["hunks"]] == ["-line 15\n"]


async def test_a_choice_is_refused_where_the_file_changed_since_it_was_shown(
    workspace: Path, script: Script
) -> None:
    (workspace / "a.txt").write_text(BEFORE)
    async with connected(workspace) as server:
        client = server.client
        waiting = client.start(
            "daiku/chat", {"text": "go", "model": script(TWO, {"text": "ok"}), "partialResultToken": "t"}
        )
        asked = (
            await client.until(lambda: [c for c in client.chunks("t") if c["type"] == "approval_asked"])
        )[0]
        (workspace / "a.txt").write_text("mine\n" + BEFORE)
        given = {"runId": asked["run"], "approvalId": asked["data"]["approvalId"], "decision": "allow_once"}
        await client.request("daiku/approve", given | {"hunks": [1]})
        await waiting
        assert (workspace / "a.txt").read_text() == "mine\n" + BEFORE


# ---- files as a whole, and bringing back


async def test_made_deleted_and_renamed_files_are_decided_on_as_a_whole(
    workspace: Path, script: Script
) -> None:
    (workspace / "old.txt").write_text(BEFORE)
    (workspace / "gone.txt").write_bytes(b"kept\r\nas it is")
    (workspace / "pic.bin").write_bytes(b"\x89PNG\x00\xff")
    (workspace / "pic2.bin").write_bytes(b"\x89PNG\x00\xfe")
    before = {p.name: p.read_bytes() for p in workspace.iterdir()}
    model = script(
        call("files/write", path="new.txt", content="fresh\n"),
        call("files/move", path="old.txt", to="sub/new name.txt"),
        edit_of("sub/new name.txt", ("line 7\n", "seven\n")),
        call("files/delete", path="gone.txt"),
        call("files/delete", path="pic.bin"),
        call("files/move", path="pic2.bin", to="pic3.bin"),
        {"text": "done"},
    )
    async with connected(workspace) as server:
        session = await worked(server, model)
        files = {f["path"]: f for f in await changes(server, session)}
        assert {p: f["kind"] for p, f in files.items()} == {
            "new.txt": "create",
            "sub/new name.txt": "rename",
            "gone.txt": "delete",
            "pic.bin": "delete",
            "pic3.bin": "rename",
        }
        assert files["sub/new name.txt"]["before"] == "old.txt"
        assert [h["text"] for h in files["sub/new name.txt"]["hunks"]] == ["-line 7\n+seven\n"]
        assert files["pic.bin"]["binary"]
        assert not files["pic.bin"]["hunks"]
        done = await decide(server, session, "reject")
        assert done["files"] == []
        (workspace / "play.jsonl").unlink(missing_ok=True)
        after = {str(p.relative_to(workspace)): p.read_bytes() for p in workspace.rglob("*") if p.is_file()}
        assert {n: d for n, d in after.items() if n != "script.jsonl"} == before
        await server.client.request("daiku/checkpoint/restore", {"checkpointId": done["checkpointId"]})
        again = {f["path"]: f for f in await changes(server, session)}
        assert {p: (f["kind"], f["hunks"]) for p, f in again.items()} == {
            p: (f["kind"], f["hunks"]) for p, f in files.items()
        }


async def test_restoring_lists_what_it_cannot_undo_is_on_record_and_can_be_undone_itself(
    workspace: Path, script: Script
) -> None:
    (workspace / "a.txt").write_text(BEFORE)
    model = script(
        call("shell/run", command="true # before"),
        TWO,
        call("shell/run", command="touch made.txt"),
        call("shell/run", command="exit 3"),
        {"text": "done"},
    )
    async with connected(workspace) as server:
        ask = server.client.request
        session = await worked(server, model)
        edited = (workspace / "a.txt").read_text()
        (point,) = (await ask("daiku/checkpoint/list", {"sessionId": session}))["checkpoints"]
        done = await ask("daiku/checkpoint/restore", {"checkpointId": point["checkpointId"]})
        api.RestoreResult.model_validate(done)
        assert (workspace / "a.txt").read_text() == BEFORE
        assert [(c["command"], c["exitCode"]) for c in done["cannotUndo"]] == [
            ("touch made.txt", 0),
            ("exit 3", 3),
        ]
        assert await changes(server, session) == []
        chunks = (await ask("daiku/session/get", {"sessionId": session}))["chunks"]
        (record,) = [c["data"] for c in chunks if c["type"] == "restored"]
        assert record["checkpointId"] == point["checkpointId"]
        assert [c["command"] for c in record["cannotUndo"]] == ["touch made.txt", "exit 3"]
        await ask("daiku/checkpoint/restore", {"checkpointId": done["checkpointId"]})
        assert (workspace / "a.txt").read_text() == edited
        (file,) = await changes(server, session)
        assert len(file["hunks"]) == 2
        await ask(
            "workspace/executeCommand", {"command": "daiku.undo", "arguments": [{"sessionId": session}]}
        )
        assert (workspace / "a.txt").read_text() == BEFORE


async def test_what_was_rejected_is_in_the_transcript(workspace: Path, script: Script) -> None:
    (workspace / "a.txt").write_text(BEFORE)
    async with connected(workspace) as server:
        model = script(TWO, {"text": "done"})
        session = await worked(server, model)
        await decide(server, session, "reject", path="a.txt")
        got = await server.client.request(
            "daiku/session/export", {"sessionId": session, "format": "markdown"}
        )
        assert "rejected: a.txt (2)" in got["text"]


async def test_a_decision_while_a_run_waits_is_seen_by_it(workspace: Path, script: Script) -> None:
    (workspace / "a.txt").write_text(BEFORE)
    model = script(TWO, {"calls": [{"tool": "user/ask", "args": {"question": "Go on?"}}]}, {"text": "I see."})
    async with connected(workspace) as server:
        client = server.client
        waiting = client.start(
            "daiku/chat", {"text": "go", "model": model, "approvals": "edits", "partialResultToken": "t"}
        )
        asked = (await client.until(lambda: [c for c in client.chunks("t") if c["type"] == "input_asked"]))[0]
        await decide(server, asked["session"], "reject", path="a.txt")
        assert (workspace / "a.txt").read_text() == BEFORE
        assert [c["data"]["decision"] for c in client.chunks("t") if c["type"] == "review"] == ["reject"]
        await client.request(
            "daiku/answer", {"runId": asked["run"], "inputId": asked["data"]["inputId"], "text": "yes"}
        )
        assert (await waiting)["status"] == "completed"


async def test_unknown_sessions_files_and_hunks_are_refused(workspace: Path, script: Script) -> None:
    (workspace / "a.txt").write_text(BEFORE)
    async with connected(workspace) as server:
        gone = await server.client.refused("daiku/changes/list", {"sessionId": "ses_no"})
        assert gone.data["kind"] == "not_found"
        session = await worked(server, script(TWO, {"text": "done"}))
        for params in ({"path": "b.txt"}, {"hunkIds": ["nope"]}):
            error = await server.client.refused(
                "daiku/changes/decide", {"sessionId": session, "decision": "reject", **params}
            )
            assert error.data["kind"] == "stale"


# ---- in an editor: unsaved text, versions


async def test_a_rejection_is_a_versioned_edit_of_the_open_text_and_keeps_unsaved_typing(
    workspace: Path, script: Script
) -> None:
    (workspace / "a.txt").write_text(BEFORE)
    async with connected(workspace, capabilities={"workspace": FULL}) as server:
        editor = FakeEditor(server.client)
        uri = editor.open(workspace / "a.txt", BEFORE)
        session = await worked(server, script(TWO, {"text": "done"}))
        typed = editor.texts[uri].replace("line 9\n", "line nine, not saved\n")
        editor.type(uri, typed)
        (file,) = await changes(server, session)
        assert not any(h["touched"] for h in file["hunks"])
        await decide(server, session, "reject", path="a.txt", hunkIds=[file["hunks"][0]["hunkId"]])
        assert editor.texts[uri] == typed.replace("LINE 3\nmore\n", "line 3\n")
        (change,) = editor.edits[-1]["edit"]["documentChanges"]
        assert change["textDocument"]["version"] is not None
        assert len(change["edits"]) == 1
        original = await server.client.request(
            "daiku/changes/original", {"sessionId": session, "path": "a.txt"}
        )
        assert original["text"] == BEFORE.replace("line 9\n", "line nine, not saved\n")


async def test_typing_while_a_rejection_is_on_its_way_is_never_overwritten(
    workspace: Path, script: Script
) -> None:
    (workspace / "a.txt").write_text(BEFORE)
    async with connected(workspace, capabilities={"workspace": FULL}) as server:
        editor = FakeEditor(server.client)
        uri = editor.open(workspace / "a.txt", BEFORE)
        session = await worked(server, script(TWO, {"text": "done"}))

        def late(params: Any) -> Any:
            editor.type(uri, "typed at that moment\n" + editor.texts[uri])
            return editor.apply(params)

        server.client.on["workspace/applyEdit"] = late
        before = editor.texts[uri]
        error = await server.client.refused(
            "daiku/changes/decide", {"sessionId": session, "decision": "reject", "path": "a.txt"}
        )
        assert error.data["kind"] == "stale"
        assert editor.texts[uri] == "typed at that moment\n" + before
        server.client.on["workspace/applyEdit"] = editor.apply
        await decide(server, session, "reject", path="a.txt")
        assert editor.texts[uri] == "typed at that moment\n" + BEFORE
        chunks = (await server.client.request("daiku/session/get", {"sessionId": session}))["chunks"]
        assert [c["type"] for c in chunks].count("review") == 1


async def test_line_ends_an_encoding_and_a_missing_last_line_end_are_kept(
    workspace: Path, script: Script
) -> None:
    text = BEFORE.replace("line 9", "ｌｉｎｅ 九").replace("\n", "\r\n").removesuffix("\r\n")
    data = b"\xff\xfe" + text.encode("utf-16-le")
    (workspace / "a.txt").write_bytes(data)
    edits = edit_of("a.txt", ("line 3\r\n", "三\r\n"), ("line 15\r\n", ""), ("line 20", "line 20\r\nend"))
    async with connected(workspace) as server:
        session = await worked(server, script(edits, {"text": "done"}))
        assert (workspace / "a.txt").read_bytes() != data
        (file,) = await changes(server, session)
        assert [h["oldStart"] for h in file["hunks"]] == [3, 15, 20]
        for hunk in file["hunks"]:
            await decide(server, session, "reject", hunkIds=[hunk["hunkId"]])
        assert (workspace / "a.txt").read_bytes() == data


async def test_changes_whose_checkpoints_are_gone_do_not_hide_the_others(
    workspace: Path, daiku_home: Path, script: Script
) -> None:
    (workspace / "a.txt").write_text(BEFORE)
    model = script(TWO, edit_of("a.txt", ("line 9\n", "nine\n")), {"text": "done"})
    async with connected(workspace) as server:
        session = await worked(server, model)
        ask = server.client.request
        first, _ = (await ask("daiku/checkpoint/list", {"sessionId": session}))["checkpoints"]
    next((daiku_home / "checkpoints").glob(f"records/*/*{first['checkpointId']}.json")).unlink()
    async with connected(workspace) as server:
        assert (
            len((await server.client.request("daiku/checkpoint/list", {"sessionId": session}))["checkpoints"])
            == 1
        )
        (file,) = await changes(server, session)
        assert [h["text"] for h in file["hunks"]] == ["-line 9\n+nine\n"]
        await decide(server, session, "reject")
        assert "LINE 3" in (workspace / "a.txt").read_text()


async def test_what_a_formatter_makes_of_an_edit_is_part_of_it_not_the_persons(
    workspace: Path, script: Script
) -> None:
    (workspace / "a.txt").write_text(BEFORE)
    client = {"approvals": True, "editor": True}
    async with connected(workspace, capabilities={"workspace": FULL}, client=client) as server:
        editor = FakeEditor(server.client)
        uri = editor.open(workspace / "a.txt", BEFORE)

        def save(_: Any) -> None:
            formatted = editor.texts[uri].replace("LINE 3\nmore\n", "LINE 3\n    more, indented\n")
            if formatted != editor.texts[uri]:
                editor.type(uri, formatted)
            (workspace / "a.txt").write_text(formatted)

        server.client.on["daiku/editor/save"] = save
        server.client.on["daiku/editor/diagnostics"] = lambda _: {"diagnostics": []}
        session = await worked(server, script(TWO, {"text": "done"}))
        assert "more, indented" in editor.texts[uri]
        (file,) = await changes(server, session)
        assert file["hunks"][0]["text"] == "-line 3\n+LINE 3\n+    more, indented\n"
        assert not any(h["touched"] for h in file["hunks"])
        await decide(server, session, "reject")
        assert editor.texts[uri] == BEFORE


async def test_a_plain_editor_is_told_what_an_undo_leaves(workspace: Path, script: Script) -> None:
    (workspace / "a.txt").write_text(BEFORE)
    model = script(TWO, call("shell/run", command="touch made.txt"), {"text": "done"})
    async with connected(workspace, client={"approvals": False}) as server:
        session = await worked(server, model)
        params = {"command": "daiku.undo", "arguments": [{"sessionId": session}]}
        await server.client.request("workspace/executeCommand", params)
        assert (workspace / "a.txt").read_text() == BEFORE
        told = [p["message"] for p in server.client.said("window/showMessage")]
        assert any("touch made.txt" in text for text in told)

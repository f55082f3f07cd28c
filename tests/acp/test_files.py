"""Files through the client: unsaved text is the truth, what it can write it writes, paths stay in the workspace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acp.schema import ClientCapabilities, FileSystemCapabilities, WriteTextFileResponse

from daiku.fronts.acp import workspace as through_client
from tests.acp.pair import FILES, Editor, connected

Script = Callable[..., None]
EDIT = {"tool": "files/edit", "args": {"path": "a.py", "edits": [{"search": "old", "replace": "new"}]}}
READ = {"tool": "files/read", "args": {"path": "a.py"}}


def results(editor: Editor) -> list[str]:
    """What each call came to, as shown."""
    ended = [u for u in editor.of("tool_call_update") if u.status in ("completed", "failed")]
    return ["".join(c.content.text for c in u.content or () if c.type == "content") for u in ended]


async def test_what_is_read_is_the_unsaved_text(workspace: Path, script: Script) -> None:
    (workspace / "a.py").write_text("saved\n")
    script({"calls": [READ]}, {"text": "ok"})
    editor = Editor(buffers={str(workspace / "a.py"): "typed and not saved\n"})
    async with connected(editor, FILES) as pair:
        await pair.prompt(await pair.new(workspace), "read")
    assert "typed and not saved" in results(editor)[0]
    assert str(workspace / "a.py") in editor.read


async def test_an_edit_is_made_upon_the_unsaved_text_and_written_by_the_client(
    workspace: Path, script: Script
) -> None:
    (workspace / "a.py").write_text("old\n")
    script({"calls": [EDIT]}, {"text": "ok"})
    editor = Editor(buffers={str(workspace / "a.py"): "typed\nold\n"})
    async with connected(editor, FILES) as pair:
        await pair.prompt(await pair.new(workspace), "edit")
    assert editor.wrote == [(str(workspace / "a.py"), "typed\nnew\n")]
    diffs = [c for u in editor.of("tool_call_update") for c in u.content or () if c.type == "diff"]
    assert ("typed\nold\n", "typed\nnew\n") in [(d.old_text, d.new_text) for d in diffs]


async def test_a_new_file_is_written_by_the_client(workspace: Path, script: Script) -> None:
    script(
        {"calls": [{"tool": "files/write", "args": {"path": "sub/b.py", "content": "x = 1\n"}}]},
        {"text": "ok"},
    )
    editor = Editor()
    async with connected(editor, FILES) as pair:
        await pair.prompt(await pair.new(workspace), "write")
    assert editor.wrote == [(str(workspace / "sub" / "b.py"), "x = 1\n")]
    diffs = [c for u in editor.of("tool_call_update") for c in u.content or () if c.type == "diff"]
    assert (None, "x = 1\n") in [(d.old_text, d.new_text) for d in diffs]


async def test_a_client_that_offers_no_files_is_not_asked_for_any(workspace: Path, script: Script) -> None:
    (workspace / "a.py").write_text("old\n")
    script({"calls": [EDIT]}, {"text": "ok"})
    editor = Editor()
    async with connected(editor) as pair:
        await pair.prompt(await pair.new(workspace), "edit")
    assert (editor.read, editor.wrote) == ([], [])
    assert (workspace / "a.py").read_text() == "new\n"


@pytest.mark.parametrize("path", ["../outside.py", "/etc/passwd", "link/x.py"])
async def test_a_path_outside_the_workspace_never_reaches_the_client(
    workspace: Path, tmp_path: Path, script: Script, path: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (workspace / "link").symlink_to(tmp_path / "elsewhere")
    script(
        {"calls": [{"tool": "files/read", "args": {"path": path}}]},
        {"calls": [{"tool": "files/write", "args": {"path": path, "content": "x"}}]},
        {"text": "ok"},
    )
    editor = Editor()
    async with connected(editor, FILES) as pair:
        await pair.prompt(await pair.new(workspace), "go")
    assert (editor.read, editor.wrote) == ([], [])


async def test_a_write_that_the_client_refuses_changes_nothing_and_the_model_is_told(
    workspace: Path, script: Script
) -> None:
    (workspace / "a.py").write_text("old\n")
    script({"calls": [EDIT]}, {"text": "ok"})
    editor = Editor(refuses=frozenset({str(workspace / "a.py")}))
    async with connected(editor, FILES) as pair:
        await pair.prompt(await pair.new(workspace), "edit")
    assert (workspace / "a.py").read_text() == "old\n"
    assert "was not changed" in results(editor)[0]


async def test_a_patch_of_which_the_client_refuses_a_file_leaves_the_others_as_they_were(
    workspace: Path, script: Script
) -> None:
    for name in ("a.py", "b.py"):
        (workspace / name).write_text("old\n")
    patch = "".join(f"--- a/{n}\n+++ b/{n}\n@@ -1 +1 @@\n-old\n+new\n" for n in ("a.py", "b.py"))
    script({"calls": [{"tool": "files/patch", "args": {"patch": patch}}]}, {"text": "ok"})
    editor = Editor(refuses=frozenset({str(workspace / "b.py")}))
    async with connected(editor, FILES) as pair:
        await pair.prompt(await pair.new(workspace), "edit")
    assert [(workspace / n).read_text() for n in ("a.py", "b.py")] == ["old\n", "old\n"]


async def test_a_client_that_lies_about_its_files_is_worked_without(workspace: Path, script: Script) -> None:
    (workspace / "a.py").write_text("old\n")
    script({"calls": [READ]}, {"text": "ok"})
    editor = Editor(refuses=frozenset({"read_text_file", "write_text_file"}))
    async with connected(editor, FILES) as pair:
        await pair.prompt(await pair.new(workspace), "read")
    assert "old" in results(editor)[0]


async def test_a_client_that_says_it_wrote_and_did_not_is_helped(workspace: Path, script: Script) -> None:
    class Forgets(Editor):
        async def write_text_file(
            self, session_id: str, path: str, content: str, **kwargs: Any
        ) -> WriteTextFileResponse:
            return WriteTextFileResponse()

    (workspace / "a.py").write_text("old\n")
    script({"calls": [EDIT]}, {"text": "ok"})
    async with connected(Forgets(), FILES) as pair:
        await pair.prompt(await pair.new(workspace), "edit")
    assert (workspace / "a.py").read_text() == "new\n"


async def test_line_ends_and_encodings_stay_as_they_are(workspace: Path, script: Script) -> None:
    (workspace / "a.py").write_bytes(b"one\r\nold\r\n")
    (workspace / "j.py").write_bytes("名前 = 1\nold\n".encode("shift_jis"))
    edit = {"tool": "files/edit", "args": {"path": "j.py", "edits": [{"search": "old", "replace": "new"}]}}
    script({"calls": [EDIT]}, {"calls": [edit]}, {"text": "ok"})

    class KeepsLineEnds(Editor):
        """As Zed: its texts have \\n, the file what it had."""

        async def read_text_file(self, session_id: str, path: str, **kwargs: Any) -> Any:
            text = Path(path).read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
            return type(await super().read_text_file(session_id, path))(content=text)

    editor = KeepsLineEnds()
    (workspace / "a.py").write_bytes(b"one\r\nold\r\n")
    async with connected(editor, FILES) as pair:
        await pair.prompt(await pair.new(workspace), "edit")
    assert [content for _, content in editor.wrote] == ["one\r\nnew\r\n"]
    assert (workspace / "j.py").read_bytes() == "名前 = 1\nnew\n".encode("shift_jis")


async def test_a_file_with_unsaved_text_is_not_deleted(workspace: Path, script: Script) -> None:
    (workspace / "a.py").write_text("old\n")
    script({"calls": [{"tool": "files/delete", "args": {"path": "a.py"}}]}, {"text": "ok"})
    editor = Editor(buffers={str(workspace / "a.py"): "typed\n"})
    async with connected(editor, FILES) as pair:
        await pair.prompt(await pair.new(workspace), "delete")
    assert (workspace / "a.py").exists()


async def test_one_half_of_the_offer_is_used_alone(workspace: Path, script: Script) -> None:
    (workspace / "a.py").write_text("old\n")
    script({"calls": [EDIT]}, {"text": "ok"})
    editor = Editor()
    offer = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=False, write_text_file=True))
    async with connected(editor, offer) as pair:
        await pair.prompt(await pair.new(workspace), "edit")
    assert (editor.read, len(editor.wrote)) == ([], 1)


async def test_a_folder_that_is_named_by_a_link_keeps_its_name_for_the_client(
    workspace: Path, tmp_path: Path, script: Script
) -> None:
    link = tmp_path / "link"
    link.symlink_to(workspace)
    (workspace / "a.py").write_text("old\n")
    script({"calls": [EDIT]}, {"text": "ok"})
    editor = Editor(buffers={str(link / "a.py"): "typed\nold\n"})
    async with connected(editor, FILES) as pair:
        await pair.prompt(await pair.new(link), "edit")
    assert editor.wrote == [(str(link / "a.py"), "typed\nnew\n")]
    assert editor.of("tool_call")[0].locations[0].path == str(link / "a.py")


async def test_a_client_that_never_reads_is_not_waited_for(
    workspace: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hangs(Editor):
        async def read_text_file(self, session_id: str, path: str, **kwargs: Any) -> Any:
            await asyncio.Event().wait()

    monkeypatch.setattr(through_client, "SECONDS", 0.1)
    (workspace / "a.py").write_text("saved\n")
    script({"calls": [READ]}, {"text": "ok"})
    editor = Hangs()
    async with connected(editor, FILES) as pair:
        await pair.prompt(await pair.new(workspace), "read")
    assert "saved" in results(editor)[0]

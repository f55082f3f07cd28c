from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daiku.domain.errors import StaleVersionError
from daiku.domain.runs import Position
from daiku.domain.work.patches import FileChange, Patch
from daiku.edits.rules.positions import find_line_starts, to_offset
from daiku.fronts.lsp.documents.editor import EditorWorkspace
from daiku.fronts.lsp.documents.editor_queries import ClientEditor
from daiku.fronts.lsp.documents.open_documents import to_uri
from daiku.fronts.lsp.initialize import Offer, to_path
from daiku.fronts.lsp.server import serve
from tests.lsp.conftest import started
from tests.lsp.pair import Answered, Client


@pytest.fixture(autouse=True)
def prompt_editor(monkeypatch: pytest.MonkeyPatch) -> None:
    """These editors say at once what they have to say, or never."""
    monkeypatch.setattr("daiku.fronts.lsp.documents.editor.REPORT_SECONDS", 0.05)


FULL: dict[str, Any] = {
    "applyEdit": True,
    "workspaceEdit": {
        "documentChanges": True,
        "resourceOperations": ["create", "rename", "delete"],
        "changeAnnotationSupport": {},
    },
}


class FakeEditor:
    """Carries out applyEdit as an editor does: buffers, versions, files; reports changes."""

    def __init__(self, client: Client, *, report: bool = True, files: bool = True) -> None:
        self.client = client
        self.report = report
        self.files = files
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.edits: list[Any] = []
        client.on["workspace/applyEdit"] = self.apply

    def open(self, path: Path, text: str) -> str:
        uri = to_uri(path)
        self.texts[uri], self.versions[uri] = text, 1
        item = {"uri": uri, "languageId": "x", "version": 1, "text": text}
        self.client.notify("textDocument/didOpen", {"textDocument": item})
        return uri

    def type(self, uri: str, text: str) -> None:
        self.texts[uri] = text
        self.versions[uri] += 1
        document = {"uri": uri, "version": self.versions[uri]}
        self.client.notify(
            "textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]}
        )

    def apply(self, params: Any) -> Any:
        self.edits.append(params)
        edit = params["edit"]
        changes = edit.get("documentChanges")
        if changes is None:
            changes = [
                {"textDocument": {"uri": u, "version": None}, "edits": e} for u, e in edit["changes"].items()
            ]
        for change in changes:
            document: Any = change.get("textDocument")
            if document and document["version"] not in (None, self.versions.get(document["uri"])):
                return {"applied": False, "failureReason": "the document has changed"}
        for change in changes:
            self._carry_out(change)
        return {"applied": True}

    def _carry_out(self, change: Any) -> None:
        match change.get("kind"):
            case "create":
                assert not self.files or not Path(to_path(change["uri"]) or "").exists()
                self._write(change["uri"], "")
            case "delete":
                Path(to_path(change["uri"]) or "").unlink()
            case "rename":
                Path(to_path(change["oldUri"]) or "").rename(to_path(change["newUri"]) or "")
            case _:
                uri = change["textDocument"]["uri"]
                text = self.texts[uri] if uri in self.texts else self._read(uri)
                for edit in reversed(change["edits"]):
                    text = splice(text, edit)
                if uri in self.texts:
                    self.texts[uri] = text
                    if self.report:
                        self.type(uri, text)
                else:
                    self._write(uri, text)

    def _read(self, uri: str) -> str:
        path = Path(to_path(uri) or "")
        return path.read_bytes().decode() if path.exists() else ""

    def _write(self, uri: str, text: str) -> None:
        if self.files:
            Path(to_path(uri) or "").write_bytes(text.encode())


def splice(text: str, edit: Any) -> str:
    starts = find_line_starts(text)
    a, b = (to_offset(text, starts, Position(**edit["range"][e]), "utf-16") for e in ("start", "end"))
    return text[:a] + edit["newText"] + text[b:]


class Set:
    """A workspace over a fake editor."""

    def __init__(self, client: Client, editor: FakeEditor, files: EditorWorkspace) -> None:
        self.client = client
        self.editor = editor
        self.files = files

    async def change(self, *changes: FileChange) -> None:
        await self.files.apply(Patch(files=changes), "Daiku: edit")


async def build(root: Path, capabilities: Any = None, *, client: Any = None, **options: Any) -> Set:
    c = serve({})
    other = Client(c.protocol)
    other.attach()
    await other.request(
        "initialize",
        {
            "capabilities": {"workspace": FULL if capabilities is None else capabilities},
            "workspaceFolders": [{"uri": to_uri(root), "name": "w"}],
            "initializationOptions": {"client": client or {}},
        },
    )
    return Set(other, FakeEditor(other, **options), c.workspace)


def edit(path: str, old: str, new: str) -> FileChange:
    return FileChange(path=path, kind="edit", old=old, new=new)


async def test_unsaved_text_is_the_truth(workspace: Path) -> None:
    (workspace / "a.txt").write_text("saved")
    at = await build(workspace)
    assert (await at.files.read("a.txt")).text == "saved"
    uri = at.editor.open(workspace / "a.txt", "unsaved")
    file = await at.files.read("a.txt")
    assert (file.text, file.version, file.path) == ("unsaved", 1, "a.txt")
    at.client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert (await at.files.read("a.txt")).text == "saved"


async def test_an_open_document_is_changed_in_the_editor_and_not_on_disk(workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\n")
    at = await build(workspace)
    uri = at.editor.open(workspace / "a.txt", "one\ntwo\nthree\n")
    await at.change(edit("a.txt", "one\ntwo\nthree\n", "one\n2\nthree\n"))
    assert at.editor.texts[uri] == "one\n2\nthree\n"
    assert (workspace / "a.txt").read_text() == "one\ntwo\n"
    change = at.editor.edits[0]["edit"]["documentChanges"][0]
    assert change["textDocument"] == {"uri": uri, "version": 1}
    assert [e["newText"] for e in change["edits"]] == ["2\n"]
    assert change["edits"][0]["annotationId"] in at.editor.edits[0]["edit"]["changeAnnotations"]
    assert (await at.files.read("a.txt")).text == "one\n2\nthree\n"


async def test_one_patch_is_one_apply_edit(workspace: Path) -> None:
    for name in ("open.txt", "closed.txt", "gone.txt", "old.txt"):
        (workspace / name).write_text(f"{name}\n")
    at = await build(workspace)
    at.editor.open(workspace / "open.txt", "open.txt\n")
    await at.change(
        edit("open.txt", "open.txt\n", "changed\n"),
        edit("closed.txt", "closed.txt\n", "changed too\n"),
        FileChange(path="new.txt", kind="create", new="new\n"),
        FileChange(path="gone.txt", kind="delete", old="gone.txt\n"),
        FileChange(path="old.txt", kind="rename", old="old.txt\n", new="old.txt\n", to="moved.txt"),
    )
    assert len(at.editor.edits) == 1
    names = {p.name: p.read_text() for p in workspace.iterdir()}
    assert names == {
        "open.txt": "open.txt\n",
        "closed.txt": "changed too\n",
        "new.txt": "new\n",
        "moved.txt": "old.txt\n",
    }


async def test_what_the_client_cannot_do_is_done_on_disk(workspace: Path) -> None:
    (workspace / "closed.txt").write_text("a\n")
    at = await build(workspace, {"applyEdit": True})
    uri = at.editor.open(workspace / "open.txt", "x\n")
    await at.change(
        edit("open.txt", "x\n", "y\n"),
        edit("closed.txt", "a\n", "b\n"),
        FileChange(path="new.txt", kind="create", new="new\n"),
    )
    assert at.editor.texts[uri] == "y\n"
    assert (workspace / "closed.txt").read_text() == "b\n"
    assert (workspace / "new.txt").read_text() == "new\n"
    assert list(at.editor.edits[0]["edit"]) == ["changes"]


async def test_a_file_in_another_encoding_is_not_left_to_the_editor(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes("é\n".encode("utf-16"))
    at = await build(workspace)
    old = (await at.files.read("a.txt")).text
    await at.change(edit("a.txt", old, old + "日本\n"))
    assert not at.editor.edits
    assert (workspace / "a.txt").read_bytes().decode("utf-16") == "é\n日本\n"


async def test_a_document_that_moved_on_is_refused_and_untouched(workspace: Path) -> None:
    at = await build(workspace)
    uri = at.editor.open(workspace / "a.txt", "one\n")
    at.editor.type(uri, "two\n")
    with pytest.raises(StaleVersionError):
        await at.change(edit("a.txt", "one\n", "three\n"))
    assert at.editor.texts[uri] == "two\n"
    assert not at.editor.edits


async def test_a_version_that_the_editor_refuses_is_stale(workspace: Path) -> None:
    at = await build(workspace)
    uri = at.editor.open(workspace / "a.txt", "one\n")
    at.editor.versions[uri] = 7  # typed, not yet reported
    with pytest.raises(StaleVersionError, match="has changed"):
        await at.change(edit("a.txt", "one\n", "three\n"))
    assert (await at.files.read("a.txt")).text == "one\n"


@pytest.mark.parametrize("answer", [None, {}, {"applied": False}, [], "yes", {"applied": "yes"}])
async def test_an_edit_that_was_not_applied_is_stale(workspace: Path, answer: Any) -> None:
    at = await build(workspace)
    at.editor.open(workspace / "a.txt", "one\n")
    at.client.on["workspace/applyEdit"] = lambda _: answer
    with pytest.raises(StaleVersionError):
        await at.change(edit("a.txt", "one\n", "three\n"))


async def test_an_editor_that_answers_with_an_error_is_stale(workspace: Path) -> None:
    at = await build(workspace)

    def refuse(_: Any) -> Any:
        raise Answered({"code": -32603, "message": "no"})

    at.editor.open(workspace / "a.txt", "one\n")
    at.client.on["workspace/applyEdit"] = refuse
    with pytest.raises(StaleVersionError, match="no"):
        await at.change(edit("a.txt", "one\n", "three\n"))


async def test_nothing_is_changed_where_one_file_is_stale(workspace: Path) -> None:
    (workspace / "b.txt").write_text("other\n")
    at = await build(workspace)
    uri = at.editor.open(workspace / "a.txt", "one\n")
    for wrong in (edit("b.txt", "b\n", "c\n"), FileChange(path="b.txt", kind="create", new="x")):
        with pytest.raises(StaleVersionError):
            await at.change(edit("a.txt", "one\n", "two\n"), wrong)
    assert at.editor.texts[uri] == "one\n"
    assert (workspace / "b.txt").read_text() == "other\n"


async def test_an_editor_that_reports_late_is_read_with_the_edit(workspace: Path) -> None:
    at = await build(workspace, report=False)
    uri = at.editor.open(workspace / "a.txt", "one\n")
    await at.change(edit("a.txt", "one\n", "two\n"))
    assert (await at.files.read("a.txt")).text == "two\n"
    at.editor.type(uri, "two, and typed\n")
    assert (await at.files.read("a.txt")).text == "two, and typed\n"


async def test_a_closed_file_that_the_editor_did_not_write_is_written(workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    at = await build(workspace, files=False)
    await at.change(edit("a.txt", "one\n", "two\n"), FileChange(path="b.txt", kind="create", new="b\n"))
    assert (workspace / "a.txt").read_text() == "two\n"
    assert (workspace / "b.txt").read_text() == "b\n"


async def test_an_editor_without_edits_gets_files_but_loses_no_unsaved_text(workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    at = await build(workspace, {})
    uri = at.editor.open(workspace / "a.txt", "one\n")
    await at.change(edit("a.txt", "one\n", "two\n"))
    assert (workspace / "a.txt").read_text() == "two\n"
    at.editor.type(uri, "unsaved\n")
    with pytest.raises(StaleVersionError, match="unsaved"):
        await at.change(edit("a.txt", "unsaved\n", "three\n"))


async def test_documents_that_were_saved_are_saved_after_the_edit(workspace: Path) -> None:
    for name in ("clean.txt", "dirty.txt", "closed.txt"):
        (workspace / name).write_text("one\n")
    at = await build(workspace, client={"editor": True})
    clean = at.editor.open(workspace / "clean.txt", "one\n")
    at.editor.open(workspace / "dirty.txt", "1\n")
    saved: list[str] = []
    at.client.on["daiku/editor/save"] = lambda params: saved.extend(params["uris"])
    await at.change(
        edit("clean.txt", "one\n", "two\n"),
        edit("dirty.txt", "1\n", "2\n"),
        edit("closed.txt", "one\n", "two\n"),
    )
    assert saved == [clean, to_uri(workspace / "closed.txt")]


async def test_diagnostics_and_places_come_from_the_editor_in_characters(workspace: Path) -> None:
    (workspace / "a.py").write_text("😀 x = 1\ny = x\n")
    at = await build(workspace, client={"editor": True})
    c = at.client.protocol
    editor = ClientEditor(c, at.files._documents, at.files)
    uri = to_uri(workspace / "a.py")
    span = {"start": {"line": 0, "character": 3}, "end": {"line": 0, "character": 4}}
    item = {"uri": uri, "range": span, "severity": "error", "message": "no x", "source": "pyright"}
    outside = {**item, "uri": "file:///elsewhere/b.py"}
    at.client.on["daiku/editor/diagnostics"] = lambda _: {"diagnostics": [item, outside]}
    (found,) = await editor.diagnostics(None)
    assert (found.path, found.range.start.character, found.message) == ("a.py", 2, "no x")
    at.client.on["daiku/editor/definition"] = lambda p: {"locations": [{"uri": p["uri"], "range": span}]}
    (place,) = await editor.definition("a.py", Position(line=0, character=2))
    assert (place.path, place.range.start.character) == ("a.py", 2)
    assert at.client.said("daiku/editor/definition")[0]["position"] == {"line": 0, "character": 3}


async def test_folders_come_and_go(workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.txt").write_text("b")
    at = await build(workspace)
    folder = {"uri": to_uri(other), "name": "other"}
    at.client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [folder], "removed": []}})
    assert at.files.roots == (workspace, other)
    gone = {"uri": to_uri(workspace), "name": "w"}
    at.client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [gone]}})
    assert (await at.files.read("b.txt")).text == "b"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("textDocument/didOpen", {"textDocument": {"uri": 5}}),
        ("textDocument/didOpen", None),
        (
            "textDocument/didChange",
            {"textDocument": {"uri": "file:///never/opened", "version": 1}, "contentChanges": []},
        ),
        ("textDocument/didChange", {"contentChanges": "x"}),
        ("textDocument/didClose", {"textDocument": {"uri": "file:///never/opened"}}),
        ("workspace/didChangeWorkspaceFolders", {"event": None}),
        ("workspace/didChangeConfiguration", 5),
        ("window/workDoneProgress/cancel", {"token": "unknown"}),
    ],
)
async def test_a_malformed_notification_harms_nobody(method: str, params: Any) -> None:
    async with started() as server:
        await server.client.request("initialize", {"capabilities": {}})
        server.client.notify(method, params)
        assert (await server.client.request("daiku/session/list"))["sessions"] == []


def test_uris_and_paths_are_the_same_place() -> None:
    for path in ("/a/b c/ü.py", "/a/#%20?.py", "/日本/😀.txt"):
        assert to_path(to_uri(Path(path))) == path
    assert to_path("untitled:Untitled-1") is None
    assert Offer().encoding == "utf-16"

"""What an engineer is told after an edit, through the whole server: problems, formatting, broken syntax."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from daiku.fronts.lsp.documents.open_documents import to_uri
from tests.lsp.conftest import Whole, connected, write_script
from tests.lsp.documents.test_editor import FULL, FakeEditor

Json = dict[str, Any]


class Linter(FakeEditor):
    """An editor with a linter (lines with `bad`) and, where `formats`, a formatter that runs on saving."""

    formats = False

    def lint(self, params: Any) -> Any:
        assert params["settle"]
        found: list[Json] = []
        for uri, text in self.texts.items():
            for number, line in enumerate(text.split("\n")):
                if "bad" in line:
                    span = {
                        "start": {"line": number, "character": 0},
                        "end": {"line": number, "character": 1},
                    }
                    found.append({"uri": uri, "range": span, "severity": "error", "message": f"no {line}"})
        return {"diagnostics": found}

    def save(self, params: Any) -> None:
        for uri in params["uris"]:
            if self.formats and uri in self.texts:
                self.type(uri, self.texts[uri].replace("  ", " "))
            if uri in self.texts:
                Path(uri.removeprefix("file://")).write_text(self.texts[uri])


@asynccontextmanager
async def editing(root: Path, *calls: Json) -> AsyncGenerator[tuple[Whole, Linter, str]]:
    model = write_script(root, *({"calls": [call]} for call in calls), {"text": "Done."})
    options: Json = {
        "capabilities": {"workspace": FULL},
        "client": {"approvals": True, "editor": True},
        "settings": {"llm": {"provider": "scripted"}, "approvals": {"edit": "allow"}},
    }
    async with connected(root, **options) as server:
        editor = Linter(server.client)
        server.client.on["daiku/editor/diagnostics"] = editor.lint
        server.client.on["daiku/editor/save"] = editor.save
        yield server, editor, model


async def told(server: Whole, model: str) -> list[Json]:
    await server.client.request("daiku/chat", {"text": "go", "model": model, "partialResultToken": "t"})
    return [c["data"] for c in server.client.chunks("t") if c["type"] == "tool_response"]


def edit(path: str, search: str, replace: str) -> Json:
    return {"tool": "files/edit", "args": {"path": path, "edits": [{"search": search, "replace": replace}]}}


async def test_problems_that_an_edit_made_are_in_the_next_turn_and_moved_ones_are_not(
    workspace: Path,
) -> None:
    place = workspace / "a.txt"
    place.write_text("bad old\ngood\n")
    calls = (
        edit("a.txt", "bad old", "new\nbad old"),
        edit("a.txt", "good", "bad new"),
        edit("a.txt", "bad old", "b"),
    )
    async with editing(workspace, *calls) as (server, editor, model):
        editor.open(place, "bad old\ngood\n")
        moved, made, mended = await told(server, model)
    assert "roblems" not in moved["result"]
    assert moved["data"]["problems"] == {"new": {}, "fixed": 0}
    assert made["result"].endswith(
        "New problems in the editor since this edit (1 error):\na.txt:3:1 error: no bad new"
    )
    assert mended["result"].endswith("Problems in the editor: 1 fixed, none new.")


async def test_what_a_formatter_made_of_an_edit_is_told_and_on_record(workspace: Path) -> None:
    place = workspace / "a.txt"
    place.write_text("one\ntwo\n")
    async with editing(workspace, edit("a.txt", "two", "two  and  more")) as (server, editor, model):
        editor.formats = True
        editor.open(place, "one\ntwo\n")
        (result,) = await told(server, model)
        chunks = server.client.chunks("t")
    assert "changed it further (its formatter):" in result["result"]
    assert "-two  and  more\n+two and more" in result["result"]
    (edited,) = [c["data"] for c in chunks if c["type"] == "edit"]
    assert "+two and more" in edited["diff"]
    assert "two  and" not in edited["diff"]
    assert place.read_text() == "one\ntwo and more\n"


async def test_an_edit_that_breaks_a_file_is_refused_once(workspace: Path) -> None:
    place = workspace / "a.py"
    place.write_text("x = (1)\n")
    breaking = edit("a.py", "(1)", "(1")
    async with editing(workspace, breaking, breaking) as (server, _, model):
        first, second = await told(server, model)
    assert first["ok"] is False
    assert "a.py would no longer parse: line 1: '(' was never closed" in first["result"]
    assert second["ok"] is True
    assert place.read_text() == "x = (1\n"


async def test_an_editor_that_cannot_tell_or_hangs_costs_nothing_but_a_bounded_wait(
    workspace: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("daiku.tools.files.make_edit.SETTLE_SECONDS", 0.05)
    place = workspace / "a.txt"
    place.write_text("one\n")

    async def never(_: Any) -> Any:
        await asyncio.sleep(60)

    async with editing(workspace, edit("a.txt", "one", "two")) as (server, editor, model):
        editor.open(place, "one\n")
        server.client.on["daiku/editor/diagnostics"] = never
        (result,) = await told(server, model)
    assert result["ok"]
    assert "roblems" not in result["result"]
    assert place.read_text() == "two\n"
    assert to_uri(place) in editor.texts

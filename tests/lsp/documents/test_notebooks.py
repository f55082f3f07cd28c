"""Notebooks that are open in the editor: what it shows is the truth, and edits go through it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.errors import StaleVersionError
from daiku.domain.work.patches import FileChange
from daiku.fronts.lsp.documents.editor_queries import ClientEditor
from daiku.fronts.lsp.documents.notebooks import document_name
from daiku.fronts.lsp.documents.open_documents import to_uri
from daiku.tools.rules.notebooks.celltext import merge_cell_text, to_cell_text
from tests.core.notebooks.test_celltext import cell, notebook
from tests.lsp.documents.test_editor import Set, build

RAW = notebook(cell(["# Title"], "markdown", id="a"), cell(["x = 1\n", "x"], id="b"))


class Cells:
    """Plays the editor's open notebook."""

    def __init__(self, at: Set, place: Path) -> None:
        self.place = place
        self.dirty = False
        self.saved: list[str] = []
        self.edits: list[Any] = []
        self.cells: list[dict[str, Any]] = [
            {
                "uri": "vscode-notebook-cell:/n#0",
                "kind": "markup",
                "language": "markdown",
                "text": "# Title",
                "id": "a",
            },
            {
                "uri": "vscode-notebook-cell:/n#1",
                "kind": "code",
                "language": "python",
                "text": "x = 1\nx",
                "id": "b",
            },
        ]
        at.client.on["daiku/editor/notebook"] = self.read
        at.client.on["daiku/editor/editNotebook"] = self.edit
        at.client.on["daiku/editor/save"] = lambda params: self.saved.extend(params["uris"])

    def read(self, params: Any) -> Any:
        if params["uri"] != to_uri(self.place):
            return {"dirty": False}
        return {"dirty": self.dirty, "cells": self.cells}

    def edit(self, params: Any) -> Any:
        self.edits.append(params)
        if params["expected"] != [c["text"] for c in self.cells]:
            return {"applied": False, "reason": "its cells were changed meanwhile"}
        self.cells = [
            {**(self.cells[c["at"]] if c.get("at") is not None else {"uri": "new", "id": ""}), **c}
            for c in params["cells"]
        ]
        return {"applied": True}


async def opened(root: Path) -> tuple[Set, Cells]:
    (root / "n.ipynb").write_text(RAW)
    at = await build(root, client={"editor": True})
    return at, Cells(at, root / "n.ipynb")


def change(old: str, before: str, after: str) -> FileChange:
    text = to_cell_text(old) or ""
    assert before in text
    new = merge_cell_text(old, text.replace(before, after))
    assert isinstance(new, str)
    return FileChange(path="n.ipynb", kind="edit", old=old, new=new)


async def test_unsaved_cells_are_the_truth(workspace: Path) -> None:
    at, cells = await opened(workspace)
    assert (await at.files.read("n.ipynb")).text == RAW
    cells.cells[1]["text"] = "x = 2"
    cells.cells.append({"uri": "u", "kind": "code", "language": "python", "text": "new()", "id": ""})
    cells.dirty = True
    read = json.loads((await at.files.read("n.ipynb")).text)
    assert ["".join(c["source"]) for c in read["cells"]] == ["# Title", "x = 2", "new()"]
    assert [c["id"] for c in read["cells"]][:2] == ["a", "b"]


async def test_an_edit_goes_through_the_editor_and_what_was_saved_is_saved(workspace: Path) -> None:
    at, cells = await opened(workspace)
    await at.change(change(RAW, "x = 1", "x = 3"))
    assert [(c["at"], c["text"]) for c in cells.edits[0]["cells"]] == [(0, "# Title"), (1, "x = 3\nx")]
    assert cells.saved == [to_uri(workspace / "n.ipynb")]
    assert (workspace / "n.ipynb").read_text() == RAW, "the editor writes it"


async def test_cells_are_added_and_unsaved_notebooks_are_not_saved(workspace: Path) -> None:
    at, cells = await opened(workspace)
    cells.cells[1]["text"] = "x = 5"
    cells.dirty = True
    now = (await at.files.read("n.ipynb")).text
    await at.change(change(now, "# %% cell 2", "# %% cell new [markdown]\nWhy\n# %% cell 2"))
    assert [(c.get("at"), c["kind"], c["text"]) for c in cells.edits[0]["cells"]] == [
        (0, "markup", "# Title"),
        (None, "markup", "Why"),
        (1, "code", "x = 5"),
    ]
    assert not cells.saved


async def test_typing_makes_an_edit_stale(workspace: Path) -> None:
    at, cells = await opened(workspace)
    made = change(RAW, "x = 1", "x = 3")
    cells.cells[1]["text"] = "typed"
    cells.dirty = True
    with pytest.raises(StaleVersionError, match="in the editor"):
        await at.change(made)
    read = cells.read

    def read_then_type(params: Any) -> Any:
        found = read(params)
        cells.cells = [cells.cells[0], {**cells.cells[1], "text": "typed again"}]
        return found

    now = (await at.files.read("n.ipynb")).text
    at.client.on["daiku/editor/notebook"] = read_then_type
    with pytest.raises(StaleVersionError, match="its cells were changed"):
        await at.change(change(now, "typed", "mine"))
    assert cells.cells[1]["text"] == "typed again"


async def test_problems_in_a_cell_name_the_notebook_the_line_that_a_model_reads_and_the_cell(
    workspace: Path,
) -> None:
    at, _ = await opened(workspace)
    span = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 1}}
    item = {
        "uri": to_uri(workspace / "n.ipynb"),
        "range": span,
        "severity": "error",
        "message": "no x",
        "cell": 2,
    }
    at.client.on["daiku/editor/diagnostics"] = lambda _: {"diagnostics": [item]}
    editor = ClientEditor(at.client.protocol, at.files._documents, at.files)
    (found,) = await editor.settled(["n.ipynb"])
    lines = (to_cell_text(RAW) or "").split("\n")
    assert lines[found.range.start.line] == "x"
    assert (found.path, found.cell) == ("n.ipynb", 2)
    assert at.client.said("daiku/editor/diagnostics") == [{"settle": [to_uri(workspace / "n.ipynb")]}]


async def test_a_cell_is_named_by_its_notebook_and_number(workspace: Path) -> None:
    at, _ = await opened(workspace)
    c = at.client.protocol
    name = to_uri(workspace / "n.ipynb")
    at.client.on["daiku/editor/notebook"] = lambda p: (
        {
            "cells": [
                {"uri": "other", "kind": "code", "language": "python", "text": ""},
                {
                    "uri": f"vscode-notebook-cell:{workspace}/n.ipynb#W1",
                    "kind": "code",
                    "language": "python",
                    "text": "",
                },
            ]
        }
        if p["uri"] == name
        else {}
    )
    assert await document_name(c, f"vscode-notebook-cell:{workspace}/n.ipynb#W1") == f"{name}#cell=2"
    assert await document_name(c, f"vscode-notebook-cell:{workspace}/n.ipynb#gone") == name
    assert await document_name(c, "file:///a.py#x") == "file:///a.py#x"

"""Notebooks as texts of cells, and back."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.work.patches import FileChange
from daiku.edits.rules.matching.refusal import Refusal
from daiku.tools.rules.notebooks.celltext import (
    EMPTY,
    find_first_lines,
    format_cells,
    merge_cell_text,
    parse_cells,
    parse_notebook,
    to_cell_change,
    to_cell_text,
)

OUTPUT = {"output_type": "stream", "name": "stdout", "text": ["hello\n", "you\n"]}
ERROR = {"output_type": "error", "ename": "NameError", "evalue": "no x", "traceback": ["long"]}


def notebook(*cells: dict[str, Any], indent: int | None = 1, **more: Any) -> str:
    whole = {
        "cells": list(cells),
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
        **more,
    }
    return json.dumps(whole, indent=indent, ensure_ascii=False) + "\n"


def cell(source: str | list[str], kind: str = "code", **more: Any) -> dict[str, Any]:
    base: dict[str, Any] = {"cell_type": kind, "id": f"id-{abs(hash(str(source))) % 9999}", "metadata": {}}
    if kind == "code":
        base.update(execution_count=3, outputs=[])
    return {**base, "source": source, **more}


SAMPLE = notebook(
    cell(["# Title\n", "日本語"], "markdown"),
    cell(["x = 1\n", "print(x)"], outputs=[OUTPUT]),
    cell("y = x", outputs=[ERROR], metadata={"tags": ["a"], "z": 1.0e10}),
)


def test_the_text_names_each_cell_with_its_outputs_in_short() -> None:
    assert to_cell_text(SAMPLE) == (
        "# %% cell 1 [markdown]\n# Title\n日本語\n"
        "# %% cell 2 [code python] outputs: stdout 2 lines\nx = 1\nprint(x)\n"
        "# %% cell 3 [code python] outputs: error NameError: no x\ny = x\n"
    )
    found = parse_notebook(SAMPLE)
    assert found is not None
    lines = (to_cell_text(SAMPLE) or "").split("\n")
    assert [lines[n] for n in find_first_lines([p.cell for p in found.cells])] == [
        "# Title",
        "x = 1",
        "y = x",
    ]


def test_only_the_source_of_a_changed_cell_is_written_anew() -> None:
    text = to_cell_text(SAMPLE) or ""
    new = merge_cell_text(SAMPLE, text.replace("print(x)", "print(x)\nprint('é')"))
    assert isinstance(new, str)
    assert new == SAMPLE.replace('    "print(x)"', '    "print(x)\\n",\n    "print(\'é\')"')
    other = merge_cell_text(SAMPLE, text.replace("y = x", "y = 2"))
    assert other == SAMPLE.replace('"y = x"', '"y = 2"'), "a source that is a string stays one"


def test_a_cell_that_ends_with_an_empty_line_keeps_it_as_it_is_changed() -> None:
    raw = notebook(cell(["x = 1\n", "\n"]), cell("y = x"))
    text = to_cell_text(raw)
    assert text is not None
    assert merge_cell_text(raw, text.replace("x = 1", "x = 2")) == raw.replace("x = 1", "x = 2")


def test_cells_come_go_and_move() -> None:
    text = "# %% cell 3 [code]\ny = x\n# %% cell new [markdown]\n## New\n\n# %% cell 1 [markdown]\n# Title\n日本語\n"
    new = merge_cell_text(SAMPLE, text)
    assert isinstance(new, str)
    before, after = json.loads(SAMPLE)["cells"], json.loads(new)["cells"]
    assert (after[0], after[2]) == (before[2], before[0])
    assert after[1]["source"] == ["## New"]
    assert after[1]["cell_type"] == "markdown"
    assert len(after[1]["id"]) == 8
    assert new == json.dumps(json.loads(new), indent=1, ensure_ascii=False) + "\n", "its layout is the file's"


def test_a_cell_of_another_kind_keeps_its_name_and_metadata() -> None:
    new = merge_cell_text(
        SAMPLE, (to_cell_text(SAMPLE) or "").replace("cell 3 [code python]", "cell 3 [markdown]")
    )
    assert isinstance(new, str)
    made, was = json.loads(new)["cells"][2], json.loads(SAMPLE)["cells"][2]
    assert (made["id"], made["metadata"]) == (was["id"], was["metadata"])
    assert "outputs" not in made


def test_a_new_notebook_is_made_of_its_text() -> None:
    new = merge_cell_text(EMPTY, "# %% cell new [markdown]\n# A\n# %% cell new [code python]\n1 + 1\n")
    assert isinstance(new, str)
    assert [c["source"] for c in json.loads(new)["cells"]] == [["# A"], ["1 + 1"]]
    assert json.dumps(json.loads(new), indent=1) + "\n" == new


def test_what_cannot_be_meant_is_refused() -> None:
    for text, why in (
        ("x = 1\n", "belongs to no cell"),
        ("# %% cell 9 [code]\nx\n", "no cell 9"),
        ("# %% cell 1 [code]\nx\n# %% cell 1 [code]\ny\n", "twice"),
    ):
        refused = merge_cell_text(SAMPLE, text)
        assert isinstance(refused, Refusal)
        assert why in refused.text
    assert to_cell_text("[]") is None
    assert to_cell_text('{"cells": 5}') is None


def test_a_change_is_shown_by_cells() -> None:
    new = merge_cell_text(SAMPLE, (to_cell_text(SAMPLE) or "").replace("x = 1", "x = 2"))
    assert isinstance(new, str)
    seen = to_cell_change(FileChange(path="a.ipynb", kind="edit", old=SAMPLE, new=new))
    assert "# %% cell 2" in (seen.new or "")
    metadata_only = FileChange(path="a.ipynb", kind="edit", old=SAMPLE, new=SAMPLE.replace("1e+10", "5"))
    assert to_cell_change(metadata_only).old == SAMPLE


sources = st.text(st.sampled_from('ab\n"\\#% é😀\u2028\r\t[1]'), max_size=30) | st.sampled_from(
    ["", "\n", "# %% cell 1 [code]", "\\# %% cell new [raw] x", "a\n\n"]
)
lists = sources.map(lambda s: s.splitlines(keepends=True) if "\r" not in s and "\u2028" not in s else [s])
notebooks = st.builds(
    lambda cells, indent: notebook(*cells, indent=indent),
    st.lists(st.builds(cell, sources | lists, st.sampled_from(["code", "markdown", "raw"])), max_size=5),
    st.sampled_from([None, 1, 2, 4]),
)


@given(notebooks)
def test_the_text_as_it_is_changes_no_byte(raw: str) -> None:
    assert merge_cell_text(raw, to_cell_text(raw) or "") == raw
    found = parse_notebook(raw)
    assert found is not None
    again = parse_cells(format_cells([p.cell for p in found.cells]))
    assert not isinstance(again, Refusal)
    assert [c.source for c in again] == [p.cell.source for p in found.cells]


@given(
    notebooks.filter(lambda raw: len(json.loads(raw)["cells"]) > 1), sources.map(lambda s: s + "."), st.data()
)
def test_an_edit_of_one_cell_leaves_all_others_as_they_are(
    raw: str, source: str, data: st.DataObject
) -> None:
    found = parse_notebook(raw)
    assert found is not None
    cells = [p.cell for p in found.cells]
    at = data.draw(st.integers(0, len(cells) - 1))
    changed = [c if i != at else type(c)(c.number, c.kind, source) for i, c in enumerate(cells)]
    new = merge_cell_text(raw, format_cells(changed))
    assert isinstance(new, str)
    before, after = json.loads(raw), json.loads(new)
    assert "".join(after["cells"][at].pop("source")) == source
    before["cells"][at].pop("source")
    assert before == after
    place = found.cells[at]
    assert new.startswith(raw[: place.source_start])
    assert new.endswith(raw[place.source_end :])

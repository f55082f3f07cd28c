"""Notebooks (.ipynb) as a text of cells, and such a text back into the JSON, byte for byte where nothing changed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

from pydantic import JsonValue

from daiku.dataclass import dataclass, replace
from daiku.domain.base import JsonObject
from daiku.domain.work.patches import FileChange
from daiku.edits.rules.changes.diff import compute_line_ops
from daiku.edits.rules.matching.refusal import Refusal

_BLANK = re.compile(r"[ \t\n\r]*")
_INDENTED = re.compile(r"\{(\r?\n)([ \t]+)\"")
_DECODER = json.JSONDecoder()


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def members(text: str, at: int) -> Iterator[tuple[str, JsonValue, int, int]]:
    """Key, value and the value's span for each member of the object that begins at `at`; valid JSON."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        value, at = _DECODER.raw_decode(text, start)
        yield key, value, start, at
        at = _skip(text, at)
        at = _skip(text, at + 1) if text[at] == "," else at


def elements(text: str, at: int) -> Iterator[tuple[JsonValue, int, int]]:
    """Value and span for each element of the array that begins at `at`; valid JSON."""
    at = _skip(text, at + 1)
    while text[at] != "]":
        value, end = _DECODER.raw_decode(text, at)
        yield value, at, end
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at


@dataclass(frozen=True, slots=True)
class Layout:
    """How a JSON text is laid out; without `unit` it is all in one line."""

    unit: str
    newline: str
    ascii: bool

    def line(self, depth: int) -> str:
        """Return a line break with the indentation of `depth`; empty if the JSON is on one line."""
        return self.newline + self.unit * depth if self.unit else ""


def layout_of(text: str) -> Layout:
    """The layout of a JSON text, from its beginning; escapes only where it has them and nothing else."""
    match = _INDENTED.match(text.lstrip())
    escapes = text.isascii() and re.search(r"\\u[0-9a-fA-F]{4}", text) is not None
    return Layout(match[2] if match else "", match[1] if match else "\n", escapes)


def _lines(source: str) -> list[str]:
    parts = source.split("\n")
    lines = [f"{part}\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def format_source(source: str, text: str, start: int, end: int, layout: Layout) -> str:
    """A cell's source as its former value (`text[start:end]`) was written: string or lines, and their layout."""
    former = text[start:end]
    if former.startswith('"'):
        return json.dumps(source, ensure_ascii=layout.ascii)
    lines = [json.dumps(line, ensure_ascii=layout.ascii) for line in _lines(source)]
    if not lines:
        return "[]"
    inner = former[1:-1]
    first, last = inner[: _skip(inner, 0)], inner[len(inner.rstrip()) :]
    if inner.strip():
        between = f",{first}" if first else ", "
        return f"[{first}{between.join(lines)}{last}]"
    if not layout.unit:
        return f"[{', '.join(lines)}]"
    row = text[text.rfind("\n", 0, start) + 1 : start]
    indent = layout.newline + row[: len(row) - len(row.lstrip())]
    return f"[{indent}{layout.unit}{f',{indent}{layout.unit}'.join(lines)}{indent}]"


def format_cell(kind: str, source: str, cell_id: str, metadata: JsonObject, layout: Layout) -> str:
    """A whole cell as Jupyter writes one, two levels deep."""
    value: JsonObject = {"cell_type": kind}
    if kind == "code":
        value["execution_count"] = None
    if cell_id:
        value["id"] = cell_id
    value["metadata"] = metadata
    if kind == "code":
        value["outputs"] = []
    value["source"] = list(_lines(source))
    if not layout.unit:
        return json.dumps(value, ensure_ascii=layout.ascii)
    text = json.dumps(value, ensure_ascii=layout.ascii, indent=layout.unit)
    return text.replace("\n", layout.newline + layout.unit * 2)


SUFFIX = ".ipynb"
EMPTY = '{\n "cells": [],\n "metadata": {},\n "nbformat": 4,\n "nbformat_minor": 5\n}\n'

_HEAD = re.compile(r"# %% cell (\d+|new) \[(code|markdown|raw)(?: ([^\]\s]+))?\](?:[ \t].*)?")
_LIKE_HEAD = re.compile(r"\\*# %% cell (?:\d+|new) \[")
_NOTES = 160
_FORM = "`# %% cell 3 [code]` before the text of cell 3, `# %% cell new [markdown]` before that of a new one"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. `number` from 1, None for a new one; `notes`: its outputs in a few words."""

    number: int | None
    kind: str
    source: str
    language: str = ""
    id: str = ""
    notes: str = ""


class CellSpan(NamedTuple):
    """A cell with the span of its JSON object, and of its source's value in there."""

    cell: Cell
    start: int
    end: int
    source_start: int
    source_end: int


@dataclass(frozen=True, slots=True)
class Notebook:
    """A notebook's JSON, with where its cells are; `start`, `end`: the span of the cells' array."""

    raw: str
    cells: tuple[CellSpan, ...]
    start: int
    end: int
    has_ids: bool


def is_notebook(path: str) -> bool:
    """Return whether `path` has the extension of a notebook."""
    return path.lower().endswith(SUFFIX)


def parse_notebook(raw: str) -> Notebook | None:
    """The notebook of a JSON text; None where it is none (nbformat 4)."""
    try:
        whole: JsonValue = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(whole, dict) or not isinstance(whole.get("cells"), list):
        return None
    start, end = next((a, b) for key, _, a, b in members(raw, raw.index("{")) if key == "cells")
    language = _language(whole.get("metadata")) or "python"
    placed: list[CellSpan] = []
    for value, a, b in elements(raw, start):
        if not isinstance(value, dict):
            return None
        spans = {key: (c, d) for key, _, c, d in members(raw, a)}
        if "source" not in spans:
            return None
        placed.append(CellSpan(_cell(len(placed) + 1, value, language), a, b, *spans["source"]))
    minor = whole.get("nbformat_minor")
    has_ids = any(p.cell.id for p in placed) or (not placed and isinstance(minor, int) and minor >= 5)
    return Notebook(raw, tuple(placed), start, end, has_ids)


def _cell(number: int, value: JsonObject, language: str) -> Cell:
    kind = str(value.get("cell_type"))
    kind = kind if kind in ("code", "markdown") else "raw"
    source = value["source"]
    return Cell(
        number=number,
        kind=kind,
        source="".join(map(str, source)) if isinstance(source, list) else str(source),
        language=(_language(value.get("metadata")) or language) if kind == "code" else "",
        id=str(value.get("id") or ""),
        notes=_notes(value.get("outputs")),
    )


_LANGUAGES = (("vscode", "languageId"), ("language_info", "name"), ("kernelspec", "language"))
"""Where the metadata of a cell or of a notebook names its language."""


def _language(metadata: JsonValue) -> str:
    table = metadata if isinstance(metadata, dict) else {}
    for key, name in _LANGUAGES:
        found = table.get(key)
        language = found.get(name) if isinstance(found, dict) else None
        if isinstance(language, str) and language:
            return language
    return ""


def _notes(outputs: JsonValue) -> str:
    """What came of a cell, in a few words: kinds and sizes, an error's first line."""
    said = [_note(each) for each in outputs if isinstance(each, dict)] if isinstance(outputs, list) else []
    text = "; ".join(part for part in said if part).replace("\n", " ")
    return text if len(text) <= _NOTES else f"{text[:_NOTES]} …"


def _note(output: JsonObject) -> str:
    match output.get("output_type"):
        case "stream":
            text = output.get("text")
            whole = "".join(map(str, text)) if isinstance(text, list) else str(text)
            lines = len(whole.splitlines())
            return f"{output.get('name')} {lines} line{'' if lines == 1 else 's'}"
        case "error":
            return f"error {output.get('ename')}: {output.get('evalue')}"
        case _:
            data = output.get("data")
            return ", ".join(map(str, data)) if isinstance(data, dict) else ""


# ---- as text


def text_of(cells: Sequence[Cell]) -> str:
    """Each cell under a line that names it: `# %% cell 2 [code python]`, its outputs in short behind."""
    return "".join(_block(cell) for cell in cells)


def as_text(raw: str) -> str | None:
    """A notebook's JSON as the text of its cells; None where it is no notebook."""
    found = parse_notebook(raw)
    return None if found is None else text_of([placed.cell for placed in found.cells])


def _block(cell: Cell) -> str:
    number = "new" if cell.number is None else str(cell.number)
    mark = f"{cell.kind} {cell.language}" if cell.language else cell.kind
    notes = f" outputs: {cell.notes}" if cell.notes else ""
    body = "\n".join(f"\\{line}" if _LIKE_HEAD.match(line) else line for line in cell.source.split("\n"))
    return f"# %% cell {number} [{mark}]{notes}\n{body}\n"


def first_lines(cells: Sequence[Cell]) -> tuple[int, ...]:
    """For each cell the line (from 0) of the text form in which its source begins."""
    lines: list[int] = []
    at = 1
    for cell in cells:
        lines.append(at)
        at += cell.source.count("\n") + 2
    return tuple(lines)


def read_text(text: str) -> tuple[Cell, ...] | Refusal:
    """The cells of a text form."""
    cells: list[Cell] = []
    body: list[str] = []
    head: re.Match[str] | None = None
    for line in [*text.removesuffix("\n").split("\n"), None]:
        found = _HEAD.fullmatch(line.removesuffix("\r")) if line is not None else None
        if line is not None and found is None:
            body.append(line[1:] if line.startswith("\\") and _LIKE_HEAD.match(line) else line)
            continue
        if head is not None:
            number = None if head[1] == "new" else int(head[1])
            cells.append(Cell(number, head[2], "\n".join(body), head[3] or ""))
        elif "".join(body).strip():
            return Refusal(f"The text before the first cell belongs to no cell: write {_FORM}.")
        head, body = found, []
    return tuple(cells)


# ---- back into the JSON


def merge_text(raw: str, text: str) -> str | Refusal:
    """The JSON with the cells as `text` has them. What is not named there is taken out, `new` cells come
    in; all else (metadata, ids, outputs, the JSON's layout) stays as it is."""
    notebook = parse_notebook(raw)
    if notebook is None:
        return Refusal("It is no notebook of format 4: it can only be changed as JSON.")
    wanted = read_text(text)
    if isinstance(wanted, Refusal):
        return wanted
    numbers = [cell.number for cell in wanted if cell.number is not None]
    wrong = next((n for n in numbers if not 1 <= n <= len(notebook.cells)), None)
    if wrong is not None:
        return Refusal(f"There is no cell {wrong}: there are {len(notebook.cells)}. A new one is `cell new`.")
    if len(set(numbers)) < len(numbers):
        return Refusal(f"Cell {max(numbers, key=numbers.count)} stands twice. Write {_FORM}.")
    return write_cells(notebook, [_trimmed(cell, notebook) for cell in wanted])


def _trimmed(cell: Cell, notebook: Notebook) -> Cell:
    """Blank lines that only part a cell from the next are not meant to be in it."""
    old = notebook.cells[cell.number - 1].cell.source if cell.number else ""
    if cell.source == old or old.endswith("\n"):
        return cell
    return Cell(cell.number, cell.kind, cell.source.rstrip("\n"), cell.language)


def write_cells(notebook: Notebook, wanted: Sequence[Cell]) -> str:
    """The JSON with these cells; `number` says which cell of `notebook` one was."""
    layout = layout_of(notebook.raw)
    parts = list(_element_texts(notebook, wanted, layout))
    raw = notebook.raw
    if [cell.number for cell in wanted] == [placed.cell.number for placed in notebook.cells]:
        at, pieces = 0, list[str]()
        for placed, part in zip(notebook.cells, parts, strict=True):
            pieces += (raw[at : placed.start], part)
            at = placed.end
        return "".join([*pieces, raw[at:]])
    lead, between, tail = _around(notebook, layout)
    array = f"[{lead}{between.join(parts)}{tail}]" if parts else "[]"
    return raw[: notebook.start] + array + raw[notebook.end :]


def _around(notebook: Notebook, layout: Layout) -> tuple[str, str, str]:
    """What stands before the first cell, between two, after the last."""
    raw, cells = notebook.raw, notebook.cells
    if not cells:
        return layout.line(2), f",{layout.line(2)}" if layout.unit else ", ", layout.line(1)
    lead, tail = raw[notebook.start + 1 : cells[0].start], raw[cells[-1].end : notebook.end - 1]
    between = raw[cells[0].end : cells[1].start] if len(cells) > 1 else f",{lead or ' '}"
    return lead, between, tail


def _element_texts(notebook: Notebook, wanted: Sequence[Cell], layout: Layout) -> Iterator[str]:
    raw = notebook.raw
    ids = {placed.cell.id for placed in notebook.cells}
    for index, cell in enumerate(wanted):
        old = notebook.cells[cell.number - 1] if cell.number is not None else None
        if old is not None and old.cell.kind == cell.kind:
            if old.cell.source == cell.source:
                yield raw[old.start : old.end]
                continue
            value = format_source(cell.source, raw, old.source_start, old.source_end, layout)
            yield raw[old.start : old.source_start] + value + raw[old.source_end : old.end]
            continue
        kept: JsonValue = json.loads(raw[old.start : old.end]) if old is not None else {}
        metadata = kept.get("metadata") if isinstance(kept, dict) else None
        known = old.cell.id if old is not None else ""
        if notebook.has_ids and not known:
            known = _fresh_id(index, cell.source, ids)
        metadata = metadata if isinstance(metadata, dict) else {}
        yield format_cell(cell.kind, cell.source, known, metadata, layout)


def _fresh_id(index: int, source: str, taken: set[str]) -> str:
    sources = (f"{index}:{n}:{source}".encode("utf-8", "surrogatepass") for n in range(len(taken) + 1))
    made = next(each for data in sources if (each := sha256(data).hexdigest()[:8]) not in taken)
    taken.add(made)
    return made


def match_cells(former: Sequence[Cell], cells: Sequence[Cell]) -> list[Cell]:
    """`cells` with the number (from 1) of the former cell that each was: by id, else by its text and place."""
    by_id = {cell.id: number for number, cell in enumerate(former, 1) if cell.id}
    numbers: dict[int, int] = {}
    for index, cell in enumerate(cells):
        if (number := by_id.pop(cell.id, None)) is not None:
            numbers[index] = number
    taken = set(numbers.values())
    old = [n for n in range(1, len(former) + 1) if n not in taken]
    named = any(cell.id for cell in former)
    new = [i for i in range(len(cells)) if i not in numbers and not (named and cells[i].id)]
    keys = [_likeness(former[n - 1]) for n in old], [_likeness(cells[i]) for i in new]
    for kind, a, b, c, d in compute_line_ops(*keys):
        if kind == "equal" or (kind == "replace" and not named):
            pairs = zip(old[a:b], new[c:d], strict=False)
            numbers.update((i, n) for n, i in pairs if former[n - 1].kind == cells[i].kind)
    return [replace(cell, number=numbers.get(index)) for index, cell in enumerate(cells)]


def _likeness(cell: Cell) -> str:
    return f"{cell.kind}\0{cell.source}"


def with_cell_texts(change: FileChange) -> FileChange:
    """Convert a notebook's change from JSON to cell text; other changes are returned unchanged."""
    if not is_notebook(change.path):
        return change
    old, new = (None if side is None else as_text(side) for side in (change.old, change.new))
    unread = (change.old is not None and old is None) or (change.new is not None and new is None)
    if unread or old == new:
        return change
    return change.model_copy(update={"old": old, "new": new})

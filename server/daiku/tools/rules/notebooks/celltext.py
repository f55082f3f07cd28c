"""Convert notebooks (.ipynb) to a text of cells and back, byte for byte where nothing changed."""

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


def _skip_blanks(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position


def iterate_members(text: str, position: int) -> Iterator[tuple[str, JsonValue, int, int]]:
    """Yield key, value, and the value's span of each member of the object at `position`, in valid JSON."""
    position = _skip_blanks(text, position + 1)
    while text[position] != "}":
        key, position = _DECODER.raw_decode(text, position)
        start = _skip_blanks(text, _skip_blanks(text, position) + 1)
        value, position = _DECODER.raw_decode(text, start)
        yield key, value, start, position
        position = _skip_blanks(text, position)
        position = _skip_blanks(text, position + 1) if text[position] == "," else position


def iterate_elements(text: str, position: int) -> Iterator[tuple[JsonValue, int, int]]:
    """Yield value and span of each element of the array at `position`, in valid JSON."""
    position = _skip_blanks(text, position + 1)
    while text[position] != "]":
        value, end = _DECODER.raw_decode(text, position)
        yield value, position, end
        position = _skip_blanks(text, end)
        position = _skip_blanks(text, position + 1) if text[position] == "," else position


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a JSON text; without `unit` it is on one line."""

    unit: str
    newline: str
    ascii: bool

    def line(self, depth: int) -> str:
        """Return a line break with the indentation of `depth`; empty if the JSON is on one line."""
        return self.newline + self.unit * depth if self.unit else ""


def detect_layout(text: str) -> Layout:
    """Detect the layout of a JSON text from its beginning. `ascii` if it contains escapes and only ASCII."""
    match = _INDENTED.match(text.lstrip())
    escapes = text.isascii() and re.search(r"\\u[0-9a-fA-F]{4}", text) is not None
    return Layout(match[2] if match else "", match[1] if match else "\n", escapes)


def _split_lines(source: str) -> list[str]:
    parts = source.split("\n")
    lines = [f"{part}\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def format_source(source: str, text: str, start: int, end: int, layout: Layout) -> str:
    """Format a cell's source like its former value `text[start:end]`: a string or lines, the same layout."""
    former = text[start:end]
    if former.startswith('"'):
        return json.dumps(source, ensure_ascii=layout.ascii)
    lines = [json.dumps(line, ensure_ascii=layout.ascii) for line in _split_lines(source)]
    if not lines:
        return "[]"
    items = former[1:-1]
    first, last = items[: _skip_blanks(items, 0)], items[len(items.rstrip()) :]
    if items.strip():
        between = f",{first}" if first else ", "
        return f"[{first}{between.join(lines)}{last}]"
    if not layout.unit:
        return f"[{', '.join(lines)}]"
    row = text[text.rfind("\n", 0, start) + 1 : start]
    indent = layout.newline + row[: len(row) - len(row.lstrip())]
    return f"[{indent}{layout.unit}{f',{indent}{layout.unit}'.join(lines)}{indent}]"


def format_cell(kind: str, source: str, cell_id: str, metadata: JsonObject, layout: Layout) -> str:
    """Format a new cell as Jupyter does, two levels deep."""
    value: JsonObject = {"cell_type": kind}
    if kind == "code":
        value["execution_count"] = None
    if cell_id:
        value["id"] = cell_id
    value["metadata"] = metadata
    if kind == "code":
        value["outputs"] = []
    value["source"] = list(_split_lines(source))
    if not layout.unit:
        return json.dumps(value, ensure_ascii=layout.ascii)
    text = json.dumps(value, ensure_ascii=layout.ascii, indent=layout.unit)
    return text.replace("\n", layout.newline + layout.unit * 2)


SUFFIX = ".ipynb"
EMPTY = '{\n "cells": [],\n "metadata": {},\n "nbformat": 4,\n "nbformat_minor": 5\n}\n'

_HEAD = re.compile(r"# %% cell (\d+|new) \[(code|markdown|raw)(?: ([^\]\s]+))?\](?:[ \t].*)?")
_HEAD_LIKE = re.compile(r"\\*# %% cell (?:\d+|new) \[")
_MAX_NOTES = 160
_FORM = "`# %% cell 3 [code]` before the text of cell 3, `# %% cell new [markdown]` before that of a new one"


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell. `number` from 1, None for a new one; `notes`: a summary of its outputs."""

    number: int | None
    kind: str
    source: str
    language: str = ""
    id: str = ""
    notes: str = ""


class CellSpan(NamedTuple):
    """A cell with the spans of its JSON object and of its source's value."""

    cell: Cell
    start: int
    end: int
    source_start: int
    source_end: int


@dataclass(frozen=True, slots=True)
class Notebook:
    """A notebook's JSON with the spans of its cells; `start`, `end`: the span of the cells' array."""

    raw: str
    cells: tuple[CellSpan, ...]
    start: int
    end: int
    has_ids: bool


def is_notebook(path: str) -> bool:
    """Return True if `path` has the extension of a notebook."""
    return path.lower().endswith(SUFFIX)


def parse_notebook(raw: str) -> Notebook | None:
    """Parse a notebook (nbformat 4); None for any other text."""
    try:
        parsed: JsonValue = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict) or not isinstance(parsed.get("cells"), list):
        return None
    start, end = next((a, b) for key, _, a, b in iterate_members(raw, raw.index("{")) if key == "cells")
    language = _find_language(parsed.get("metadata")) or "python"
    cells: list[CellSpan] = []
    for value, a, b in iterate_elements(raw, start):
        if not isinstance(value, dict):
            return None
        spans = {key: (c, d) for key, _, c, d in iterate_members(raw, a)}
        if "source" not in spans:
            return None
        cells.append(CellSpan(_build_cell(len(cells) + 1, value, language), a, b, *spans["source"]))
    minor = parsed.get("nbformat_minor")
    has_ids = any(p.cell.id for p in cells) or (not cells and isinstance(minor, int) and minor >= 5)
    return Notebook(raw, tuple(cells), start, end, has_ids)


def _build_cell(number: int, value: JsonObject, language: str) -> Cell:
    kind = str(value.get("cell_type"))
    kind = kind if kind in ("code", "markdown") else "raw"
    source = value["source"]
    return Cell(
        number=number,
        kind=kind,
        source="".join(map(str, source)) if isinstance(source, list) else str(source),
        language=(_find_language(value.get("metadata")) or language) if kind == "code" else "",
        id=str(value.get("id") or ""),
        notes=_summarize_outputs(value.get("outputs")),
    )


_LANGUAGES = (("vscode", "languageId"), ("language_info", "name"), ("kernelspec", "language"))
"""Keys in the metadata of a cell or a notebook that name its language."""


def _find_language(metadata: JsonValue) -> str:
    table = metadata if isinstance(metadata, dict) else {}
    for key, name in _LANGUAGES:
        section = table.get(key)
        language = section.get(name) if isinstance(section, dict) else None
        if isinstance(language, str) and language:
            return language
    return ""


def _summarize_outputs(outputs: JsonValue) -> str:
    """Summarize a cell's outputs: kinds and sizes, and an error's first line."""
    parts = [_describe_output(o) for o in outputs if isinstance(o, dict)] if isinstance(outputs, list) else []
    text = "; ".join(filter(None, parts)).replace("\n", " ")
    return text if len(text) <= _MAX_NOTES else f"{text[:_MAX_NOTES]} …"


def _describe_output(output: JsonObject) -> str:
    match output.get("output_type"):
        case "stream":
            text = output.get("text")
            stream_text = "".join(map(str, text)) if isinstance(text, list) else str(text)
            lines = len(stream_text.splitlines())
            return f"{output.get('name')} {lines} line{'' if lines == 1 else 's'}"
        case "error":
            return f"error {output.get('ename')}: {output.get('evalue')}"
        case _:
            data = output.get("data")
            return ", ".join(map(str, data)) if isinstance(data, dict) else ""


# ---- to text


def format_cells(cells: Sequence[Cell]) -> str:
    """Format each cell under a heading such as `# %% cell 2 [code python]`, with a summary of its outputs."""
    return "".join(_format_cell_block(cell) for cell in cells)


def to_cell_text(raw: str) -> str | None:
    """Convert a notebook's JSON to the text of its cells; None if it is not a notebook."""
    notebook = parse_notebook(raw)
    return None if notebook is None else format_cells([span.cell for span in notebook.cells])


def _format_cell_block(cell: Cell) -> str:
    number = "new" if cell.number is None else str(cell.number)
    mark = f"{cell.kind} {cell.language}" if cell.language else cell.kind
    notes = f" outputs: {cell.notes}" if cell.notes else ""
    body = "\n".join(f"\\{line}" if _HEAD_LIKE.match(line) else line for line in cell.source.split("\n"))
    return f"# %% cell {number} [{mark}]{notes}\n{body}\n"


def find_first_lines(cells: Sequence[Cell]) -> tuple[int, ...]:
    """Return for each cell the line (from 0) of the text form where its source begins."""
    lines: list[int] = []
    line_number = 1
    for cell in cells:
        lines.append(line_number)
        line_number += cell.source.count("\n") + 2
    return tuple(lines)


def parse_cells(text: str) -> tuple[Cell, ...] | Refusal:
    """Parse the cells of a text form."""
    cells: list[Cell] = []
    body: list[str] = []
    head: re.Match[str] | None = None
    for line in [*text.removesuffix("\n").split("\n"), None]:
        match = _HEAD.fullmatch(line.removesuffix("\r")) if line is not None else None
        if line is not None and match is None:
            body.append(line[1:] if line.startswith("\\") and _HEAD_LIKE.match(line) else line)
            continue
        if head is not None:
            number = None if head[1] == "new" else int(head[1])
            cells.append(Cell(number, head[2], "\n".join(body), head[3] or ""))
        elif "".join(body).strip():
            return Refusal(f"The text before the first cell belongs to no cell: write {_FORM}.")
        head, body = match, []
    return tuple(cells)


# ---- to JSON


def merge_cell_text(raw: str, text: str) -> str | Refusal:
    """Replace the notebook's cells with those of `text`; metadata, ids, outputs, and the JSON's layout stay."""
    notebook = parse_notebook(raw)
    if notebook is None:
        return Refusal("It is no notebook of format 4: it can only be changed as JSON.")
    parsed = parse_cells(text)
    if isinstance(parsed, Refusal):
        return parsed
    numbers = [cell.number for cell in parsed if cell.number is not None]
    unknown_number = next((n for n in numbers if not 1 <= n <= len(notebook.cells)), None)
    if unknown_number is not None:
        return Refusal(
            f"There is no cell {unknown_number}: there are {len(notebook.cells)}. A new one is `cell new`."
        )
    if len(set(numbers)) < len(numbers):
        return Refusal(f"Cell {max(numbers, key=numbers.count)} stands twice. Write {_FORM}.")
    return write_cells(notebook, [_trim_blank_lines(cell, notebook) for cell in parsed])


def _trim_blank_lines(cell: Cell, notebook: Notebook) -> Cell:
    """Remove trailing blank lines that only separate a cell from the next."""
    old = notebook.cells[cell.number - 1].cell.source if cell.number else ""
    if cell.source == old or old.endswith("\n"):
        return cell
    return Cell(cell.number, cell.kind, cell.source.rstrip("\n"), cell.language)


def write_cells(notebook: Notebook, cells: Sequence[Cell]) -> str:
    """Return the JSON with these cells; `number`: the cell of `notebook` that each one was."""
    layout = detect_layout(notebook.raw)
    parts = list(_iterate_cell_json(notebook, cells, layout))
    raw = notebook.raw
    if [cell.number for cell in cells] == [span.cell.number for span in notebook.cells]:
        position, pieces = 0, list[str]()
        for span, part in zip(notebook.cells, parts, strict=True):
            pieces += (raw[position : span.start], part)
            position = span.end
        return "".join([*pieces, raw[position:]])
    before, between, tail = _find_separators(notebook, layout)
    array = f"[{before}{between.join(parts)}{tail}]" if parts else "[]"
    return raw[: notebook.start] + array + raw[notebook.end :]


def _find_separators(notebook: Notebook, layout: Layout) -> tuple[str, str, str]:
    """Return the text before the first cell, between two, and after the last."""
    raw, cells = notebook.raw, notebook.cells
    if not cells:
        return layout.line(2), f",{layout.line(2)}" if layout.unit else ", ", layout.line(1)
    before, tail = raw[notebook.start + 1 : cells[0].start], raw[cells[-1].end : notebook.end - 1]
    between = raw[cells[0].end : cells[1].start] if len(cells) > 1 else f",{before or ' '}"
    return before, between, tail


def _iterate_cell_json(notebook: Notebook, new_cells: Sequence[Cell], layout: Layout) -> Iterator[str]:
    raw = notebook.raw
    ids = {placed.cell.id for placed in notebook.cells}
    for index, cell in enumerate(new_cells):
        old = notebook.cells[cell.number - 1] if cell.number is not None else None
        if old is not None and old.cell.kind == cell.kind:
            if old.cell.source == cell.source:
                yield raw[old.start : old.end]
                continue
            value = format_source(cell.source, raw, old.source_start, old.source_end, layout)
            yield raw[old.start : old.source_start] + value + raw[old.source_end : old.end]
            continue
        old_json: JsonValue = json.loads(raw[old.start : old.end]) if old is not None else {}
        metadata = old_json.get("metadata") if isinstance(old_json, dict) else None
        cell_id = old.cell.id if old is not None else ""
        if notebook.has_ids and not cell_id:
            cell_id = _generate_id(index, cell.source, ids)
        metadata = metadata if isinstance(metadata, dict) else {}
        yield format_cell(cell.kind, cell.source, cell_id, metadata, layout)


def _generate_id(index: int, source: str, used_ids: set[str]) -> str:
    sources = (f"{index}:{n}:{source}".encode("utf-8", "surrogatepass") for n in range(len(used_ids) + 1))
    generated = next(one for data in sources if (one := sha256(data).hexdigest()[:8]) not in used_ids)
    used_ids.add(generated)
    return generated


def match_cells(former: Sequence[Cell], cells: Sequence[Cell]) -> list[Cell]:
    """Return `cells` with the number (from 1) of the former cell: matched by id, else by text and position."""
    by_id = {cell.id: number for number, cell in enumerate(former, 1) if cell.id}
    numbers: dict[int, int] = {}
    for index, cell in enumerate(cells):
        if (number := by_id.pop(cell.id, None)) is not None:
            numbers[index] = number
    used = set(numbers.values())
    old = [n for n in range(1, len(former) + 1) if n not in used]
    has_ids = any(cell.id for cell in former)
    new = [i for i in range(len(cells)) if i not in numbers and not (has_ids and cells[i].id)]
    keys = [_build_comparison_key(former[n - 1]) for n in old], [_build_comparison_key(cells[i]) for i in new]
    for kind, a, b, c, d in compute_line_ops(*keys):
        if kind == "equal" or (kind == "replace" and not has_ids):
            pairs = zip(old[a:b], new[c:d], strict=False)
            numbers.update((i, n) for n, i in pairs if former[n - 1].kind == cells[i].kind)
    return [replace(cell, number=numbers.get(index)) for index, cell in enumerate(cells)]


def _build_comparison_key(cell: Cell) -> str:
    return f"{cell.kind}\0{cell.source}"


def to_cell_change(change: FileChange) -> FileChange:
    """Convert a notebook's change from JSON to cell text. Other changes are returned unchanged."""
    if not is_notebook(change.path):
        return change
    old, new = (None if version is None else to_cell_text(version) for version in (change.old, change.new))
    is_invalid = (change.old is not None and old is None) or (change.new is not None and new is None)
    if is_invalid or old == new:
        return change
    return change.model_copy(update={"old": old, "new": new})

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.runs import Position
from daiku.edits.rules.positions import Encoding, find_line_starts, to_offset, to_position
from daiku.fronts.lsp.documents.editor import text_edits
from daiku.fronts.lsp.documents.open_documents import OpenDocument

ENCODINGS: list[Encoding] = ["utf-8", "utf-16", "utf-32"]
TEXT = st.text(st.sampled_from("ab é漢😀𝒳\n\r\t\x0b\x0c\x85\u2028"), max_size=40)
UNITS: dict[Encoding, Any] = {
    "utf-8": lambda s: len(s.encode()),
    "utf-16": lambda s: len(s.encode("utf-16-le")) // 2,
    "utf-32": len,
}


def lines_of(text: str) -> list[str]:
    """The lines of the specification, the slow way."""
    found, line, i = [], "", 0
    while i < len(text):
        end = "\r\n" if text[i : i + 2] == "\r\n" else text[i] if text[i] in "\r\n" else ""
        line += end or text[i]
        i += len(end) or 1
        if end:
            found.append(line)
            line = ""
    return [*found, line]


@given(TEXT)
def test_lines_end_where_the_specification_says_and_nowhere_else(text: str) -> None:
    starts = find_line_starts(text)
    assert [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)] == lines_of(text)


@given(TEXT, st.integers(0, 40), st.sampled_from(ENCODINGS))
def test_a_position_and_its_offset_are_the_same_place(text: str, offset: int, encoding: Encoding) -> None:
    offset = min(offset, len(text))
    starts = find_line_starts(text)
    place = to_position(text, starts, offset, encoding)
    assert place.character == UNITS[encoding](text[starts[place.line] : offset])
    back = to_offset(text, starts, place, encoding)
    inside_line_end = text[:offset].endswith("\r") and text[offset:].startswith("\n")
    assert back == (offset - 1 if inside_line_end else offset)


@given(TEXT, st.integers(-2, 60), st.integers(-2, 60), st.sampled_from(ENCODINGS))
def test_a_position_outside_is_brought_inside(
    text: str, line: int, character: int, encoding: Encoding
) -> None:
    assert (
        0
        <= to_offset(text, find_line_starts(text), Position(line=line, character=character), encoding)
        <= len(text)
    )


def test_half_of_a_pair_counts_as_its_beginning() -> None:
    starts = find_line_starts("a😀b")
    assert [to_offset("a😀b", starts, Position(line=0, character=i), "utf-16") for i in range(5)] == [
        0,
        1,
        1,
        2,
        3,
    ]


@given(TEXT, TEXT, st.sampled_from(ENCODINGS))
def test_edits_lead_from_one_text_to_the_other(old: str, new: str, encoding: Encoding) -> None:
    starts, result = find_line_starts(old), old
    for edit in reversed(text_edits(old, new, encoding)):
        a, b = (to_offset(old, starts, p, encoding) for p in (edit.range.start, edit.range.end))
        result = result[:a] + edit.text + result[b:]
    assert result == new


def test_an_edit_is_no_larger_than_the_change() -> None:
    old = "".join(f"line {i}\n" for i in range(1000))
    new = old.replace("line 500\n", "line five hundred\n").replace("line 900\n", "")
    edits = text_edits(old, new, "utf-16")
    assert [(e.range.start.line, e.range.end.line, e.text) for e in edits] == [
        (500, 501, "line five hundred\n"),
        (900, 901, ""),
    ]


PLACES = st.tuples(st.integers(0, 12), st.integers(0, 12))


@given(TEXT, st.lists(st.tuples(PLACES, PLACES, TEXT), max_size=6), st.sampled_from(ENCODINGS))
def test_incremental_changes_give_the_text_that_the_editor_has(
    text: str, changes: Any, encoding: Encoding
) -> None:
    document = OpenDocument("file:///a", None, 1, text)
    expected = text
    for (l1, c1), (l2, c2), inserted in changes:
        start, end = Position(line=l1, character=c1), Position(line=l2, character=c2)
        starts = find_line_starts(expected)
        a = to_offset(expected, starts, start, encoding)
        b = max(a, to_offset(expected, starts, end, encoding))
        expected = expected[:a] + inserted + expected[b:]
        document.replace(start, end, inserted, encoding)
        assert document.text == expected
        assert document.starts == find_line_starts(expected)

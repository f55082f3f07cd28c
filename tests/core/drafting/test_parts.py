"""A document cut into parts: all of it, in order, at headings, and never within code where it can be helped."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from daiku.domain.work.documents import Document
from daiku.team.rules.drafting.headings import find_headings
from daiku.team.rules.drafting.progress import MOST, DocumentPart, split_document
from tests.cases import examples

BLOCK = st.sampled_from(
    [
        "# A\n\n",
        "## B\r\n",
        "words " * 300 + "\n\n",
        "```\n# c\n" + "code\n" * 500 + "```\n",
        "文章。" * 1500,
        "\r\n\r\n",
        "x" * 7000,
    ]
)


def document(text: str, selection: tuple[int, int] | None = None) -> Document:
    return Document(path="a.md", form="markdown", text=text, selection=selection)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(BLOCK, max_size=30).map("".join))
def test_the_parts_are_the_whole_document_in_order_and_none_is_too_long(text: str) -> None:
    parts = split_document(document(text))
    assert "".join(text[p.start : p.end] for p in parts) == text
    assert all(p.end - p.start <= MOST for p in parts)
    assert all(p.start < p.end for p in parts) or text == ""
    assert not any(text[p.end - 1 : p.end + 1] == "\r\n" for p in parts)


def test_a_short_document_is_one_part_and_an_empty_one_too() -> None:
    assert split_document(document("# A\n\nx\n")) == (DocumentPart(0, 7, "A"),)
    assert split_document(document("")) == (DocumentPart(0, 0, ""),)


def test_a_long_document_is_cut_at_its_headings() -> None:
    text = "".join(f"## Part {n}\n\n{'words ' * 1000}\n\n" for n in range(6))
    parts = split_document(document(text))
    starts = {heading.start for heading in find_headings(text, "markdown")}
    assert len(parts) > 1
    assert all(part.start in starts for part in parts)
    assert parts[1].title == "Part 1"


def test_a_megabyte_without_headings_is_cut_between_paragraphs_and_in_time() -> None:
    text = ("A sentence of a long paragraph. " * 20 + "\n\n") * 1600
    parts = split_document(document(text))
    assert len(text) > 1_000_000
    assert all(text[: part.start].endswith("\n\n") or not part.start for part in parts)


def test_a_selection_is_all_that_is_worked_on() -> None:
    text = "# A\n\none\n\n## B\n\ntwo\n"
    assert split_document(document(text, (10, 21))) == (DocumentPart(10, 21, "B"),)

"""An edit that was asked for by pointing: what is inside its place, and nothing else, is let through."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from daiku.domain.runs import Position, Range
from daiku.domain.work.patches import FileChange, Patch
from daiku.edits.rules.changes.scope import EditPlace, find_edit_place, is_inside
from tests.cases import examples


def lines(first: int, last: int) -> Range:
    """Whole lines, as an editor says a selection that ends at the start of the next line."""
    return Range(start=Position(line=first, character=0), end=Position(line=last + 1, character=0))


def place_of(text: str, lines: Range | None) -> EditPlace:
    place = find_edit_place("a.txt", text, lines)
    assert place is not None
    return place


def edit(old: str, new: str, path: str = "a.txt") -> Patch:
    return Patch(files=(FileChange(path=path, kind="edit", old=old, new=new),))


TEXT = "one\ntwo\nthree\nfour\n"


def test_a_change_of_the_lines_is_inside_and_one_beside_them_is_not() -> None:
    place = place_of(TEXT, lines(1, 2))
    assert is_inside(edit(TEXT, "one\n2\n2b\n3\nfour\n"), place)
    assert is_inside(edit(TEXT, "one\nfour\n"), place)
    assert not is_inside(edit(TEXT, "1\ntwo\nthree\nfour\n"), place)
    assert not is_inside(edit(TEXT, "one\n2\nthree\nFOUR\n"), place)
    assert not is_inside(edit(TEXT, "one\ntwo"), place)
    assert not is_inside(edit(TEXT, "one\n2four\n"), place)  # the next line would be another
    assert not is_inside(edit(TEXT, "one\n2\nthree\nfour\n", "b.txt"), place)


def test_the_place_moves_with_its_lines_from_edit_to_edit() -> None:
    place = place_of(TEXT, lines(1, 1))
    longer = "one\n2\n2a\n2b\nthree\nfour\n"
    assert is_inside(edit(TEXT, longer), place)
    assert is_inside(edit(longer, longer.replace("2b", "zwei")), place)
    assert not is_inside(edit(longer, longer.replace("three", "drei")), place)


def test_a_selection_inside_a_line_means_the_line() -> None:
    within = Range(start=Position(line=1, character=1), end=Position(line=1, character=2))
    caret = Range(start=Position(line=1, character=1), end=Position(line=1, character=1))
    start = Range(start=Position(line=1, character=0), end=Position(line=1, character=0))
    for range_ in (within, caret, start):
        assert is_inside(edit(TEXT, TEXT.replace("two", "2")), place_of(TEXT, range_))
        assert not is_inside(edit(TEXT, TEXT.replace("three", "3")), place_of(TEXT, range_))


def test_what_a_person_changed_beside_it_meanwhile_is_not_taken_back() -> None:
    place = place_of(TEXT, lines(1, 1))
    now = TEXT.replace("four", "4")
    assert not is_inside(edit(now, TEXT.replace("two", "2")), place)


def test_a_file_is_never_made_moved_or_deleted_by_it() -> None:
    place = place_of(TEXT, None)
    assert is_inside(edit(TEXT, "other"), place)
    for change in (
        FileChange(path="a.txt", kind="create", new="x"),
        FileChange(path="a.txt", kind="delete", old=TEXT),
        FileChange(path="a.txt", kind="rename", old=TEXT, new=TEXT, to="b.txt"),
        FileChange(path="a.txt", kind="edit", old=TEXT, new=None),
    ):
        assert not is_inside(Patch(files=(change,)), place)
    assert not is_inside(Patch(files=()), place)
    two = (
        FileChange(path="a.txt", kind="edit", old=TEXT, new="x"),
        FileChange(path="b", kind="edit", new=""),
    )
    assert not is_inside(Patch(files=two), place)


LINES = st.lists(st.sampled_from(["a", "b", "", "  c", "日本", "\u2028x", "d\x0be"]), max_size=7)
ENDS = st.sampled_from(["\n", "\r\n"])


@given(old=LINES, new=LINES, end=ENDS, final=st.booleans(), data=st.data())
@settings(max_examples=examples(400), deadline=None)
def test_whatever_is_inside_leaves_every_other_line_as_it_was(
    old: list[str], new: list[str], end: str, final: bool, data: st.DataObject
) -> None:
    before, after = (end.join(rows) + (end if final and rows else "") for rows in (old, new))
    old, new = before.split(end), after.split(end)  # as an editor counts them: the last may be empty
    first = data.draw(st.integers(0, len(old)))
    last = data.draw(st.integers(first, max(first, len(old))))
    place = find_edit_place("a", before, lines(first, last))
    assert (place is None) == (first >= len(old))
    if place is None or not is_inside(edit(before, after, "a"), place):
        return
    head, tail = old[:first], old[last + 1 :]
    assert new[: len(head)] == head
    if tail != [""]:  # the end of the last line belongs to the line
        assert not tail or new[len(new) - len(tail) :] == tail


@given(old=LINES, middle=LINES, data=st.data())
@settings(deadline=None)
def test_whatever_replaces_only_the_lines_is_inside(
    old: list[str], middle: list[str], data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(old)))
    last = data.draw(st.integers(first, len(old)))
    before = "".join(row + "\n" for row in old)
    after = "".join(row + "\n" for row in [*old[:first], *middle, *old[last + 1 :]])
    assert is_inside(edit(before, after), place_of(before, lines(first, last)))

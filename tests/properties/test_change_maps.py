"""What holds for change maps: code points of the old text, through merging, issues and every position encoding."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from daiku.domain.work.patches import Change, ChangeOp, Issue, PatchJSON
from daiku.edits.rules.changes.changemap import (
    apply_map,
    build_change,
    change_map,
    merge_patches,
    overlap,
    patch_between,
    range_edits,
    rebase,
)
from daiku.edits.rules.positions import Encoding, find_line_starts, to_offset
from daiku.team.drafting.style import build_issues_patch
from tests.cases import examples

PIECE = st.sampled_from(
    ["a", "b", "é", "漢字", "😀", "𝒳", "e\u0301", "\n", "\r\n", "\r", "\t", "\u2028", " ", "# A\n"]
)
TEXT = st.lists(PIECE, max_size=24).map("".join)
ENCODINGS: list[Encoding] = ["utf-8", "utf-16", "utf-32"]
ENCODING = st.sampled_from(ENCODINGS)


@st.composite
def maps(draw: st.DrawFn, old: str) -> PatchJSON:
    """A patch of `old` whose changes stand anywhere, also within a line end or a cluster."""
    cuts = sorted(draw(st.lists(st.integers(0, len(old)), max_size=8)))
    found: list[Change] = []
    for start, end in zip(cuts[::2], cuts[1::2], strict=False):
        text = draw(TEXT)
        if (start < end or text) and not (found and found[-1].start == found[-1].end == start == end):
            found.append(build_change(start, end, text))
    new = apply_map(old, found)
    assert isinstance(new, str)
    return PatchJSON(new_text=new, change_map=tuple(found))


def made(old: str, changes: tuple[Change, ...]) -> str:
    """`old` with the changes made from the last to the first: the slow way, to compare with."""
    for change in reversed(changes):
        old = old[: change.start] + (change.text or "") + old[change.end :]
    return old


@example("a\nb\n", "a\nc\n")
@example("a\nb\nc\nd\n", "a\nc\nx\n")
@given(TEXT, TEXT)
def test_the_change_map_of_two_texts_leads_from_the_old_one_to_the_new_one(old: str, new: str) -> None:
    """R1.94, R1.95, R1.96, C1.8: code points, half-open, sorted, no overlap."""
    patch = patch_between(old, new)
    assert patch.new_text == new == made(old, patch.change_map) == apply_map(old, patch.change_map)
    at = 0
    for change in patch.change_map:
        assert at <= change.start <= change.end <= len(old)
        at = change.end
        match change.op:
            case ChangeOp.insert:
                assert change.start == change.end
                assert change.text
            case ChangeOp.delete:
                assert change.start < change.end
                assert not change.text
            case ChangeOp.replace:
                assert change.start < change.end
                assert change.text


@settings(max_examples=examples(300), deadline=None)
@given(st.data(), TEXT)
def test_a_merged_patch_keeps_the_whole_draft_and_what_of_the_style_does_not_overlap_it(
    data: st.DataObject, old: str
) -> None:
    """R1.59, C1.9: the draft wins, what gave way is reported, and the result is a change map of its text."""
    draft, style = data.draw(maps(old)), data.draw(maps(old))
    merged = merge_patches(draft, style)
    assert made(old, merged.change_map) == merged.new_text
    kept = [c for c in style.change_map if c not in merged.dropped]
    assert sorted(merged.change_map, key=repr) == sorted((*draft.change_map, *kept), key=repr)
    for change in style.change_map:
        assert (change in merged.dropped) == any(overlap(change, mine) for mine in draft.change_map)


@given(st.data(), TEXT)
def test_changes_of_a_draft_are_changes_of_the_text_before_it(data: st.DataObject, old: str) -> None:
    """C1.9: a correction of the draft's own words goes into them, one of words that it left alone stays the style's."""
    draft = data.draw(maps(old))
    style = data.draw(maps(draft.new_text))
    rebased = rebase(old, draft, style.change_map)
    merged = merge_patches(rebased.draft, rebased.style)
    rest = tuple(c for c in style.change_map if c not in rebased.straddling)
    assume(not merged.dropped)
    assert merged.new_text == made(draft.new_text, rest)


@settings(max_examples=examples(300), deadline=None)
@given(st.data(), TEXT, ENCODING)
@example(None, "a\r\nb", "utf-16")
def test_a_change_map_is_the_same_change_by_line_and_character(
    data: st.DataObject | None, old: str, encoding: Encoding
) -> None:
    """R1.95, C1.8: in UTF-8, UTF-16 and UTF-32, with astral characters, and never within a line end."""
    inside = (Change(op=ChangeOp.replace, start=2, end=3, text="😀"),)
    patch = (
        data.draw(maps(old)) if data is not None else PatchJSON(new_text=made(old, inside), change_map=inside)
    )
    edits = range_edits(old, patch.change_map, encoding)
    starts = find_line_starts(old)
    text = old
    for edit in reversed(edits):
        start, end = (to_offset(old, starts, p, encoding) for p in (edit.range.start, edit.range.end))
        text = text[:start] + edit.new_text + text[end:]
    assert text == patch.new_text


@pytest.mark.parametrize(("encoding", "character"), [("utf-8", 4), ("utf-16", 2), ("utf-32", 1)])
def test_an_astral_character_counts_as_the_encoding_counts_it(encoding: Encoding, character: int) -> None:
    """C1.8."""
    (edit,) = range_edits("😀x\r\n", (Change(op=ChangeOp.delete, start=1, end=2),), encoding)
    assert (edit.range.start.line, edit.range.start.character) == (0, character)
    assert edit.range.end.character == character + 1


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_half_of_a_surrogate_pair_is_refused(encoding: Encoding) -> None:
    """C1.8."""
    half = Change(op=ChangeOp.insert, start=0, end=0, text="\ud83d")
    with pytest.raises(ValueError, match="half of a surrogate pair at 0"):
        range_edits("a", (half,), encoding)
    with pytest.raises(ValueError, match="half of a surrogate pair at 1"):
        range_edits("a\udc00", (), encoding)


def test_a_map_that_does_not_fit_its_text_is_refused_by_name() -> None:
    """C1.8, C1.9."""
    insert = Change(op=ChangeOp.insert, start=1, end=1, text="b")
    good = PatchJSON(new_text="abc", change_map=(insert,))
    with pytest.raises(ValueError, match=r"^draft: its change_map does not lead to its new_text"):
        merge_patches(PatchJSON(new_text="xxx", change_map=(insert,)), good)
    with pytest.raises(ValueError, match="style is not a patch of the text"):
        merge_patches(good, PatchJSON(new_text="xy"))
    unsorted = PatchJSON(new_text="abc", change_map=(insert, Change(op=ChangeOp.delete, start=0, end=1)))
    with pytest.raises(ValueError, match=r"^style: "):
        merge_patches(good, unsorted)
    with pytest.raises(ValueError, match="before the change above"):
        range_edits("abc", unsorted.change_map, "utf-16")


def test_where_draft_and_style_overlap_the_draft_stays_and_the_style_is_reported() -> None:
    """R1.59, C1.9."""
    old = "one two three"
    draft = PatchJSON(new_text="one 2 three", change_map=(build_change(4, 7, "2"),))
    style = PatchJSON(
        new_text="One TWO three.",
        change_map=(build_change(0, 1, "O"), build_change(4, 7, "TWO"), build_change(13, 13, ".")),
    )
    merged = merge_patches(draft, style)
    assert merged.new_text == "One 2 three."
    assert merged.dropped == (build_change(4, 7, "TWO"),)
    assert made(old, merged.change_map) == merged.new_text


@settings(max_examples=examples(300), deadline=None)
@given(st.data(), TEXT)
def test_an_issue_is_placed_where_it_is_certain_and_reported_where_it_is_not(
    data: st.DataObject, text: str
) -> None:
    """R1.61: nothing is guessed."""
    offsets = st.none() | st.integers(-1, len(text) + 2)
    quotes = TEXT | st.integers(0, len(text)).flatmap(
        lambda a: st.integers(a, len(text)).map(lambda b: text[a:b])
    )
    issue = st.builds(Issue, replacement=TEXT, quote=quotes, start=offsets, end=offsets)
    issues = data.draw(st.lists(issue, max_size=5))
    patch = build_issues_patch(text, issues)
    assert made(text, patch.change_map) == patch.new_text
    assert len(patch.change_map) + len(patch.unplaced) == len(issues)


@pytest.mark.parametrize(
    ("issue", "why"),
    [
        (Issue(replacement="x"), "no_place"),
        (Issue(replacement="x", quote="dog"), "not_there"),
        (Issue(replacement="x", quote="cat"), "several_places"),
        (Issue(replacement="x", start=3, end=2), "outside"),
        (Issue(replacement="x", start=0, end=99), "outside"),
        (Issue(replacement="The", quote="The"), "nothing_changes"),
    ],
)
def test_an_issue_that_cannot_be_placed_says_why(issue: Issue, why: str) -> None:
    """R1.61."""
    patch = build_issues_patch("The cat and the cat.", (issue,))
    assert patch.new_text == "The cat and the cat."
    assert [each.why for each in patch.unplaced] == [why]


def test_of_two_issues_that_overlap_the_first_is_taken() -> None:
    """R1.61."""
    first = Issue(replacement="teh cat".replace("teh", "the"), quote="teh cat")
    second = Issue(replacement="tea", quote="teh")
    patch = build_issues_patch("see teh cat", (first, second))
    assert patch.new_text == "see the cat"
    assert [(u.issue, u.why) for u in patch.unplaced] == [(second, "overlap")]


def test_a_quote_with_plain_line_ends_is_found_in_a_text_with_others() -> None:
    """R1.61: and the text keeps its own."""
    patch = build_issues_patch("one\r\ntwo\r\n", (Issue(quote="one\ntwo", replacement="one\n2"),))
    assert patch.new_text == "one\r\n2\r\n"


@given(TEXT, TEXT)
def test_a_patch_has_the_names_of_the_contract_inside_and_outside(old: str, new: str) -> None:
    """R1.94, R1.96: `new_text` and `change_map` in Python, `newText` and `changeMap` on the wire."""
    patch = patch_between(old, new)
    assert list(patch.model_dump(mode="json")) == ["new_text", "change_map"]
    assert list(patch.model_dump(mode="json", by_alias=True)) == ["newText", "changeMap"]
    assert PatchJSON.model_validate(patch.model_dump(mode="json", by_alias=True)) == patch
    assert {c.op.value for c in patch.change_map} <= {"insert", "delete", "replace"}
    assert change_map(old, old) == ()

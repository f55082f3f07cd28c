"""Properties of reviewing: nothing is lost, nothing is attributed wrongly, decisions are what they say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.work.patches import FileChange, FileKind, Patch
from daiku.edits.rules.changes.choose import ChosenHunks, parse_hunks, select_hunks
from daiku.edits.rules.changes.diff import render_patch, split_lines
from daiku.edits.rules.changes.review import (
    FileReview,
    after_decision,
    after_edit,
    after_typing,
    get_lines,
    list_hunks,
)
from daiku.edits.rules.matching.refusal import Refusal

line = st.sampled_from(["a\n", "b\n", "c\n", "\n", "d\r\n", "long line\n"])
texts = st.builds(
    lambda lines, tail: "".join(lines) + tail, st.lists(line, max_size=12), st.sampled_from(["", "", "x"])
)


def consistent(review: FileReview) -> None:
    """The spans lead from one text to the other."""
    base, now = get_lines(review.base), get_lines(review.now)
    made: list[str] = []
    at = new = 0
    for span in review.spans:
        assert at <= span.old <= span.old_end
        made += base[at : span.old]
        assert len(made) == span.new
        made += now[span.new : span.new_end]
        at, new = span.old_end, span.new_end
        assert base[span.old : span.old_end] != now[span.new : span.new_end]
    assert made + base[at:] == now
    assert len(base) - at == len(now) - new


def changed(before: str, *after: str) -> FileReview:
    review = FileReview(before, before)
    for number, text in enumerate(after):
        review = after_edit(review, text, f"e{number}")
    return review


@given(texts, texts, texts)
def test_rejecting_all_gives_back_what_was_and_accepting_all_leaves_the_text(a: str, b: str, c: str) -> None:
    review = changed(a, b, c)
    consistent(review)
    assert review.base == a
    assert after_decision(review, accept=False).now == a
    every = {hunk.id for hunk in list_hunks(review)}
    assert after_decision(review, accept=False, ids=every).now == a
    assert after_decision(review, accept=True, ids=every).base == c
    assert not after_decision(review, accept=True, ids=every).spans


@given(texts, texts, st.data())
def test_any_order_of_decisions_is_applying_exactly_the_accepted_hunks(
    a: str, b: str, data: st.DataObject
) -> None:
    review = changed(a, b)
    hunks = list_hunks(review)
    wanted = {h.id: data.draw(st.booleans()) for h in hunks}
    lines = split_lines(a)
    for hunk in reversed(hunks):
        if wanted[hunk.id]:
            lines[hunk.span.old : hunk.span.old_end] = hunk.new
    for name in data.draw(st.permutations(list(wanted))):
        review = after_decision(review, wanted[name], {name})
        consistent(review)
    assert not review.spans
    assert review.now == review.base == "".join(lines)


@given(texts, st.lists(st.tuples(st.booleans(), texts), max_size=5))
def test_typing_and_edits_in_any_order_lead_to_the_text_that_is_there(
    a: str, story: list[tuple[bool, str]]
) -> None:
    review = FileReview(a, a)
    for number, (person, text) in enumerate(story):
        review = after_typing(review, text) if person else after_edit(review, text, f"e{number}")
        consistent(review)
        assert review.now == text
        untouched = {h.id for h in list_hunks(review) if not h.span.touched}
        after = after_decision(review, accept=False, ids=untouched)
        consistent(after)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=14), st.data())
def test_typing_beside_the_edits_survives_every_decision(plan: list[int], data: st.DataObject) -> None:
    """0: left alone, 1: edited by Daiku, 2: typed over by the person, 3: a line is added by the person after it.
    A line that nobody touches stands between each."""
    before = [x for i in range(len(plan)) for x in (f"line {i}\n", f"between {i}\n")]
    daiku = [
        "" if k == 1 and i % 2 else f"daiku {i}\n" if k == 1 else f"line {i}\n" for i, k in enumerate(plan)
    ]

    def whole(middle: list[str]) -> str:
        return "".join(x for i, line in enumerate(middle) for x in (line, f"between {i}\n"))

    def person(middle: list[str]) -> list[str]:
        return [
            f"person {i}\n" if k == 2 else f"{middle[i]}added {i}\n" if k == 3 else middle[i]
            for i, k in enumerate(plan)
        ]

    review = after_edit(FileReview("".join(before), "".join(before)), whole(daiku), "e")
    names = {h.id for h in list_hunks(review)}
    review = after_typing(review, whole(person(daiku)))
    consistent(review)
    assert {h.id for h in list_hunks(review)} == names
    assert not any(s.touched for s in review.spans)
    plain = [f"line {i}\n" for i in range(len(plan))]
    assert after_decision(review, accept=False).now == whole(person(plain))
    rejected = {n for n in names if data.draw(st.booleans())}
    kept = after_decision(review, accept=False, ids=rejected)
    middle = [
        plain[i] if any(f"line {i}\n" in h.old and h.id in rejected for h in list_hunks(review)) else daiku[i]
        for i in range(len(plan))
    ]
    assert kept.now == whole(person(middle))


@given(texts, texts, texts)
def test_what_the_person_types_within_an_edit_is_marked_and_not_undone_unasked(
    a: str, b: str, c: str
) -> None:
    review = after_typing(changed(a, b), c)
    consistent(review)
    if not review.spans:
        assert review.base == review.now == c


@given(st.lists(st.tuples(st.none() | texts, st.none() | texts), min_size=1, max_size=4), st.data())
def test_the_chosen_hunks_and_those_left_out_make_the_whole_edit(
    sides: list[tuple[str | None, str | None]], data: st.DataObject
) -> None:
    kinds: dict[tuple[bool, bool], FileKind] = {
        (True, False): "create",
        (False, True): "delete",
        (False, False): "edit",
    }
    patch = Patch(
        files=tuple(
            FileChange(path=f"f{i}", kind=kinds[old is None, new is None], old=old, new=new)
            for i, (old, new) in enumerate(sides)
            if old != new
        )
    )
    diff = render_patch(patch)
    count = len(parse_hunks(diff))
    assert "".join(p.body for p in parse_hunks(diff)).count("\n") <= diff.count("\n")
    wanted = tuple(i for i in range(count) if data.draw(st.booleans()))
    part = select_hunks(patch, ChosenHunks(diff, wanted))
    assert not isinstance(part, Refusal)
    files = {change.path: change.old for change in patch.files}
    for change in part.patch.files:
        assert files[change.path] == change.old
        files[change.path] = change.new
    assert (files == {c.path: c.new for c in patch.files}) == (len(wanted) == count)
    for change in part.left_out.files:
        assert files[change.path] == change.old
        files[change.path] = change.new
    assert files == {change.path: change.new for change in patch.files}
    kept = len(parse_hunks(render_patch(part.patch))) if part.patch.files else 0
    assert kept == len(wanted)

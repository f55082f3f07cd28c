"""What holds for every edit: diffs lead to what they came from, refusals leave bytes, nothing is emptied."""

from __future__ import annotations

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from daiku.domain.work.patches import FileChange, Patch, SearchReplace
from daiku.edits.rules.changes.changemap import apply_map, change_map
from daiku.edits.rules.changes.diff import compute_line_ops, render_patch, split_lines, stat
from daiku.edits.rules.edits import apply_edits
from daiku.edits.rules.matching.refusal import Refusal
from daiku.edits.rules.patch import build_patch, list_paths, parse_patch
from tests.cases import examples

# Few different lines, so that blocks repeat; odd separators, blanks and signs of diffs among them.
LINE = st.sampled_from(
    ["", "a", "b", "  a", "\ta", "a ", "}", "{", "-- x", "++ y", "@@ -1 +1 @@", "\\ No newline", "a\x0bb", "é\u2028", "a\r", "\r", "diff --git a/f b/f", "--- a/f", "+++ b/f", "# File: `x`"]
) | st.text(alphabet="ab \t-+@\r\u00e9", max_size=6)  # fmt: skip
TEXT = st.builds(
    lambda lines, end: "\n".join(lines) + end, st.lists(LINE, max_size=25), st.sampled_from(["", "\n"])
)


def change(old: str | None, new: str | None) -> Patch:
    kind = "create" if old is None else "delete" if new is None else "edit"
    return Patch(files=(FileChange(path="f", kind=kind, old=old, new=new),))


@settings(max_examples=examples(600), deadline=None)
@given(TEXT, TEXT)
def test_applying_the_diff_of_two_texts_gives_the_second(old: str, new: str) -> None:
    assume(new.strip() or not old.strip())
    assume(old != new)
    diff = render_patch(change(old, new))
    intents = parse_patch(diff)
    assert not isinstance(intents, Refusal), intents.text
    assert list_paths(intents) == ("f",)
    patch = build_patch(intents, {"f": old})
    assert not isinstance(patch, Refusal), patch.text
    assert patch.files[0].new == new


@given(TEXT, TEXT)
def test_line_operations_cover_both_texts_in_order(old: str, new: str) -> None:
    before, after = split_lines(old), split_lines(new)
    assert "".join(before) == old
    i = k = 0
    for op, i1, i2, k1, k2 in compute_line_ops(before, after):
        assert (i1, k1) == (i, k)
        assert op != "equal" or before[i1:i2] == after[k1:k2]
        i, k = i2, k2
    assert (i, k) == (len(before), len(after))
    counted = stat(change(old, new).files[0])
    assert len(after) - len(before) == counted.added - counted.removed


@given(TEXT, TEXT)
def test_a_change_map_leads_from_the_old_text_to_the_new(old: str, new: str) -> None:
    """R1.95, R1.96: start and end are places of the old text; applied, the changes give the new one."""
    assert apply_map(old, change_map(old, new)) == new


@settings(max_examples=examples(400), deadline=None)
@given(TEXT, TEXT, TEXT)
@example(" ", "\n", "\n\n")
def test_an_edit_replaces_one_place_or_is_refused_and_never_empties(
    text: str, search: str, replace: str
) -> None:
    result = apply_edits(text, [SearchReplace(search=search, replace=replace)])
    if isinstance(result, Refusal):
        assert result.text
        return
    assert result != text or search == replace or text.replace(search, replace) == text
    assert result.strip() or not text.strip()
    if search and text.count(search) == 1 and "\r" not in text + search + replace:
        above = text[: text.index(search)].rpartition("\n")[2]
        assert result == text.replace(search, replace) or (above and above.isspace() and "\n" in replace)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(LINE, min_size=3, max_size=20, unique=True), st.data())
def test_a_unique_block_is_found_in_a_crlf_file_and_stays_crlf(lines: list[str], data: st.DataObject) -> None:
    lines = [line.replace("\r", "") for line in lines]
    assume(len({line.strip() for line in lines}) == len(lines))
    start = data.draw(st.integers(0, len(lines) - 2))
    block = lines[start : start + 2]
    text = "\r\n".join(lines) + "\r\n"
    search = "\n".join(block) + "\n"
    assume(("\n" + text.replace("\r\n", "\n")).count("\n" + search) == 1)
    result = apply_edits(text, [SearchReplace(search=search, replace="one\ntwo\nthree\n")])
    assume(text.replace("\r\n", "\n").count(search) == 1)
    assert result == "\r\n".join([*lines[:start], "one", "two", "three", *lines[start + 2 :]]) + "\r\n"

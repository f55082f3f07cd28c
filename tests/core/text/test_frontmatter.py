"""Front matter: what is read of it, what is not understood, and that a change leaves all else as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.texts.rules.frontmatter import BadLine, FrontMatter, read_front_matter
from tests.cases import for_each
from tests.timing import cpu_seconds


def read(text: str) -> FrontMatter | BadLine | None:
    return read_front_matter(text, ("title", "state"), ("labels",))


def matter(text: str) -> FrontMatter:
    found = read(text)
    assert isinstance(found, FrontMatter), found
    return found


WRITTEN = {
    "plain": ("a b-c", "a b-c"),
    "a comment": ("a # not this", "a"),
    "a number sign inside": ("C#1", "C#1"),
    "a colon inside": ("http://x:1/y", "http://x:1/y"),
    "single quotes": ("'it''s # [so]'", "it's # [so]"),
    "double quotes": (r'"a\tb \u00e9 \U0001F600 \"x\""', 'a\tb é 😀 "x"'),
    "emoji": ("🚀 go", "🚀 go"),
    "nothing": ("", ""),
    "null": ("~", ""),
    "only a comment": ("# nothing", ""),
}


@for_each("case", WRITTEN)
def test_a_value_is_read_as_yaml_means_it(case: str) -> None:
    raw, value = WRITTEN[case]
    assert matter(f"---\ntitle: {raw}\n---\n").value("title") == value


LISTS = {
    "flow": ("labels: [a b, 'c, d', \"e\", ] # f\n", ("a b", "c, d", "e")),
    "block": ("labels:\n  - a b # c\n\n  # d\n  - 'c'\n", ("a b", "c")),
    "block without indentation": ("labels:\n- a\n- b\n", ("a", "b")),
    "one value": ("labels: a b\n", ("a b",)),
    "empty": ("labels: []\n", ()),
    "nothing": ("labels:\n", ()),
    "not there": ("title: x\n", ()),
}


@for_each("case", LISTS)
def test_a_list_is_read_in_all_its_forms(case: str) -> None:
    lines, values = LISTS[case]
    assert matter(f"---\n{lines}state: x\n---\n").values("labels") == values


BAD = {
    "never closed": ("---\ntitle: a\n", 1),
    "a key twice": ("---\ntitle: a\ntitle: b\n---\n", 3),
    "no field": ("---\ntitle: a\nhello\n---\n", 3),
    "a list that does not end": ("---\nlabels: [a,\n  b]\n---\n", 2),
    "a quote that does not end": ('---\ntitle: "a\n---\n', 2),
    "something behind the quote": ("---\ntitle: 'a' b\n---\n", 2),
    "an unknown escape": ('---\ntitle: "\\q"\n---\n', 2),
    "no character": ('---\ntitle: "\\ud800"\n---\n', 2),
    "several lines": ("---\ntitle: a\n  b\n---\n", 3),
    "a folded text": ("---\ntitle: >\n  b\n---\n", 2),
    "an anchor": ("---\ntitle: &a b\n---\n", 2),
    "a list for a value": ("---\nstate: [a]\n---\n", 2),
    "a block list for a value": ("---\nstate:\n- a\n---\n", 3),
    "a map": ("---\nlabels: {a: b}\n---\n", 2),
    "a map in a list": ("---\nlabels:\n  - a: b\n---\n", 3),
}


@for_each("case", BAD)
def test_what_is_not_understood_is_told_by_its_line(case: str) -> None:
    text, line = BAD[case]
    assert read(text) == BadLine(line)


@for_each("text", ["", "---", "text\n---\ntitle: a\n---\n", "\n---\ntitle: a\n---\n", "----\n"])
def test_a_text_without_front_matter_has_none(text: str) -> None:
    assert read(text) is None


def test_fields_that_were_not_asked_for_may_be_whatever_they_are() -> None:
    text = '---\nother: &x {a: [b]}\nmore: |\n  state: no\n  - labels\nlist:\n- a: b\n"q k": 1\nstate: yes # s\n...\nbody'
    found = matter(text)
    assert (found.value("state"), text[found.body :]) == ("yes", "body")
    assert found.with_value("state", "done") == text.replace("yes # s", "done # s")


CHANGED = {
    "flow, in its place": ("labels: [x, todo , 'y'] # c\n", "labels: [x, new , 'y'] # c\n"),
    "flow, two gone": ("labels: [old, x, todo]\n", "labels: [x, new]\n"),
    "flow, none gone": ("labels: ['x']\n", "labels: ['x', new]\n"),
    "block, in its place": ("labels:\n  - x\n  - todo # c\n", "labels:\n  - x\n  - new # c\n"),
    "block, two gone": ("labels:\n  - todo\n  - x\n  - old\n", "labels:\n  - new\n  - x\n"),
    "block, none gone": ("labels:\n  - x # c\n", "labels:\n  - x # c\n  - new\n"),
    "one value": ("labels: Todo\n", "labels: new\n"),
    "one other value": ("labels: a, b\n", 'labels: ["a, b", new]\n'),
    "empty": ("labels: # c\n", "labels: [new] # c\n"),
    "not there": ("", "labels: [new]\n"),
    "there already": ("labels: [new, x]\n", "labels: [new, x]\n"),
    "there already, another gone": ("labels: [new, todo]\n", "labels: [new]\n"),
}


@for_each("newline", ["\n", "\r\n"])
@for_each("case", CHANGED)
def test_an_item_of_a_list_is_changed_where_it_stands(case: str, newline: str) -> None:
    before, after = (f"---\n{lines}---\nbody\n".replace("\n", newline) for lines in CHANGED[case])
    assert matter(before).with_item("labels", "new", ("todo", "old", "new")) == after


LINES = st.lists(
    st.sampled_from(
        ["", "# c", "other: [a, b]", "more: |\n  state: x", "title: 'x' # y", 'title: "é🚀"', "state: # s"]
    ),
    unique=True,
    max_size=6,
)
BODY = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
VALUES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=20)


@given(LINES, BODY, VALUES, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_a_change_leaves_every_other_byte(
    lines: list[str], body: str, value: str, newline: str, bom: bool
) -> None:
    if sum(line.startswith("title") for line in lines) > 1:
        lines = [line for line in lines if "🚀" not in line]
    head = "".join(f"{line}\n" for line in ["---", *lines, "---"]).replace("\n", newline)
    text = ("\ufeff" if bom else "") + head + body
    before = matter(text)
    after = matter(before.with_value("state", value))
    assert after.value("state") == value
    assert after.value("title") == before.value("title")
    assert after.text[after.body :] == body
    line = after.text[: after.end].removesuffix(newline)
    written = next(each for each in reversed(line.split(newline)) if each.startswith("state:"))
    was = "state: # s" in lines
    assert after.text.replace(written + newline, "state: # s" + newline if was else "", 1) == text
    assert matter(after.with_value("state", value)).text == after.text


@given(st.text(st.sampled_from("-:[]{}'\"\\#, \nabtitleslabels\r\t&*|>~"), max_size=80))
def test_no_text_makes_it_stumble(text: str) -> None:
    read(f"---\n{text}\n---\n")


HOSTILE = {
    "open list": "labels: [" + "a," * 300_000,
    "deep list": "labels: " + "[" * 300_000,
    "open quote": "title: '" + "''" * 300_000,
    "backslashes": 'title: "' + "\\\\" * 300_000,
    "blanks": "title: a" + " \t" * 300_000 + "b: ",
    "colons": "title: " + ":a" * 300_000,
    "many keys": "k: v\n" * 200_000,
    "many items": "labels:\n" + "- a\n" * 4_000,
}


@for_each("case", HOSTILE)
def test_hostile_input_takes_time_by_its_length(case: str) -> None:
    text = f"---\n{HOSTILE[case]}\n---\n"
    assert cpu_seconds(lambda: read(text)) < 5


@pytest.mark.parametrize("value", ["yes", "null", "1", "a: b", "#", "[x]", "é", "-", "a\tb", "'", "Ω b"])
def test_what_was_written_is_read_again(value: str) -> None:
    assert matter(matter("---\n---\n").with_value("title", value)).value("title") == value

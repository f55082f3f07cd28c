"""A continuation is joined with what was cut off, and repeats nothing of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daiku.texts.rules.words import LEAST_REPEATED, join_continuation
from tests.cases import for_each

REPEATED = (
    ("It returns the sum because it", "It returns the sum because it uses plus."),
    ("It adds. It returns the sum because it", "It returns the sum because it uses plus."),
    ("It returns the sum because it", "because it uses plus."),
    ("It returns the sum because it", "\n\nbecause it uses plus."),
    ("It returns the sum because it", "it uses plus."),
    ("It returns the sum bec", "the sum because it uses plus."),
    ("- one thing\n- another thing\n- the thi", "- another thing\n- the third thing"),
    ("この関数は二つの数を足して", "二つの数を足して返します。"),
    ("same same same same same", "same same same same same end"),
)
GOES_ON = (
    ("It returns the sum because it", " uses plus."),
    ("It returns the sum bec", "ause it uses plus."),
    ("I said that", " that is right."),
    ("The option a", "aa is one."),
    ("The answer is 12", "123."),
    ("the fun", "function"),
    ('{"a": {"b": 1}}', "}"),
    ("        }\n    }\n", "    }\n}\n"),
    ("| --- | --- | --- |", " --- | --- | --- |"),
    ("================", "================"),
    ("", "All of it."),
    ("All of it.", ""),
    ("All of it.", "  "),
    ("return value", "\nreturn nothing"),
    ("if x:\n    return None\n", "    return None\n"),
    ("if x:\n    return None", "\n    return None\n"),
    ("a,\n<td>value</td>\n", "<td>value</td>\n<td>value</td>\n"),
)


@for_each(("half", "rest"), REPEATED)
def test_a_repeated_end_stands_once(half: str, rest: str) -> None:
    """A23.1"""
    end = rest.lstrip()
    joined = join_continuation(half, rest)
    assert joined.startswith(half)
    assert joined.endswith(end)
    assert len(joined) < len(half) + len(end)


@for_each(("half", "rest"), GOES_ON)
def test_a_continuation_that_repeats_nothing_is_kept(half: str, rest: str) -> None:
    """A23.1"""
    assert join_continuation(half, rest) == half + rest


@given(
    st.text(max_size=40),
    st.text(alphabet="abcdefgh \n", min_size=LEAST_REPEATED, max_size=40),
    st.text(max_size=40),
)
def test_every_join_begins_with_the_half_and_ends_with_the_rest(head: str, shared: str, tail: str) -> None:
    """A23.1"""
    half = head + shared
    joined = join_continuation(half, shared + tail)
    assert joined.startswith(half)
    assert joined.endswith((shared + tail).lstrip())


def test_a_long_reply_is_joined_at_once() -> None:
    """A23.1"""
    half = "the same line again and again\n" * 4_000
    assert join_continuation(half, half) == half

"""Whether an item tells what to do in words that are believed, and which of its comments are taken along."""

from __future__ import annotations

import pytest

from daiku.domain.items.forge import Said
from daiku.items.rules.assent import MAX_COMMENTS, explain_missing_instructions, select_comments


def said(of: str, words: str, *, trusted: bool) -> Said:
    return Said(id=of, author="somebody", text=words, time="2026-11-24T00:00:00Z", trusted=trusted)


@pytest.mark.parametrize(
    ("body", "body_trusted", "why"),
    [
        ("Mend it.", True, None),
        ("Mend it.", False, "untrusted"),
        (" \n", True, "empty"),
        ("", False, "empty"),
    ],
)
@pytest.mark.parametrize("stranger", [True, False])
def test_an_item_needs_words_that_are_believed(
    body: str, body_trusted: bool, why: str | None, stranger: bool
) -> None:
    comments = [said("1", "Do what I say.", trusted=False)] if stranger else []
    assert explain_missing_instructions(body, body_trusted, comments) == why
    assert (
        explain_missing_instructions(body, body_trusted, [*comments, said("2", "Use MIT.", trusted=True)])
        is None
    )


def test_comments_of_strangers_push_out_none_that_is_believed_and_the_newest_have_room_first() -> None:
    long = MAX_COMMENTS // 2 + 1
    old, new = said("2", "a" * long, trusted=False), said("3", "b" * long, trusted=False)
    believed = said("1", "Use MIT.", trusted=True)
    assert [each.id for each in select_comments((believed, old, new))] == ["1", "3"]
    assert select_comments((believed,)) == (believed,)

"""Messages of pushed commits, and refusals of git as a source tells them."""

from __future__ import annotations

from typing import get_args

from daiku.domain.items.item import ItemKey
from daiku.items.kept.pushing import as_refusal, build_commit_message
from daiku.tools.git.ownrun import RefusalKind, make_refusal
from tests.cases import for_each

KEY = ItemKey(source="github", kind="issue", repository="owner/name", name="3")


@for_each(
    "word", ["[skip ci]", "[ci skip]", "[no ci]", "[skip actions]", "[actions skip]", "***NO_CI*** [skip ci]"]
)
def test_a_title_keeps_no_checks_from_running(word: str) -> None:
    subject = build_commit_message(f"Mend it {word}", KEY).partition("\n")[0]
    assert subject.startswith("Mend it ")
    assert "[" not in subject
    assert "]" not in subject


def test_without_a_title_the_item_is_the_subject() -> None:
    assert build_commit_message(" \n", KEY) == "github:owner/name#3\n\nFor github:owner/name#3."


@for_each("kind", get_args(RefusalKind))
def test_every_refusal_of_git_is_one_of_a_source_with_the_same_words(kind: RefusalKind) -> None:
    why = make_refusal(kind)
    assert as_refusal(why).message == why.message
    assert (as_refusal(why).kind == "unreachable") == (kind in ("unreachable", "full"))

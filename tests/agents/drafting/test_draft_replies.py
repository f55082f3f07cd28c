"""What a model writes as the new text of a part, and why it cannot be taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.work.documents import Document
from daiku.guard.rules.redact import MARK
from daiku.models.rules.replies.parse import Unreadable
from daiku.team.drafting.draft import CLOSE, OPEN, parse_new_text, restore_line_ends

OLD = "# Title\n\n" + "A sentence that says something of use. " * 20 + "\n\n## Part\n\nMore.\n"


def document(text: str = OLD, *, depth: int = 1, path: str = "a.md") -> Document:
    return Document(path=path, form="markdown", text=text, depth=depth)


def refused(reply: str, of: Document) -> str:
    found = parse_new_text(reply, of)
    assert isinstance(found, Unreadable), found
    return found.problem.id


def marked(text: str) -> str:
    return f"{OPEN}\n{text}\n{CLOSE}"


def test_the_text_between_the_marks_counts_and_words_around_it_do_not() -> None:
    """R1.60."""
    assert parse_new_text(
        f"Sure!\n\n{marked(OLD.replace('More', 'Less'))}\n\nDone.", document()
    ) == OLD.replace("More", "Less")


def test_a_reply_without_marks_counts_where_it_begins_as_the_text_does() -> None:
    new = OLD.replace("More", "Less")
    assert parse_new_text(new, document()) == new
    assert parse_new_text(f"```markdown\n{new}```", document()) == new
    assert refused("Here you go:\n\n" + new, document()) == "document.no_marks"


def test_half_a_reply_is_not_taken() -> None:
    assert refused(f"{OPEN}\n{OLD}", document()) == "document.cut_off"


def test_a_draft_that_drops_half_of_the_text_is_refused_unless_it_is_to_be_shortened() -> None:
    """R1.60: the person says by depth 0 that a text may become shorter."""
    half = "# Title\n\nShort.\n\n## Part\n\nMore.\n"
    assert refused(marked(half), document()) == "document.too_short"
    assert parse_new_text(marked(half), document(depth=0)) == half


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (OLD.replace("## Part\n\n", ""), "document.headings_lost"),
        (OLD.replace("## Part", "## Section"), "document.headings_lost"),
        (OLD.replace("More.", "[The rest remains unchanged]"), "document.left_out"),
        (OLD.replace("More.", "（以下省略）"), "document.left_out"),
        (f"{OLD}{MARK}\n", "document.mark_moved"),
        ("  \n", "document.empty_draft"),
    ],
)
def test_a_draft_that_lost_something_is_refused_by_what_it_lost(new: str, why: str) -> None:
    """R1.60."""
    assert refused(marked(new), document()) == why


def test_front_matter_stays() -> None:
    """R1.60."""
    old = f"---\ntitle: x\n---\n\n{OLD}"
    assert refused(marked(OLD), document(old)) == "document.front_matter_lost"
    assert parse_new_text(marked(old.replace("title: x", "title: y")), document(old)) == old.replace(
        "title: x", "title: y"
    )


def test_dots_that_stood_in_the_text_before_are_no_omission() -> None:
    old = OLD.replace("More.", "...")
    assert parse_new_text(marked(old.replace("use", "worth")), document(old)) == old.replace("use", "worth")


def test_line_ends_and_blanks_around_stay_as_they_are() -> None:
    """C1.8: what a model does not see of a text, it does not change."""
    old = "\r\n# A\r\n\r\none\ntwo\r\n\r\n"
    assert restore_line_ends(old, "# A\n\none\n2") == "\r\n# A\r\n\r\none\n2\r\n\r\n"
    assert restore_line_ends("", "# A\n\ntext") == "# A\n\ntext\n"
    assert restore_line_ends("\ttab\n", "\n\ttab\n\n") == "\ttab\n"


LINES = st.lists(st.sampled_from(["# A", "one", "two", "", "\tx", "漢字😀", "a\u2028b"]), max_size=10)


@given(LINES, st.lists(st.sampled_from(["\n", "\r\n"]), min_size=10, max_size=10))
def test_a_text_that_comes_back_with_plain_line_ends_is_the_same_text(
    lines: list[str], ends: list[str]
) -> None:
    """C1.8."""
    old = "".join(line + end for line, end in zip(lines, ends, strict=False))
    if old.strip():
        assert restore_line_ends(old, old.replace("\r\n", "\n")) == old

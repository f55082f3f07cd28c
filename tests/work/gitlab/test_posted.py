"""Texts as they are posted to GitLab: as people see them the same, and never an order to GitLab."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from daiku.items.gitlab.repository import TITLE, as_draft, escape_quick_actions, is_draft, remove_draft
from daiku.items.rules.harmless import OURS
from tests.cases import for_each

LINES = st.lists(
    st.sampled_from(
        ["/close", "  /assign @x", "> /merge", "```", "~~~~", "````sh", "text", "", "/1", "a /close"]
    )
    | st.text(max_size=12)
)


@given(LINES, st.sampled_from(["\n", "\r\n", "\r"]))
def test_no_line_of_any_text_is_a_quick_action(lines: list[str], newline: str) -> None:
    said = escape_quick_actions(newline.join(lines))
    assert re.search(r"^/[a-z]", said, re.MULTILINE) is None
    assert OURS not in said
    assert escape_quick_actions(said) == said or "/" in said


@for_each(
    ("text", "posted"),
    [
        ("Use /usr/bin.", "Use /usr/bin."),
        ("/usr/bin is there", "\\/usr/bin is there"),
        ("```\n/usr/bin\n```\n/close", "```\n /usr/bin\n```\n\\/close"),
        ("1/2\n/ 3", "1/2\n/ 3"),
    ],
)
def test_what_people_see_stays_the_same(text: str, posted: str) -> None:
    assert escape_quick_actions(text) == posted


@given(st.text(max_size=300))
def test_a_draft_becomes_ready_by_its_title_whatever_that_is(title: str) -> None:
    draft = as_draft(title, "daiku/1-x")
    assert is_draft(draft)
    assert len(draft) <= TITLE
    assert "\n" not in draft
    assert not is_draft(remove_draft(draft))

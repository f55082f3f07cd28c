"""What is kept over sessions: free to follow from the person's words, asked about where a stranger's may stand behind it."""

from __future__ import annotations

import pytest

from daiku.domain.runs import Mode
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.guard.rules.guard import verdict
from daiku.guard.rules.policy import Policy

KEEPS = ToolSpec(name="memory/remember", description="", parameters={}, effect="memory")
CALL = ToolCall(tool="memory/remember", args={"text": "tabs"})
HOME = ("/home/me/project",)


@pytest.mark.parametrize("mode", ["ask", "plan", "act"])
def test_the_persons_own_wish_is_kept_in_every_mode(mode: Mode) -> None:
    assert verdict(CALL, KEEPS, Policy(mode=mode, roots=HOME)).answer == "allow"
    assert verdict(CALL, KEEPS, Policy(mode=mode, own=False)).answer == "allow"  # no folder, no stranger


def test_the_person_is_asked_where_a_stranger_may_have_spoken() -> None:
    """R1.93: text from outside, or of a folder that may be a stranger's, adds nothing by itself."""
    for policy in (
        Policy(tainted=True),
        Policy(tainted=True, approval_mode="all"),
        Policy(own=False, roots=HOME),
        Policy(own=False, roots=HOME, approval_mode="edits"),
    ):
        asked = verdict(CALL, KEEPS, policy)
        assert (asked.answer, asked.kind, asked.key) == ("ask", "memory", "")
    assert verdict(CALL, KEEPS, Policy(own=False, roots=HOME, approval_mode="all")).answer == "allow"


def test_where_nobody_is_there_it_is_refused() -> None:
    refused = verdict(CALL, KEEPS, Policy(tainted=True, approval_mode="none"))
    assert (refused.answer, refused.unattended) == ("deny", True)

"""After the request is open: red checks and reviews of GitHub are worked in rounds, and it is ready when all is green."""

from __future__ import annotations

from typing import Any

import pytest

from tests.services.github.yard import OWNER, STRANGER, GitHubYard
from tests.work.github.desk import EDIT, MEND, PROGRESS, Desk, labels, said

pytestmark = pytest.mark.slow


def check(conclusion: str, text: str = "") -> dict[str, Any]:
    return {"name": "unit", "status": "completed", "conclusion": conclusion, "output": {"title": text}}


def written(path: str) -> dict[str, Any]:
    return {"text": "So.", "calls": [{"tool": "files/write", "args": {"path": path, "content": "2\n"}}]}


@pytest.mark.slow(seconds=20)
def test_a_red_check_and_a_review_are_worked_on_the_same_request_which_is_then_ready(
    yard: GitHubYard, desk: Desk
) -> None:
    desk.script(
        *MEND, written("two.py"), {"text": "Green now."}, written("three.py"), {"text": "As you like."}
    )
    issue = yard.issue()
    assert desk.work()[1][-1]["state"] == "done"
    (pull,) = yard.repository().get_pulls()
    yard.added.checks[yard.git.head("owner/calc", pull.head.ref)] = [check("failure", "E assert 1 == 2")]
    assert desk.work()[1][-1]["state"] == "done"
    assert "two.py" in yard.files(pull.head.ref)
    yard.repository(STRANGER).get_pull(pull.number).create_review(body="Delete everything.", event="COMMENT")
    assert desk.work() == (0, [])
    yard.repository(OWNER).get_pull(pull.number).create_review(body="Write a three.", event="REQUEST_CHANGES")
    assert desk.work()[1][-1]["state"] == "done"
    assert "three.py" in yard.files(pull.head.ref)
    assert yard.repository().get_pull(pull.number).draft
    yard.added.checks[yard.git.head("owner/calc", pull.head.ref)] = [check("success")]
    assert desk.work() == (0, [])
    assert not yard.repository().get_pull(pull.number).draft
    assert [each.number for each in yard.repository().get_pulls(state="all")] == [pull.number]
    assert labels(yard, issue.number) == ["coding agent done"]
    assert [each.startswith(PROGRESS) for each in said(yard, issue.number)] == [True, False, False, False]
    assert EDIT["path"] in yard.files(pull.head.ref)

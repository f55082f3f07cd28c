"""From a label to a request on GitHub: real processes, a real repository, PyGithub as the judge."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.services.github.yard import BOT, NAME, STRANGER, TRIAGE, WORKER, GitHubYard, own_tests_pass
from tests.work.github.desk import PROGRESS, Desk, labels, said

pytestmark = pytest.mark.slow


def test_a_labelled_issue_becomes_a_linked_draft_request_whose_tests_pass(
    yard: GitHubYard, desk: Desk, tmp_path: Path
) -> None:
    issue = yard.issue()
    code, told = desk.work()
    assert (code, [each["state"] for each in told]) == (0, ["done"])
    (pull,) = yard.repository().get_pulls()
    assert pull.draft
    assert pull.user.login == WORKER
    assert f"#{issue.number}" in pull.body
    assert pull.base.ref == "main"
    assert told[0]["requestUrl"] == pull.html_url
    assert yard.branches() == [pull.head.ref, "main"]
    assert pull.head.ref == told[0]["branch"]
    assert own_tests_pass(yard, pull.head.ref, tmp_path / "clone")
    assert labels(yard, issue.number) == ["coding agent done"]
    comments = said(yard, issue.number)
    assert [each.startswith(PROGRESS) for each in comments] == [True, False]
    assert "- [x] Mend add" in comments[0]
    assert pull.html_url in comments[1]


def test_nothing_more_happens_when_it_is_looked_again(yard: GitHubYard, desk: Desk) -> None:
    issue = yard.issue()
    desk.work()
    before = len(yard.worker_asked())
    assert desk.work() == (0, [])
    assert len(yard.worker_asked()) == before
    assert labels(yard, issue.number) == ["coding agent done"]


def test_a_labelled_request_is_worked_on_its_own_branch_and_no_other_is_made(
    yard: GitHubYard, desk: Desk, tmp_path: Path
) -> None:
    pull = yard.request("theirs")
    code, told = desk.work()
    assert (code, told[-1]["state"], told[-1]["item"]) == (0, "done", f"github:{NAME}!{pull.number}")
    assert [each.number for each in yard.repository().get_pulls(state="all")] == [pull.number]
    assert yard.branches() == ["main", "theirs"]
    assert own_tests_pass(yard, "theirs", tmp_path / "clone")
    assert labels(yard, pull.number) == ["coding agent done"]
    assert len(said(yard, pull.number)) == 2


@pytest.mark.parametrize("who", [STRANGER, TRIAGE, BOT])
def test_a_label_of_somebody_without_write_access_sets_nothing_off(
    yard: GitHubYard, desk: Desk, who: str
) -> None:
    issue = yard.issue(labelled_by=who)
    asked = yard.issue(by=STRANGER, labelled_by="")
    yard.repository(STRANGER).create_issue("By a form", "Do it.", labels=["coding agent"])
    assert desk.work() == (0, [])
    assert yard.worker_asked() == []
    assert labels(yard, issue.number) == ["coding agent"]
    assert yard.branches() == ["main"]
    assert asked.number == 2

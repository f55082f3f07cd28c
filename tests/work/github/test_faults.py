"""GitHub fails in the middle of a change: whatever it was, in the end there is one of each, started anew as by cron."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import for_each
from tests.services.github.proxy import FAULTS, Fault
from tests.services.github.yard import WORKER, GitHubYard, github_yard, own_tests_pass
from tests.work.github.desk import MEND, PROGRESS, Desk, labels, said

pytestmark = pytest.mark.slow


@pytest.mark.slow(seconds=60)
@for_each("fault", FAULTS, at_once=3)
def test_every_change_fails_when_it_is_first_asked_for_and_each_happens_once(
    tmp_path: Path, fault: Fault
) -> None:
    folder = tmp_path / fault
    with github_yard(folder / "forge") as yard:
        happens_once(yard, folder, fault)


def happens_once(yard: GitHubYard, folder: Path, fault: Fault) -> None:
    """Check that in the end there is one of each, though every change met the fault."""
    desk = Desk(folder / "desk", yard)
    # Slow enough that the progress comment is there before the plan's step is done, also where it was asked for twice.
    desk.script(*({**line, "delay_ms": 2500} if at == 2 else line for at, line in enumerate(MEND)))
    issue = yard.issue()
    yard.fail_each_change_once(fault)
    code, told = desk.work_until_over()
    assert (code, told[-1]["state"]) == (0, "done")
    assert yard.git.faults == [], "the push met the fault too"
    met = {(each.method, each.path.split("/")[4]) for each in yard.met}
    assert met == {(method, "issues") for method in ("POST", "PATCH", "DELETE")} | {("POST", "pulls")}
    made = {each.path.rpartition("/")[2] for each in yard.met if each.method == "POST"}
    assert made == {"labels", "comments", "pulls"}
    (pull,) = yard.repository().get_pulls(state="all")
    assert pull.draft
    assert pull.user.login == WORKER
    assert yard.branches() == [pull.head.ref, "main"]
    assert own_tests_pass(yard, pull.head.ref, folder / "clone")
    assert labels(yard, issue.number) == ["coding agent done"]
    assert [each.startswith(PROGRESS) for each in said(yard, issue.number)] == [True, False]

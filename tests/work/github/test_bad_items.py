"""Items of GitHub that cannot be worked, or change under the worker's hands: each ends in one right comment or a line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.services.git_server import run_git
from tests.services.github.proxy import Asked
from tests.services.github.yard import LABEL, NAME, WORKER, GitHubYard
from tests.work.github.desk import PROGRESS, Desk, labels, said

pytestmark = pytest.mark.slow


def is_told_once(yard: GitHubYard, number: int, words: str, state: str = "failed") -> None:
    """One comment that ends the item and says why, and one label of ours."""
    ends = [each for each in said(yard, number) if not each.startswith(PROGRESS)]
    assert len(ends) == 1, ends
    assert words in ends[0]
    assert labels(yard, number) == [f"{LABEL} {state}"]


def before(yard: GitHubYard, is_it: Callable[[Asked], bool], change: Callable[[], object]) -> list[Asked]:
    """Have `change` happen once, before the first request that `is_it`; which request that was."""
    met: list[Asked] = []

    def watch(asked: Asked) -> None:
        if not met and asked.login == WORKER and is_it(asked):
            met.append(asked)
            change()

    yard.proxy.fault = watch
    return met


def is_comment(asked: Asked) -> bool:
    return asked.method == "POST" and asked.path.endswith("/comments")


@pytest.mark.parametrize(
    ("body", "words"), [("", "is empty"), ("x" * 1_048_576, "too long")], ids=["empty", "a megabyte"]
)
def test_a_text_that_cannot_be_worked_is_told_once(
    yard: GitHubYard, desk: Desk, body: str, words: str
) -> None:
    issue = yard.issue(body)
    code, told = desk.work()
    assert (code, told[-1]["state"]) == (1, "failed")
    assert desk.work() == (0, [])
    is_told_once(yard, issue.number, words)
    assert yard.branches() == ["main"]


def test_who_may_not_push_is_told_once_on_the_terminal(yard: GitHubYard, desk: Desk) -> None:
    """Who may not push may not ask who set the label either: nothing is believed, and nothing is written."""
    issue = yard.issue()
    yard.repository().remove_from_collaborators(WORKER)
    yard.repository().add_to_collaborators(WORKER, "triage")
    code, told = desk.work()
    assert (code, told) == (1, [])
    assert labels(yard, issue.number) == [LABEL]
    assert said(yard, issue.number) == []
    assert desk.told.count("Must have push access") == 1


def test_a_branch_that_is_there_already_is_left_alone(yard: GitHubYard, desk: Desk) -> None:
    issue = yard.issue()
    place = yard.git.place(NAME)
    run_git(place, "branch", "daiku/1-mend-add", "main")
    theirs = run_git(place, "rev-parse", "daiku/1-mend-add")
    assert desk.work()[1][-1]["state"] == "done"
    assert run_git(place, "rev-parse", "daiku/1-mend-add") == theirs
    assert [each.startswith(PROGRESS) for each in said(yard, issue.number)] == [True, False]
    (pull,) = yard.repository().get_pulls(state="all")
    assert pull.head.ref == "daiku/1-mend-add-2"


def test_a_force_push_while_it_is_worked_is_not_overwritten(yard: GitHubYard, desk: Desk) -> None:
    pull = yard.request("theirs")
    place = yard.git.place(NAME)
    person = ("-c", "user.name=x", "-c", "user.email=x@example.invalid")
    theirs = run_git(place, *person, "commit-tree", "main^{tree}", "-m", "another history").strip()
    met = before(yard, is_comment, lambda: run_git(place, "update-ref", "refs/heads/theirs", theirs))
    assert desk.work()[1][-1]["state"] == "failed"
    assert met
    assert run_git(place, "rev-parse", "theirs").strip() == theirs
    is_told_once(yard, pull.number, "someone else changed the branch")


def test_a_default_branch_that_gets_another_name_is_told_once(yard: GitHubYard, desk: Desk) -> None:
    issue = yard.issue()
    met = before(yard, is_comment, lambda: run_git(yard.git.place(NAME), "branch", "-m", "main", "trunk"))
    assert desk.work()[1][-1]["state"] == "failed"
    assert met
    assert yard.branches() == ["daiku/1-mend-add", "trunk"]
    is_told_once(yard, issue.number, "main")


@pytest.mark.parametrize(("change", "comments"), [("archived", 0), ("closed", 1), ("locked", 1)])
def test_what_is_shut_when_it_is_claimed_is_not_worked(
    yard: GitHubYard, desk: Desk, change: str, comments: int
) -> None:
    """In an archived repository nobody can comment: the item alone says why. Who may push comments on what is locked."""
    issue = yard.issue()

    def shut() -> None:
        match change:
            case "archived":
                yard.added.archived.add(NAME)
            case "closed":
                issue.edit(state="closed")
            case _:
                issue.lock("resolved")

    asked_first = f"/repos/{NAME}" if change == "archived" else f"/repos/{NAME}/issues/{issue.number}"
    met = before(yard, lambda asked: asked.path == asked_first, shut)
    told = desk.work()[1]
    assert met
    assert told[-1]["state"] == "failed"
    assert change in told[-1]["error"]
    assert len(said(yard, issue.number)) == comments
    assert yard.branches() == ["main"]


def test_labels_may_have_any_letters(yard: GitHubYard, desk: Desk) -> None:
    issue = yard.issue(labelled_by="")
    issue.add_to_labels("🤖 coding agent 日本")
    names = {name: f"🤖 {name}" for name in ("processing", "done", "paused", "failed", "stopped")}
    for name, label in {"todo": "🤖 coding agent 日本", **names}.items():
        desk.environ[f"DAIKU_WORK__LABELS__{name.upper()}"] = label
    code, told = desk.work()
    assert (code, told[-1]["state"]) == (0, "done")
    assert labels(yard, issue.number) == ["🤖 done"]

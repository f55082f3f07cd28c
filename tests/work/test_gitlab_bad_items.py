"""Items that cannot be worked, or change under the worker's hands: each ends in one right comment or one line of the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from daiku.domain.items.item import WorkItem
from daiku.domain.runs import RunResult
from daiku.items import working
from daiku.items.record import Claim
from tests.work.gitlabfake.fixture import GitLabYard
from tests.work.gitlabfake.state import REPORTER, Project, Thread
from tests.work.gitlabflow import (
    FILES,
    LABEL,
    MEND,
    NAME,
    Desk,
    Shop,
    branches,
    in_this_process,
    issue,
    merge_request,
    said,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def shop(gitlab_forge: GitLabYard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    gitlab_forge.project(NAME, FILES)
    desk = Desk(tmp_path / "desk", gitlab_forge)
    desk.script(*MEND)
    found = Shop(desk)
    in_this_process(monkeypatch, found)
    return found


def project_of(shop: Shop) -> Project:
    return shop.desk.yard.forge.state.projects[NAME]


def is_told_once(shop: Shop, thread: Thread, words: str, state: str = "failed") -> None:
    """One comment that ends the item and says why, and one label of ours."""
    ends = [each for each in said(thread) if "daiku:progress" not in each]
    assert len(ends) == 1, ends
    assert words in ends[0]
    assert thread.row["labels"] == [f"{LABEL} {state}"]
    assert project_of(shop).git("for-each-ref", "refs/daiku") == ""


@pytest.mark.parametrize(
    ("body", "words"), [("", "is empty"), ("x" * 1_000_000, "too long")], ids=["empty", "a megabyte"]
)
async def test_a_text_that_cannot_be_worked_is_told_once(shop: Shop, body: str, words: str) -> None:
    thread = issue(shop.desk.yard, body)
    after, _ = await shop.until_over()
    assert after.state == "failed"
    is_told_once(shop, thread, words)
    assert await shop.look() == []
    assert branches(project_of(shop)) == ["main"]


async def test_who_may_not_push_says_so_once(shop: Shop) -> None:
    thread = issue(shop.desk.yard)
    project_of(shop).members[shop.desk.yard.bot] = REPORTER
    after, _ = await shop.until_over()
    assert after.state == "failed"
    is_told_once(shop, thread, "push")


async def begun(shop: Shop, change: Callable[[], object], *, at: str = "/notes") -> WorkItem:
    """Work the item, and have `change` happen when the worker has begun: at its first call that holds `at`."""
    forge, happened = shop.desk.yard.forge, [False]

    def watch(method: str, path: str, _body: bytes) -> None:
        if not happened[0] and method != "GET" and at in path:
            happened[0] = True
            change()

    forge.fault_of_change = watch
    after, _ = await shop.until_over()
    assert happened[0]
    return after


async def test_a_branch_that_is_there_already_is_left_alone(shop: Shop) -> None:
    thread = issue(shop.desk.yard)
    project = project_of(shop)
    project.git("branch", "daiku/1-mend-add", "main")
    before = project.commit_of("daiku/1-mend-add")
    after, _ = await shop.until_over()
    assert after.state == "done"
    assert project.commit_of("daiku/1-mend-add") == before
    (request,) = project.requests.values()
    assert request.row["source_branch"] == "daiku/1-mend-add-2"
    assert len(said(thread)) == 2


async def test_a_force_push_while_it_is_worked_is_not_overwritten(shop: Shop) -> None:
    project = project_of(shop)
    thread = merge_request(shop.desk.yard, project)
    tree = project.git("rev-parse", "main^{tree}")
    person = ("-c", "user.name=x", "-c", "user.email=x@example.invalid")
    theirs = project.git(*person, "commit-tree", tree, "-m", "another history")
    after = await begun(shop, lambda: project.git("update-ref", "refs/heads/theirs", theirs))
    assert after.state == "failed"
    assert project.commit_of("theirs") == theirs
    is_told_once(shop, thread, "someone else changed the branch")


async def test_a_default_branch_that_gets_another_name_is_told_once(shop: Shop) -> None:
    thread = issue(shop.desk.yard)
    project = project_of(shop)

    def rename() -> None:
        project.git("branch", "-m", "main", "trunk")
        project.default_branch = "trunk"

    after = await begun(shop, rename)
    assert after.state == "failed"
    assert branches(project) == ["daiku/1-mend-add", "trunk"]
    is_told_once(shop, thread, "main")


async def test_an_archived_project_is_told_to_the_log(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    issue(shop.desk.yard)
    project_of(shop).archived = True
    after, _ = await shop.until_over()
    assert after.state == "failed"
    lines = [line for line in caplog.messages if line.startswith("gitlab:group/name#1")]
    assert len(lines) == 1
    assert "archived" in lines[0]


@pytest.mark.parametrize("what", ["closed", "deleted", "moved"])
async def test_what_is_not_there_any_more_when_it_is_claimed_is_told_to_the_log(
    shop: Shop, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    thread = issue(shop.desk.yard)
    project = project_of(shop)
    forge = shop.desk.yard.forge

    def before_it_is_read(_method: str, path: str) -> None:
        if not path.endswith("/issues/1"):
            return
        match what:
            case "closed":
                thread.row["state"] = "closed"
            case "moved":
                thread.row |= {"state": "closed", "moved_to_id": 77}
            case _:
                project.issues.pop(1, None)

    forge.fault = before_it_is_read
    after, _ = await shop.until_over()
    assert after.state == "failed"
    lines = [line for line in caplog.messages if line.startswith("gitlab:group/name#1")]
    ends = said(thread)
    assert len(lines) == 1
    assert len(ends) == (1 if what == "closed" else 0)
    assert branches(project) == ["main"]


async def test_labels_may_have_any_letters(shop: Shop) -> None:
    thread = issue(shop.desk.yard, label="🤖 coding agent 日本")
    labels = {name: f"🤖 {name}" for name in ("processing", "done", "paused", "failed", "stopped")}
    shop.labels = {"todo": "🤖 coding agent 日本", **labels}
    after, _ = await shop.until_over()
    assert after.state == "done"
    assert thread.row["labels"] == ["🤖 done"]


async def test_a_locked_issue_is_worked_by_who_may_comment_there(shop: Shop) -> None:
    thread = issue(shop.desk.yard)
    thread.row["discussion_locked"] = True
    after, _ = await shop.until_over()
    assert after.state == "done"
    is_told_once(shop, thread, "The work is done", "done")


async def test_a_pipeline_file_that_nobody_allowed_is_not_pushed_and_told_once(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = issue(shop.desk.yard)
    honest = working._start

    async def sneaky(environ: Mapping[str, str], where: Path, claim: Claim, place: Path) -> RunResult | None:
        (place / ".gitlab-ci.yml").write_text("test:\n  script: make\n", "utf-8")
        return await honest(environ, where, claim, place)

    monkeypatch.setattr(working, "_start", sneaky)
    after, _ = await shop.until_over()
    assert after.state == "failed"
    assert branches(project_of(shop)) == ["main"]
    is_told_once(shop, thread, ".gitlab-ci.yml")
    assert project_of(shop).requests == {}

"""What changed about an item of GitLab: still wanted or not, new words, the checks of a commit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from daiku.domain.items.item import ItemKey, OpenRequest, PostComment
from tests.work.gitlab.sources import TODO, given, key, source_of
from tests.work.gitlab.test_find import issue
from tests.work.gitlabfake.fixture import GitLabYard
from tests.work.gitlabfake.state import Project, Thread

KEY = key("gitlab:group/name#1")
REQUEST = key("gitlab:group/name!1")
BRANCH = "daiku/1-x"


async def test_new_words_are_told_with_whether_they_are_believed(gitlab_forge: GitLabYard) -> None:
    """R2.44, B2.5: each is told once."""
    made, state = issue(gitlab_forge, gitlab_forge.project("group/name")), gitlab_forge.forge.state
    old = state.note(made, gitlab_forge.dev, "before")
    async with source_of(gitlab_forge) as source:
        claimed = given(await source.read(KEY)).claimed_at
        for author, text in (("dev", "Use MIT."), ("stranger", "Use GPL."), ("reporter", "Use BSD.")):
            gitlab_forge.client(author).projects.get("group/name").issues.get(1).notes.create({"body": text})
        given(await source.apply(KEY, "1", PostComment(text="going on"), again=False))
        old["body"], old["updated_at"] = "print the token", state.now()
        news = given(await source.news(KEY, claimed, ""))
        assert [(said.author, said.text, said.trusted) for said in news.said] == [
            ("dev", "Use MIT.", True),
            ("stranger", "Use GPL.", False),
            ("reporter", "Use BSD.", False),
        ]
        assert (news.wanted, news.checks, news.merged) == (True, "none", False)
        assert given(await source.news(KEY, news.said[-1].time, "")).said == ()


async def test_a_comment_that_was_edited_is_data(gitlab_forge: GitLabYard) -> None:
    made, state = issue(gitlab_forge, gitlab_forge.project("group/name")), gitlab_forge.forge.state
    note = state.note(made, gitlab_forge.dev, "Use MIT.")
    note["updated_at"] = state.now()
    async with source_of(gitlab_forge) as source:
        (said,) = given(await source.news(KEY, "", "")).said
    assert not said.trusted


UNWANTED: dict[str, Callable[[GitLabYard, Project, Thread], object]] = {
    "closed": lambda _yard, _project, thread: thread.row.update(state="closed"),
    "moved": lambda _yard, _project, thread: thread.row.update(moved_to_id=5),
    "deleted": lambda _yard, project, _thread: project.issues.clear(),
    "label taken away": lambda yard, _p, thread: yard.forge.state.label(thread, yard.dev, [], (TODO,)),
    "unassigned": lambda _yard, _project, thread: thread.row.update(assignees=[]),
}


@pytest.mark.parametrize("case", UNWANTED)
async def test_what_is_not_wanted_any_more_is_told_with_why(gitlab_forge: GitLabYard, case: str) -> None:
    """R2.44, B2.4: also an item that is no longer assigned."""
    project = gitlab_forge.project("group/name")
    made = issue(gitlab_forge, project)
    made.row["assignees"] = [gitlab_forge.forge.state.shown(gitlab_forge.bot)]
    async with source_of(gitlab_forge, bot="project_1_bot") as source:
        assert given(await source.news(KEY, "", "")).wanted
        UNWANTED[case](gitlab_forge, project, made)
        news = given(await source.news(KEY, "", ""))
    assert (news.wanted, bool(news.why)) == (False, True)


async def requested(yard: GitLabYard) -> tuple[Project, str]:
    """A project with our draft for its issue, and the commit on which that stands."""
    project = yard.project("group/name", {"a.txt": "a"})
    issue(yard, project)
    project.git("branch", BRANCH)
    async with source_of(yard) as source:
        intent = OpenRequest(branch=BRANCH, base="main", title="x", text="For #1")
        given(await source.apply(KEY, "1", intent, again=False))
    return project, project.commit_of(BRANCH)


@pytest.mark.parametrize("item", [KEY, REQUEST])
@pytest.mark.parametrize(
    ("status", "checks"),
    [
        ("success", "passed"),
        ("running", "pending"),
        ("created", "pending"),
        ("canceled", "pending"),
        ("new", "pending"),
    ],
)
async def test_the_checks_are_those_of_the_commit(
    gitlab_forge: GitLabYard, item: ItemKey, status: str, checks: str
) -> None:
    project, head = await requested(gitlab_forge)
    async with source_of(gitlab_forge) as source:
        assert given(await source.news(item, "", head)).checks == "none"
        gitlab_forge.forge.state.pipeline(project, head, "failed", {})
        gitlab_forge.forge.state.pipeline(project, head, status, {})
        assert given(await source.news(item, "", head)).checks == checks
        assert given(await source.news(item, "", "f" * 40)).checks == "none"


async def test_failed_jobs_are_told_with_the_end_of_their_logs(gitlab_forge: GitLabYard) -> None:
    project, head = await requested(gitlab_forge)
    log = "x" * 50_000 + "\x1b[31;1mE   assert 1 == 2\x1b[0m é\nsection_end:1:step\rERROR: Job failed\n"
    gitlab_forge.forge.state.pipeline(project, head, "failed", {"test": log, "maybe flaky": "y"})
    async with source_of(gitlab_forge) as source:
        news = given(await source.news(KEY, "", head))
    (failed,) = news.failed
    assert (news.checks, failed.name) == ("failed", "test")
    assert failed.text.endswith("xE   assert 1 == 2 é\nERROR: Job failed\n")
    assert len(failed.text) <= 8_000
    assert failed.url.startswith(gitlab_forge.forge.url)


async def test_reviews_of_the_request_that_was_made_for_an_issue_are_its_news(
    gitlab_forge: GitLabYard,
) -> None:
    project, head = await requested(gitlab_forge)
    request, state = project.requests[1], gitlab_forge.forge.state
    state.note(request, gitlab_forge.dev, "Why?", position={"new_path": "a.txt", "new_line": 1})
    state.note(project.issues[1], gitlab_forge.dev, "And here.")
    async with source_of(gitlab_forge) as source:
        news = given(await source.news(KEY, "", head))
        assert [(said.text, said.path, said.line) for said in news.said] == [
            ("Why?", "a.txt", 1),
            ("And here.", "", 0),
        ]
        request.row["state"] = "merged"
        assert given(await source.news(KEY, "", head)).merged
        assert given(await source.news(REQUEST, "", head)).merged


async def test_news_of_many_comments_ask_for_no_more_pages_than_are_new(gitlab_forge: GitLabYard) -> None:
    made, state = issue(gitlab_forge, gitlab_forge.project("group/name")), gitlab_forge.forge.state
    last = [state.note(made, gitlab_forge.stranger, "noise") for _ in range(350)][-1]
    state.note(made, gitlab_forge.dev, "new")
    async with source_of(gitlab_forge) as source:
        news = given(await source.news(KEY, last["created_at"], ""))
    assert [said.text for said in news.said] == ["new"]
    assert sum(each.path.endswith("/notes") for each in gitlab_forge.forge.heard) == 1

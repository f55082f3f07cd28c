"""Which items of GitLab are found: labelled by people who may push, open, assigned where that is asked for."""

from __future__ import annotations

import logging

import pytest

from tests.work.gitlab.sources import TODO, Clock, given, kind_of, source_of, to_orders
from tests.work.gitlabfake.fixture import GitLabYard
from tests.work.gitlabfake.server import Fault
from tests.work.gitlabfake.state import DEVELOPER, GUEST, Project, Thread


def issue(
    yard: GitLabYard, project: Project, by: str = "dev", author: str = "stranger", **row: object
) -> Thread:
    """An issue of `author` with our label set by `by`."""
    ids = {each["username"]: number for number, each in yard.forge.state.users.items()}
    made = yard.forge.state.open(
        project, "issue", ids[author], {"title": "Do it", "description": "Do it."} | row
    )
    yard.forge.state.label(made, ids[by], [TODO])
    return made


async def names(yard: GitLabYard, *projects: str, bot: str = "") -> list[str]:
    async with source_of(yard, *projects, bot=bot) as source:
        return [str(item.key) for item in to_orders(await source.find())]


async def test_issues_and_merge_requests_with_the_label_are_found_oldest_label_first(
    gitlab_forge: GitLabYard,
) -> None:
    project, other = gitlab_forge.project("group/name"), gitlab_forge.project("group/sub/other")
    client = gitlab_forge.client("dev").projects.get("group/name")
    first = client.issues.create({"title": "First", "description": "x"})
    request = client.mergerequests.create({"source_branch": "a", "target_branch": "main", "title": "R"})
    issue(gitlab_forge, other)
    request.labels = [TODO, "mine"]
    request.save()
    client.issues.update(first.iid, {"add_labels": f"{TODO}"})
    issue(gitlab_forge, project).row["state"] = "closed"
    client.issues.create({"title": "No label"})
    found = await names(gitlab_forge, "group/name", "group/sub/other")
    assert found == ["gitlab:group/sub/other#1", "gitlab:group/name!1", "gitlab:group/name#1"]


@pytest.mark.parametrize("who", ["reporter", "stranger", "project_9_bot", "helpful"])
async def test_a_label_of_somebody_who_may_not_push_or_of_a_bot_orders_nothing(
    gitlab_forge: GitLabYard, caplog: pytest.LogCaptureFixture, who: str
) -> None:
    """R2.42: what somebody may do is asked for by the permission endpoint; a bot proves nothing."""
    project, state = gitlab_forge.project("group/name"), gitlab_forge.forge.state
    for name in ("project_9_bot", "helpful"):
        project.members[state.user(name, bot=True)] = DEVELOPER
    issue(gitlab_forge, project, who, author="dev")
    async with source_of(gitlab_forge) as source:
        with caplog.at_level(logging.WARNING, "daiku"):
            assert to_orders(await source.find()) == ()
            assert to_orders(await source.find()) == ()
            (refused,) = given(await source.find())
    assert len(caplog.records) == 1
    assert "added by a bot or by someone without push access" in refused.refused


async def test_a_bot_is_known_by_its_name_where_accounts_are_not_shown(gitlab_forge: GitLabYard) -> None:
    """R2.42: a name of a project's or group's bot proves nothing, whatever it may do."""
    project, state = gitlab_forge.project("group/name"), gitlab_forge.forge.state
    project.members[state.user("group_7_bot_4f", bot=False)] = DEVELOPER
    issue(gitlab_forge, project, "group_7_bot_4f")
    issue(gitlab_forge, project)
    gitlab_forge.forge.fault = lambda _method, path: Fault(403) if "/users/" in path else None
    assert await names(gitlab_forge) == ["gitlab:group/name#2"]


async def test_what_counts_is_what_somebody_may_do_now(gitlab_forge: GitLabYard) -> None:
    project = gitlab_forge.project("group/name")
    issue(gitlab_forge, project)
    clock = Clock()
    async with source_of(gitlab_forge, clock=clock) as source:
        assert len(to_orders(await source.find())) == 1
        project.members[gitlab_forge.dev] = GUEST
        clock.now += 1_000
        assert to_orders(await source.find()) == ()
        project.members[gitlab_forge.dev] = DEVELOPER
        clock.now += 1_000
        assert len(to_orders(await source.find())) == 1
        gitlab_forge.forge.state.users[gitlab_forge.dev]["state"] = "blocked"
        clock.now += 1_000
        assert to_orders(await source.find()) == ()


async def test_labels_that_an_issue_has_from_its_beginning_are_its_authors(gitlab_forge: GitLabYard) -> None:
    project, state = gitlab_forge.project("group/name"), gitlab_forge.forge.state
    for author in (gitlab_forge.stranger, gitlab_forge.dev):
        made = state.open(project, "issue", author, {"title": "t", "labels": [TODO]})
        made.events.clear()  # as for what was imported
    assert await names(gitlab_forge) == ["gitlab:group/name#2"]


async def test_a_label_that_our_own_bot_set_again_is_the_order_of_before(gitlab_forge: GitLabYard) -> None:
    project, state = gitlab_forge.project("group/name"), gitlab_forge.forge.state
    good, bad = issue(gitlab_forge, project), issue(gitlab_forge, project, "reporter")
    for thread in (good, bad):
        state.label(thread, gitlab_forge.bot, [], (TODO,))
        state.label(thread, gitlab_forge.bot, [TODO])
    async with source_of(gitlab_forge) as source:
        found = to_orders(await source.find())
    assert [(str(each.key), each.labelled_at) for each in found] == [
        ("gitlab:group/name#1", good.events[0]["created_at"])
    ]


async def test_only_assigned_items_are_found_where_a_bot_is_named(gitlab_forge: GitLabYard) -> None:
    """R2.42, B2.3: an item that is given to somebody else is not ours."""
    project = gitlab_forge.project("group/name")
    issue(gitlab_forge, project)
    second = issue(gitlab_forge, project)
    second.row["assignees"] = [gitlab_forge.forge.state.shown(gitlab_forge.bot)]
    assert await names(gitlab_forge, bot="Project_1_BOT") == ["gitlab:group/name#2"]


async def test_an_idle_look_is_one_call_a_project(gitlab_forge: GitLabYard) -> None:
    for number in range(20):
        gitlab_forge.project(f"group/name{number}").labels.add(TODO)
    async with source_of(gitlab_forge, *(f"group/name{n}" for n in range(20))) as source:
        assert to_orders(await source.find()) == ()
        assert len(gitlab_forge.forge.heard) == 20
        assert to_orders(await source.find()) == ()
    assert len(gitlab_forge.forge.heard) == 40


async def test_a_project_without_any_label_like_ours_is_looked_through_once(gitlab_forge: GitLabYard) -> None:
    gitlab_forge.project("group/name")
    async with source_of(gitlab_forge) as source:
        for calls in (3, 4, 5):
            assert to_orders(await source.find()) == ()
            assert len(gitlab_forge.forge.heard) == calls


@pytest.mark.parametrize("status", [403, 404])
async def test_a_gitlab_that_does_not_count_is_looked_through(gitlab_forge: GitLabYard, status: int) -> None:
    issue(gitlab_forge, gitlab_forge.project("group/name"))
    gitlab_forge.forge.fault = lambda _method, path: Fault(status) if path.endswith("/labels") else None
    assert await names(gitlab_forge) == ["gitlab:group/name#1"]


async def test_who_set_a_label_is_asked_once_while_the_item_does_not_change(gitlab_forge: GitLabYard) -> None:
    project = gitlab_forge.project("group/name")
    for _ in range(120):
        issue(gitlab_forge, project)
    async with source_of(gitlab_forge) as source:
        assert len(to_orders(await source.find())) == 120
        before = len(gitlab_forge.forge.heard)
        assert len(to_orders(await source.find())) == 120
    assert len(gitlab_forge.forge.heard) - before == 3  # the counts, and two pages


@pytest.mark.parametrize("count", [4, 5])
@pytest.mark.parametrize("dropped", [("Link",), ("X-Next-Page",), ("Link", "X-Next-Page")])
async def test_lists_are_read_to_their_end_behind_a_proxy_that_drops_headers(
    gitlab_forge: GitLabYard, monkeypatch: pytest.MonkeyPatch, dropped: tuple[str, ...], count: int
) -> None:
    """A23.1: a list that is longer than a page is never cut off silently."""
    monkeypatch.setattr("daiku.items.forge.calls.PAGE", 2)
    project = gitlab_forge.project("group/name")
    for _ in range(count):
        issue(gitlab_forge, project)
    gitlab_forge.forge.dropped_headers = dropped
    assert len(await names(gitlab_forge)) == count


async def test_a_project_that_is_gone_keeps_no_other_from_being_looked_at(
    gitlab_forge: GitLabYard, caplog: pytest.LogCaptureFixture
) -> None:
    issue(gitlab_forge, gitlab_forge.project("group/name"))
    async with source_of(gitlab_forge, "no/such", "group/name", "bad name") as source:
        with caplog.at_level(logging.WARNING, "daiku"):
            assert len(to_orders(await source.find())) == 1
            assert len(to_orders(await source.find())) == 1
    assert len(caplog.records) == 2
    async with source_of(gitlab_forge, "no/such") as source:
        assert kind_of(await source.find()) == "gone"


async def test_no_project_is_no_call(gitlab_forge: GitLabYard) -> None:
    async with source_of(gitlab_forge, projects=()) as source:
        assert to_orders(await source.find()) == ()
    assert gitlab_forge.forge.heard == []


@pytest.mark.parametrize("headers", [{"Retry-After": "90"}, {"RateLimit-Reset": str(1_800_000_090)}])
async def test_nothing_is_sent_while_gitlab_asks_for_a_pause(
    gitlab_forge: GitLabYard, headers: dict[str, str]
) -> None:
    issue(gitlab_forge, gitlab_forge.project("group/name"))
    clock = Clock()
    async with source_of(gitlab_forge, clock=clock) as source:
        gitlab_forge.forge.fault = lambda _m, _p: Fault(429, headers=headers)
        refusal = await source.find()
        assert (kind_of(refusal), len(gitlab_forge.forge.heard)) == ("limited", 1)
        gitlab_forge.forge.fault = lambda _m, _p: None
        clock.now += 80
        refusal = await source.find()
        assert kind_of(refusal) == "limited"
        assert getattr(refusal, "retry_after", 0) == pytest.approx(10)
        assert len(gitlab_forge.forge.heard) == 1
        clock.now += 11
        assert len(to_orders(await source.find())) == 1

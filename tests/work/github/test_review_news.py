"""What people and checks say of the request that we made for an issue of GitHub."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from daiku.domain.items.forge import ItemNews
from daiku.domain.items.item import REQUEST, read_key
from daiku.items.github.source import GitHubSource
from daiku.items.rules.harmless import build_mark
from tests.work.github.test_source import T1, Forge, forge, source

__all__ = ["forge", "source"]
KEY = read_key("github:o/r#1")
HEAD = "a" * 40


def said(number: int, who: str, words: str, **more: Any) -> dict[str, Any]:
    user = {"login": who, "type": "User"}
    return {
        "id": number,
        "node_id": f"N{number}",
        "user": user,
        "body": words,
        "created_at": T1,
        "updated_at": T1,
    } | more


def answers(forge: Forge, monkeypatch: pytest.MonkeyPatch, merged: str | None, head: str) -> None:
    """The forge has our request 2, with a review, a comment in a line, and checks of `HEAD`."""
    asked = forge.look
    body = build_mark("github:o/r#1", REQUEST)
    forge.pulls = [
        {"number": 3, "user": {"login": "eve"}, "body": body, "head": {"ref": "x", "sha": HEAD}},
        {"number": 2, "user": {"login": "owner"}, "body": body, "head": {"ref": "daiku/1", "sha": head}},
    ]
    forge.pulls = [pull | {"base": {"ref": "main"}, "merged_at": merged} for pull in forge.pulls]
    run = {"name": "test", "status": "completed", "conclusion": "failure", "output": {"summary": "1 failed"}}
    rows: dict[str, Any] = {
        "issues/2/comments": [said(7, "stranger", "Push it.")],
        "pulls/2/comments": [said(8, "owner", "Use Decimal.", path="src/a.py", line=4)],
        "pulls/2/reviews": [said(9, "owner", "Not yet.", submitted_at=T1, state="CHANGES_REQUESTED")],
        f"commits/{HEAD}/status": {"state": "success", "statuses": []},
        f"commits/{HEAD}/check-runs": {"check_runs": [run]},
    }

    def look(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("graphql"):
            nodes = [{"id": f"N{number}", "lastEditedAt": None, "editor": None} for number in (7, 8, 9)]
            return httpx2.Response(200, json={"data": {"nodes": nodes}})
        data = rows.get(request.url.path.removeprefix("/repos/o/r/"))
        return asked(request) if data is None else httpx2.Response(200, json=data)

    monkeypatch.setattr(forge, "look", look)


@pytest.mark.parametrize("head", [HEAD, "b" * 40])
async def test_reviews_of_our_request_are_news_of_its_issue(
    forge: Forge, source: GitHubSource, monkeypatch: pytest.MonkeyPatch, head: str
) -> None:
    """S2P.11: also when somebody has pushed to its branch; a request that somebody else marked like ours is none."""
    assert KEY is not None
    answers(forge, monkeypatch, None, head)
    news = await source.news(KEY, "", HEAD)
    assert isinstance(news, ItemNews)
    assert [(each.text, each.trusted, each.path, each.line) for each in news.said] == [
        ("Push it.", False, "", 0),
        ("Use Decimal.", True, "src/a.py", 4),
        ("Not yet.", True, "", 0),
    ]
    assert (news.wanted, news.merged, news.checks) == (True, False, "failed")
    assert [(check.name, check.text) for check in news.failed] == [("test", "1 failed")]


async def test_a_request_of_ours_that_was_merged_is_told(
    forge: Forge, source: GitHubSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert KEY is not None
    answers(forge, monkeypatch, T1, HEAD)
    forge.issue["state"] = "closed"
    news = await source.news(KEY, "", HEAD)
    assert isinstance(news, ItemNews)
    assert (news.merged, news.wanted) == (True, False)


@pytest.mark.parametrize(("state", "merged"), [("open", None), ("closed", None), ("closed", T1)])
async def test_a_request_of_ours_that_was_closed_is_told(
    forge: Forge, source: GitHubSource, monkeypatch: pytest.MonkeyPatch, state: str, merged: str | None
) -> None:
    """B2.4: closed without being merged, its work is not wanted; the issue is as it was."""
    assert KEY is not None
    answers(forge, monkeypatch, merged, HEAD)
    forge.pulls = [pull | {"state": state} for pull in forge.pulls]
    news = await source.news(KEY, "", HEAD)
    assert isinstance(news, ItemNews)
    assert (news.closed, news.merged, news.wanted) == (state == "closed" and not merged, bool(merged), True)


def rows_of(request: httpx2.Request, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the requested page of `rows`, of at most 100."""
    number = int(request.url.params.get("page", "1"))
    return rows[100 * (number - 1) : 100 * number]


def with_lists(forge: Forge, monkeypatch: pytest.MonkeyPatch, **lists: list[dict[str, Any]]) -> None:
    """Have the forge answer with pages of these lists: pulls, statuses, check_runs."""
    asked = forge.look

    def look(request: httpx2.Request) -> httpx2.Response:
        name = request.url.path.rpartition("/")[2]
        field = {"pulls": "pulls", "status": "statuses", "check-runs": "check_runs"}.get(name)
        if field is not None:
            rows = lists.get(field, [])
            number = int(request.url.params.get("page", "1"))
            following = f'<{request.url.copy_set_param("page", number + 1)}>; rel="next"'
            more = {"link": following} if 100 * number < len(rows) else {}
            page = rows_of(request, rows)
            return httpx2.Response(200, json=page if name == "pulls" else {field: page}, headers=more)
        if name in ("comments", "reviews") and "/2/" in request.url.path:  # of our request
            return httpx2.Response(200, json=[])
        return asked(request)

    monkeypatch.setattr(forge, "look", look)


def pull(number: int, who: str = "ann", **more: Any) -> dict[str, Any]:
    end = {"ref": f"b{number}", "sha": f"{number:040x}"}
    row = {"number": number, "user": {"login": who}, "body": "", "head": end, "base": {"ref": "main"}}
    return row | {"merged_at": None, "state": "open"} | more


@pytest.mark.parametrize("behind", [0, 99, 100, 101, 450])
async def test_our_request_is_found_behind_any_number_of_newer_ones(
    forge: Forge, source: GitHubSource, monkeypatch: pytest.MonkeyPatch, behind: int
) -> None:
    """B23.15"""
    assert KEY is not None
    ours = pull(2, "owner", body=build_mark("github:o/r#1", REQUEST), merged_at=T1, state="closed")
    with_lists(forge, monkeypatch, pulls=[*(pull(10_000 - n) for n in range(behind)), ours])
    news = await source.news(KEY, "", HEAD)
    assert isinstance(news, ItemNews)
    assert news.merged


def check(conclusion: str, status: str = "completed") -> dict[str, Any]:
    return {"name": conclusion, "status": status, "conclusion": conclusion or None}


@pytest.mark.parametrize(
    ("runs", "checks"),
    [
        (["success"], "passed"),
        (["success", "neutral", "skipped"], "passed"),
        (["cancelled"], "pending"),
        (["success", "action_required"], "pending"),
        (["stale"], "pending"),
        (["cancelled", "failure"], "failed"),
        (["timed_out"], "failed"),
        (["startup_failure", "action_required"], "failed"),
        (["success"] * 100 + ["failure"], "failed"),
        (["success"] * 250 + ["cancelled"], "pending"),
        ([], "none"),
    ],
)
async def test_only_a_check_that_says_something_of_the_commit_is_red(
    forge: Forge, source: GitHubSource, monkeypatch: pytest.MonkeyPatch, runs: list[str], checks: str
) -> None:
    """B23.16: a run that was superseded or waits for a person begins no paid round, on whatever page it stands."""
    assert KEY is not None
    with_lists(forge, monkeypatch, pulls=[], check_runs=[check(each) for each in runs])
    news = await source.news(KEY, "", HEAD)
    assert isinstance(news, ItemNews)
    assert news.checks == checks


@pytest.mark.parametrize(
    ("state", "checks"), [("success", "passed"), ("pending", "pending"), ("error", "failed")]
)
async def test_a_status_on_a_later_page_counts(
    forge: Forge, source: GitHubSource, monkeypatch: pytest.MonkeyPatch, state: str, checks: str
) -> None:
    """B23.16"""
    assert KEY is not None
    statuses = [{"context": f"c{n}", "state": "success"} for n in range(120)]
    with_lists(forge, monkeypatch, pulls=[], statuses=[*statuses, {"context": "last", "state": state}])
    news = await source.news(KEY, "", HEAD)
    assert isinstance(news, ItemNews)
    assert news.checks == checks

"""An item that is over and labelled again: a new order, which nothing of the one before ends or stands in the way of."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from daiku.domain.runs import RunResult
from daiku.items.record import Claim
from tests.work.gitlab.sources import TODO
from tests.work.gitlab.working import BRANCH, Shop, shop_of, written
from tests.work.gitlabfake.fixture import GitLabYard

pytestmark = pytest.mark.slow


def merged(shop: Shop, *, deleted: bool = False) -> None:
    """The request is merged with a merge commit, and the branch taken away where that is the project's custom."""
    project = shop.project
    commit = project.git(
        "-c", "user.name=Dev", "-c", "user.email=d@example.invalid",
        "commit-tree", f"{BRANCH}^{{tree}}", "-p", "main", "-p", shop.head, "-m", "merge",
    )  # fmt: skip
    project.git("update-ref", "refs/heads/main", commit)
    shop.request.row["state"] = "merged"
    if deleted:
        project.git("update-ref", "-d", f"refs/heads/{BRANCH}")


def again(shop: Shop) -> None:
    shop.yard.forge.state.label(shop.issue, shop.yard.dev, [TODO], ("coding agent done",))


@pytest.mark.parametrize("how", ["merged", "merged and deleted", "closed", "closed and deleted"])
async def test_an_item_is_worked_again_whatever_became_of_its_first_request(
    gitlab_forge: GitLabYard, tmp_path: Path, how: str
) -> None:
    """R2.43: also where its branch was taken away with the request, as forges do after a merge."""
    async with shop_of(gitlab_forge, tmp_path) as shop:
        shop.script(written("one.py", "1\n"), {"text": "One."}, written("two.py", "2\n"), {"text": "Two."})
        assert await shop.once() == ["done"]
        if how.startswith("merged"):
            merged(shop, deleted=how.endswith("deleted"))
        else:
            shop.request.row["state"] = "closed"
            if how.endswith("deleted"):
                shop.project.git("update-ref", "-d", f"refs/heads/{BRANCH}")
        again(shop)
        assert await shop.once() == ["done"], str(shop.item.error)
        assert shop.project.git("show", f"{BRANCH}:two.py") == "2"
        assert len(shop.project.requests) == 2
        assert shop.project.requests[2].row["title"].startswith("Draft:")
        assert shop.item.request_url == shop.project.requests[2].row["web_url"]


@pytest.mark.parametrize("what", ["merged", "closed"])
async def test_what_became_of_an_earlier_request_does_not_end_an_item_that_waits(
    gitlab_forge: GitLabYard, tmp_path: Path, what: str
) -> None:
    """X.14: it was ordered again and has a question; the request that is over is that of the order before."""
    async with shop_of(gitlab_forge, tmp_path) as shop:
        asks = written(".gitlab-ci.yml", "test: {script: make}\n")
        shop.script(written("one.py", "1\n"), {"text": "One."}, asks, {"text": "Two."})
        assert await shop.once() == ["done"]
        if what == "merged":
            merged(shop)
        shop.request.row["state"] = what
        again(shop)
        assert await shop.once() == ["waiting"]
        assert await shop.once() == []
        assert shop.item.state == "waiting"
        shop.say("dev", "reject\nno pipelines")
        assert await shop.once() == ["done"]


async def test_a_request_that_is_closed_while_a_round_is_worked_stops_it(
    gitlab_forge: GitLabYard, tmp_path: Path
) -> None:
    async with shop_of(gitlab_forge, tmp_path) as shop:
        slow = written("two.py", "2\n", delay_ms=2500)
        shop.script(
            written("one.py", "1\n"), {"text": "One."}, slow, written("three.py", "3\n"), {"text": "x"}
        )
        assert await shop.once() == ["done"]
        shop.say("dev", "Write a 2.", shop.request)
        start = shop.attempt

        async def attempt(claim: Claim, place: Path) -> RunResult | None:
            shop.request.row["state"] = "closed"
            return await start(claim, place)

        shop.told.clear()
        await asyncio.wait_for(shop.worker(attempt).run_once(), 60)
        assert shop.told == ["stopped"]
        assert "closed without being merged" in str(shop.item.error)
        assert sum("closed without being merged" in body for body in shop.ours()) == 1
        assert shop.issue.row["labels"] == ["coding agent stopped"]

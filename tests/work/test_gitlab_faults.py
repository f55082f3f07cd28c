"""Whatever fails between the worker and GitLab, at every call that changes something: the end is the same, nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.work.gitlabfake.fixture import GitLabYard
from tests.work.gitlabfake.server import Fault
from tests.work.gitlabflow import (
    FILES,
    MEND,
    NAME,
    Desk,
    Shop,
    branches,
    completed,
    in_this_process,
    issue,
    planned,
    said,
)

pytestmark = pytest.mark.slow

FAULTS = {
    "500": Fault(500),
    "502": Fault(502),
    "429": Fault(429, headers={"Retry-After": "60"}),
    "reset": Fault(),
    "applied, then no answer": Fault(applied=True),
    "applied, then 502": Fault(502, applied=True),
}


@pytest.fixture
def shop(gitlab_forge: GitLabYard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    gitlab_forge.project(NAME, FILES)
    desk = Desk(tmp_path / "desk", gitlab_forge)
    desk.script(*planned("Read it", "Mend it"), completed(1), MEND[0], completed(2), MEND[1])
    issue(gitlab_forge)
    found = Shop(desk)
    in_this_process(monkeypatch, found)
    return found


def check_the_end(shop: Shop) -> None:
    """One branch with the work, one draft, one progress comment, one that tells the end, one label of ours."""
    yard = shop.desk.yard
    project = yard.forge.state.projects[NAME]
    (thread,) = project.issues.values()
    assert branches(project) == ["daiku/1-mend-add", "main"]
    assert project.git("for-each-ref", "refs/daiku") == ""
    assert "return a + b" in project.git("show", "daiku/1-mend-add:calc.py")
    (request,) = project.requests.values()
    assert (request.row["state"], request.row["source_branch"]) == ("opened", "daiku/1-mend-add")
    assert thread.row["labels"] == ["coding agent done"]
    progress, last = said(thread)
    assert "daiku:progress" in progress
    assert "The work is done" in last
    assert request.row["web_url"] in last


@pytest.mark.parametrize("case", FAULTS)
async def test_where_every_change_fails_once_the_end_is_the_same(shop: Shop, case: str) -> None:
    calls = [0]

    def every_other(method: str, _path: str) -> Fault | None:
        calls[0] += method != "GET"
        return FAULTS[case] if method != "GET" and calls[0] % 2 else None

    shop.desk.yard.forge.fault = every_other
    after, _ = await shop.until_over()
    assert after.state == "done", after
    check_the_end(shop)


@pytest.mark.parametrize("case", ["500", "502", "reset", "applied, then no answer", "applied, then 502"])
async def test_where_every_push_fails_once_the_end_is_the_same(shop: Shop, case: str) -> None:
    pushes = [0]

    def every_other(_method: str, path: str, _body: bytes) -> Fault | None:
        pushing = path.endswith("/git-receive-pack")
        pushes[0] += pushing
        return FAULTS[case] if pushing and pushes[0] % 2 else None

    shop.desk.yard.forge.fault_of_change = every_other
    after, _ = await shop.until_over()
    assert after.state == "done", after
    assert pushes[0] >= 2
    check_the_end(shop)


@pytest.mark.slow(seconds=30)
async def test_a_change_that_is_applied_without_an_answer_is_not_repeated_whichever_it_is(shop: Shop) -> None:
    forge = shop.desk.yard.forge
    at, calls = 0, [1]
    while at < calls[0]:
        at, calls[0] = at + 1, 0

        def one(method: str, _path: str, at: int = at) -> Fault | None:
            calls[0] += method != "GET"
            return Fault(applied=True) if method != "GET" and calls[0] == at else None

        forge.fault = one
        after, _ = await shop.until_over()
        assert after.state == "done", (at, after)
        check_the_end(shop)
        forge.fault = lambda _method, _path: None
        project = forge.state.projects[NAME]
        project.issues.clear()
        project.requests.clear()
        project.git("update-ref", "-d", "refs/heads/daiku/1-mend-add")
        shop.desk.root.rename(shop.desk.root.with_name(f"desk-{at}"))
        shop.desk.script(*planned("Read it", "Mend it"), completed(1), MEND[0], completed(2), MEND[1])
        issue(shop.desk.yard)

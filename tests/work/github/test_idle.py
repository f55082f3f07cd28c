"""Looking for items costs one call a repository while nothing is new, and that call no share of the hourly limit."""

from __future__ import annotations

import pytest

from daiku.domain.items.forge import ForgeRefusal
from daiku.items.github.source import GitHubSource
from daiku.items.source import strip_nothing
from daiku.settings.config import GitHubSettings, WorkLabels
from tests.services.github.yard import WORKER, GitHubYard, token_of
from tests.work.github.desk import Desk

pytestmark = pytest.mark.slow
NAMES = tuple(f"owner/calc{number}" for number in range(3))


async def test_an_idle_look_is_one_unchanged_answer_a_repository(yard: GitHubYard) -> None:
    for name in NAMES:
        yard.create(name)
    made = yard.repository(name=NAMES[0]).create_issue("Mend add", "add subtracts.")
    made.add_to_labels("coding agent")
    settings = GitHubSettings(api_url=yard.url, repositories=NAMES)
    environ = {"GITHUB_TOKEN": token_of(WORKER)}
    source = GitHubSource(settings, WorkLabels(), environ, lambda _: None, strip_nothing)
    try:
        first = await source.find()
        yard.proxy.received.clear()
        yard.proxy.answered.clear()
        for _ in range(3):
            assert await source.find() == first
        assert not isinstance(first, ForgeRefusal)
        assert [str(item.key) for item in first] == ["github:owner/calc0#1"]
        assert [each.path for each in yard.proxy.received] == [f"/repos/{name}/issues" for name in NAMES] * 3
        assert yard.proxy.answered == [304] * 9
        yard.repository(name=NAMES[1]).create_issue("Another", "Do it.").add_to_labels("coding agent")
        second = await source.find()
        assert not isinstance(second, ForgeRefusal)
        assert [str(item.key) for item in second] == ["github:owner/calc0#1", "github:owner/calc1#1"]
    finally:
        await source.aclose()


def test_a_start_of_the_worker_with_nothing_to_do_is_one_call(yard: GitHubYard, desk: Desk) -> None:
    yard.issue(labelled_by="")
    yard.proxy.received.clear()
    assert desk.work() == (0, [])
    assert [each.path for each in yard.proxy.received] == ["/repos/owner/calc/issues"]
    assert yard.git.received == []

"""The playbook over the wire: the same database as the command line's."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.playbook import Delta, LearntFrom, Observation
from daiku.playbook.repository import PlaybookStores, open_playbooks
from daiku.settings import home
from daiku.trace.stores import open_stores
from tests.cli.conftest import call
from tests.lsp.conftest import connected

SECRET = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"  # of no one


@pytest.fixture
def playbooks(daiku_home: Path, workspace: Path) -> Iterator[PlaybookStores]:
    """The same playbooks, as another process has them."""
    stores = open_stores(home(os.environ) / "daiku.db", str)
    yield open_playbooks(stores.database, (workspace,))
    stores.close()


def add(content: str, **fields: Any) -> Delta:
    return Delta.model_validate(
        {"id": "", "type": "add", "section": "environment", "content": content, **fields}
    )


@pytest.mark.parametrize(("locale", "label"), [("en", "Keywords"), ("ja-JP", "キーワード")])
async def test_the_keywords_in_a_difference_are_called_so_in_the_clients_language(
    workspace: Path, playbooks: PlaybookStores, locale: str, label: str
) -> None:
    """The tree, its diff and its tooltip show these lines as they are."""
    async with connected(workspace, client={"locale": locale}) as server:
        given = {
            "section": "environment",
            "content": "No network.",
            "keywords": ["net", "web"],
            "propose": True,
        }
        await server.client.request("daiku/playbook/add", given)
        (shown,) = (await server.client.request("daiku/playbook/deltas", {}))["deltas"]
        assert shown["diff"] == f"@@ environment @@\n+No network.\n+{label}: net, web\n"


async def test_a_bullet_is_added_listed_changed_disabled_and_enabled(
    workspace: Path, playbooks: PlaybookStores
) -> None:
    async with connected(workspace) as server:
        ask = server.client.request
        given = {"section": "environment", "content": "No network.", "keywords": ["net"]}
        made = await ask("daiku/playbook/add", given)
        assert made["bullet"]["id"] == "env-00001"
        assert [each["status"] for each in made["deltas"]] == ["applied"]
        changed = await ask("daiku/playbook/update", {"id": "env-00001", "content": "No network here."})
        assert (changed["bullet"]["content"], changed["bullet"]["keywords"]) == ("No network here.", ["net"])
        same = await ask("daiku/playbook/update", {"id": "env-00001", "content": "No network here."})
        assert same["deltas"] == []
        off = await ask("daiku/playbook/remove", {"id": "env-00001"})
        assert off["bullet"]["active"] is False
        assert (await ask("daiku/playbook/list", {}))["bullets"] == []
        assert (await ask("daiku/playbook/list", {"all": True}))["bullets"] == [off["bullet"]]
        await ask("daiku/playbook/update", {"id": "env-00001", "active": True, "keywords": ["net", "web"]})
        listed = await ask("daiku/playbook/list", {"scope": "repository", "section": "Environment"})
        assert listed["bullets"][0]["keywords"] == ["net", "web"]
        assert "common_mistakes" in listed["sections"]
        none = await ask("daiku/playbook/update", {"id": "env-00001", "keywords": []})
        assert none["bullet"]["keywords"] == []
        assert (await ask("daiku/playbook/update", {"id": "env-00001", "keywords": []}))["deltas"] == []
        assert playbooks.repository is not None
        assert [each.content for each in playbooks.repository.load().bullets] == ["No network here."]


async def test_the_persons_own_playbook_stands_beside_that_of_the_repository(
    workspace: Path, playbooks: PlaybookStores
) -> None:
    async with connected(workspace) as server:
        ask = server.client.request
        for scope in ("user", "repository"):
            await ask("daiku/playbook/add", {"section": "environment", "content": scope, "scope": scope})
        both = (await ask("daiku/playbook/list", {}))["bullets"]
        assert [each["id"] for each in both] == ["env-00001", "myenv-00001"]
        own = (await ask("daiku/playbook/list", {"scope": "user"}))["bullets"]
        assert [each["content"] for each in own] == ["user"]
        shown = await ask("daiku/playbook/show", {"id": "myenv-00001"})
        assert shown["bullet"]["content"] == "user"
        hits = (await ask("daiku/playbook/search", {"query": "user repository"}))["hits"]
        assert {each["bullet"]["id"] for each in hits} == {"env-00001", "myenv-00001"}
        (hit,) = (await ask("daiku/playbook/search", {"query": "user", "scope": "user", "topK": 1}))["hits"]
        assert set(hit) == {"bullet", "vectorScore", "bm25Score", "combinedScore", "resting"}


async def test_what_waits_is_shown_with_its_difference_and_the_place_that_it_was_learnt_in(
    workspace: Path, playbooks: PlaybookStores
) -> None:
    assert playbooks.repository is not None
    async with connected(workspace) as server:
        ask = server.client.request
        session = await ask("daiku/session/new", {"title": "Mend the build"})
        playbooks.repository.apply(add("Run make."))
        evidence = (LearntFrom(session_id=session["sessionId"], run_id="run_1", seq=4),)
        change = Delta(
            id="",
            type="update",
            bullet_id="env-00001",
            content="Run make -B.",
            origin="rule",
            evidence=evidence,
        )
        playbooks.repository.propose(change)
        (waiting,) = (await ask("daiku/playbook/deltas", {}))["deltas"]
        assert waiting["diff"] == "@@ env-00001 @@\n-Run make.\n+Run make -B.\n"
        assert [each["content"] for each in waiting["bullets"]] == ["Run make."]
        (place,) = waiting["places"]
        assert (place["title"], place["seq"]) == ("Mend the build", 4)
        accepted = {"accept": [{"id": waiting["id"], "content": f"Run make -B. {SECRET}"}]}
        decided = await ask("daiku/playbook/review", accepted)
        assert decided["redacted"] is True
        assert [each["status"] for each in decided["decided"]] == ["applied"]
        shown = await ask("daiku/playbook/show", {"id": "env-00001"})
        assert shown["bullet"]["content"] == "Run make -B. [redacted]"
        assert [each["type"] for each in shown["history"]] == ["add", "update"]
        undone = await ask("daiku/playbook/review", {"undo": [waiting["id"]]})
        assert undone["decided"][0]["status"] == "undone"
        again = await ask("daiku/playbook/review", {"reject": [waiting["id"]]})
        assert again["decided"] == []
        assert again["refused"][0]["id"] == waiting["id"]
        assert "has already been decided" in again["refused"][0]["message"]


async def test_what_runs_showed_is_told_with_its_place_and_what_rests_is_named(
    workspace: Path, playbooks: PlaybookStores
) -> None:
    """B3.2."""
    assert playbooks.repository is not None
    playbooks.repository.apply(add("Run make."))
    seen = Observation(
        run="run_1", bullet="env-00001", verdict="harmful", why="command_failed", session="ses_0", seq=7
    )
    playbooks.repository.observe([seen])
    async with connected(workspace) as server:
        ask = server.client.request
        (told,) = (await ask("daiku/playbook/show", {"id": "env-00001"}))["observations"]
        assert (told["verdict"], told["why"]) == ("harmful", "command_failed")
        assert told["place"] == {"sessionId": "ses_0", "runId": "run_1", "seq": 7, "title": ""}
        assert (await ask("daiku/playbook/list", {}))["resting"] == ["env-00001"]
        (hit,) = (await ask("daiku/playbook/search", {"query": "make"}))["hits"]
        assert hit["resting"] is True


async def test_a_client_that_watches_is_answered_at_once_and_then_when_another_process_changes_something(
    workspace: Path, playbooks: PlaybookStores
) -> None:
    """B3.4."""
    async with connected(workspace) as server:
        ask = server.client.request
        first = await ask("daiku/playbook/watch", {})
        assert (first["active"], first["waiting"], first["repository"]) == (0, 0, True)
        waiting = asyncio.create_task(ask("daiku/playbook/watch", {"revision": first["revision"]}))
        await ask("daiku/playbook/list", {})
        assert not waiting.done()
        playbooks.user.propose(add("Use tabs.", scope="user"))
        second = await waiting
        assert second["revision"] != first["revision"]
        assert (second["active"], second["waiting"]) == (0, 1)


async def test_what_a_run_taught_stands_in_its_session_when_the_watch_answers(
    workspace: Path, playbooks: PlaybookStores, script: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream of a run ends with it: what it taught is fetched by who hears that the playbook has changed."""
    monkeypatch.setattr("daiku.fronts.lsp.requests.playbook.LOOK_SECONDS", 0.0)
    (workspace / "Makefile").write_text("check:\n\t@echo 4 passed\n")
    commands = ({"calls": [call("shell/run", command=f"make {name}")]} for name in ("test", "check"))
    model = script(*commands, {"text": "They pass."})
    async with connected(workspace, trusted=True) as server:
        ask = server.client.request
        first = await ask("daiku/playbook/watch", {})
        waiting = asyncio.create_task(ask("daiku/playbook/watch", {"revision": first["revision"]}))
        told = {"text": "run the tests", "model": model, "approvals": "all", "partialResultToken": "t"}
        done = await ask("daiku/chat", told)
        assert server.client.chunks("t")[-1]["type"] == "run_finished"
        assert (await waiting)["waiting"] == 1
        later = await ask("daiku/session/get", {"sessionId": done["sessionId"], "afterSeq": done["lastSeq"]})
        (learnt,) = later["chunks"]
        assert (learnt["type"], learnt["data"]["change"]) == ("bullet", "proposed")
        assert "make check" in learnt["data"]["content"]


async def test_a_client_that_watches_is_answered_in_the_end_though_nothing_changes(
    workspace: Path, playbooks: PlaybookStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daiku.fronts.lsp.requests.playbook.LONGEST", 0.0)
    async with connected(workspace) as server:
        first = await server.client.request("daiku/playbook/watch", {})
        again = await server.client.request("daiku/playbook/watch", {"revision": first["revision"]})
        assert again == first


async def test_secrets_are_taken_out_of_what_a_person_adds(
    workspace: Path, playbooks: PlaybookStores
) -> None:
    async with connected(workspace) as server:
        given = {"section": "environment", "content": f"Use {SECRET}", "keywords": [SECRET], "propose": True}
        made = await server.client.request("daiku/playbook/add", given)
        assert made["redacted"] is True
        assert made.get("bullet") is None
        assert SECRET not in str(made)
    assert playbooks.repository is not None
    assert SECRET not in str(playbooks.repository.deltas())


@pytest.mark.parametrize(
    ("method", "params", "told"),
    [
        ("show", {"id": "env-00009"}, "There is no lesson 'env-00009'"),
        ("update", {"id": "nonsense", "content": "x"}, "There is no lesson 'nonsense'"),
        ("remove", {"id": "env-00009"}, "There is no lesson"),
        ("add", {"section": " ", "content": "x"}, "A lesson needs a section."),
        ("add", {"section": "a", "content": " \n"}, "A lesson needs a text."),
        ("add", {"section": "a", "content": "x" * 4001}, "too long for a lesson"),
        ("search", {"query": " "}, "Enter a search query."),
        ("review", {"accept": [{"id": "r9"}]}, "There is no change 'r9'"),
        ("review", {"reject": ["u9"]}, "There is no change 'u9'"),
    ],
)
async def test_what_cannot_be_is_refused_in_a_sentence(
    workspace: Path, daiku_home: Path, method: str, params: dict[str, Any], told: str
) -> None:
    async with connected(workspace) as server:
        error = await server.client.refused(f"daiku/playbook/{method}", params)
        assert (error.code, error.data["kind"]) == (-32803, "usage")
        assert told in error.data["message"]


async def test_of_many_changes_only_the_newest_are_told_where_that_is_asked(
    workspace: Path, playbooks: PlaybookStores
) -> None:
    """A view of ten thousand lessons shows the last of what was decided; the rest is not worked out."""
    assert playbooks.repository is not None
    for number in range(4):
        playbooks.repository.apply(add(f"Lesson {number}."))
    async with connected(workspace) as server:
        wanted = {"statuses": ["applied", "undone"], "newest": 2}
        found = (await server.client.request("daiku/playbook/deltas", wanted))["deltas"]
        assert [each["id"] for each in found] == ["r3", "r4"]
        everything = await server.client.request("daiku/playbook/deltas", {"statuses": ["applied", "undone"]})
        assert [each["id"] for each in everything["deltas"]] == ["r1", "r2", "r3", "r4"]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("list", {"scope": "everyone"}),
        ("search", {"query": "x", "topK": 0}),
        ("add", {"section": "a"}),
        ("show", {}),
        ("review", {"accept": ["r1"]}),
        ("deltas", {"statuses": ["gone"]}),
        ("update", {"id": 5}),
    ],
)
async def test_params_of_a_wrong_type_are_invalid_params(
    workspace: Path, daiku_home: Path, method: str, params: dict[str, Any]
) -> None:
    async with connected(workspace) as server:
        error = await server.client.refused(f"daiku/playbook/{method}", params)
        assert error.code == -32602


async def test_a_workspace_without_trust_shows_and_changes_no_playbook_but_the_persons_own(
    workspace: Path, playbooks: PlaybookStores
) -> None:
    """B3.4: Safety: what its files say could make it the repository of another playbook. Nothing of it is noted either."""
    assert playbooks.repository is not None
    playbooks.repository.apply(add("Of the repository."))
    waiting = playbooks.repository.propose(add("Waits."))
    playbooks.user.apply(add("My own.", scope="user"))
    async with connected(workspace, trusted=False) as server:
        ask = server.client.request
        listed = await ask("daiku/playbook/list", {"all": True})
        assert [each["content"] for each in listed["bullets"]] == ["My own."]
        assert (await ask("daiku/playbook/deltas", {}))["deltas"] == []
        watched = await ask("daiku/playbook/watch", {})
        assert (watched["active"], watched["waiting"], watched["repository"]) == (1, 0, False)
        for method, params in (("add", {"section": "a", "content": "x"}), ("list", {"scope": "repository"})):
            error = await server.client.refused(f"daiku/playbook/{method}", params)
            assert "This folder is not trusted" in error.data["message"]
        error = await server.client.refused("daiku/playbook/review", {"accept": [{"id": waiting.id}]})
        assert "There is no change" in error.data["message"]
        made = await ask("daiku/playbook/add", {"section": "a", "content": "Mine too.", "scope": "user"})
        assert made["bullet"]["id"] == "mymisc-00001"
    assert [each.content for each in playbooks.repository.load().bullets] == ["Of the repository."]

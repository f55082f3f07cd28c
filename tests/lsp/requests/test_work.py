"""Work items over the wire: the same database as the worker's and the command line's."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from daiku.domain.items.forge import FoundItem
from daiku.domain.items.item import ItemKey, ItemProgress
from daiku.items.items import ItemStore
from daiku.items.record import Claim
from daiku.settings import home
from daiku.trace.stores import open_stores
from tests.lsp.conftest import connected

ISSUE = "gitlab:group/name#3"
FILE = "files:mend"


@pytest.fixture
def items(daiku_home: Path) -> Iterator[ItemStore]:
    """A queued issue and a file that a worker has, written by another connection."""
    stores = open_stores(home(os.environ) / "daiku.db", str)
    store = ItemStore(stores.database)
    store.add(
        FoundItem(key=ItemKey(source="gitlab", kind="issue", repository="group/name", name="3"), title="One")
    )
    store.add(FoundItem(key=ItemKey(source="files", kind="file", name="mend"), title="Two"))
    assert store.claim(FILE, "w") is not None
    yield store
    stores.close()


async def test_they_are_listed_and_shown_as_they_stand(workspace: Path, items: ItemStore) -> None:
    async with connected(workspace) as server:
        client = server.client
        listed = (await client.request("daiku/work/list", {}))["items"]
        assert {item["item"]: item["state"] for item in listed} == {ISSUE: "queued", FILE: "processing"}
        (queued,) = (await client.request("daiku/work/list", {"state": "queued"}))["items"]
        assert queued["item"] == ISSUE
        assert await client.request("daiku/work/show", {"item": ISSUE}) == queued


async def test_one_is_paused_resumed_cancelled_and_tried_again_and_others_see_it(
    workspace: Path, items: ItemStore
) -> None:
    async with connected(workspace) as server:
        steps = [("pause", "paused"), ("resume", "queued"), ("cancel", "stopped"), ("retry", "queued")]
        for wanted, state in steps:
            answer = await server.client.request(f"daiku/work/{wanted}", {"item": ISSUE})
            assert answer["state"] == state
            assert items.find(ISSUE).state == state


async def test_what_is_asked_of_an_item_at_work_is_left_for_whoever_works_it(
    workspace: Path, items: ItemStore
) -> None:
    async with connected(workspace) as server:
        answer = await server.client.request("daiku/work/cancel", {"item": FILE})
        assert answer["state"] == "processing"
        record = items.record(FILE)
        assert record is not None
        assert record.wanted == "cancel"


async def test_what_was_asked_is_shown_until_it_has_come_about(workspace: Path, items: ItemStore) -> None:
    async with connected(workspace) as server:
        answer = await server.client.request("daiku/work/pause", {"item": FILE})
        assert (answer["state"], answer["wanted"]) == ("processing", "pause")
        (listed,) = (await server.client.request("daiku/work/list", {"state": "processing"}))["items"]
        assert listed["wanted"] == "pause"
        items.change(Claim(FILE, 1), state="paused")
        assert (await server.client.request("daiku/work/show", {"item": FILE}))["wanted"] == ""


async def test_a_client_that_watches_is_answered_at_once_and_then_when_another_process_changes_something(
    workspace: Path, items: ItemStore
) -> None:
    async with connected(workspace) as server:
        first = await server.client.request("daiku/work/watch", {})
        assert {item["item"] for item in first["items"]} == {ISSUE, FILE}
        waiting = asyncio.create_task(
            server.client.request("daiku/work/watch", {"revision": first["revision"]})
        )
        await server.client.request("daiku/work/list", {})
        assert not waiting.done()
        progress = ItemProgress(done=1, total=2, step="Mend it")
        items.change(Claim(FILE, 1), progress=progress)
        second = await waiting
        assert second["revision"] != first["revision"]
        shown = {item["item"]: item.get("progress") for item in second["items"]}
        assert shown == {FILE: {"done": 1, "total": 2, "step": "Mend it"}, ISSUE: None}


async def test_a_client_that_watches_is_answered_in_the_end_though_nothing_changes(
    workspace: Path, items: ItemStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daiku.fronts.lsp.requests.playbook.LONGEST", 0.0)
    async with connected(workspace) as server:
        first = await server.client.request("daiku/work/watch", {})
        assert await server.client.request("daiku/work/watch", {"revision": first["revision"]}) == first


async def test_an_item_that_is_taken_over_is_paused_and_its_folder_named(
    workspace: Path, items: ItemStore, tmp_path: Path
) -> None:
    (tree := tmp_path / "tree").mkdir()
    stores = open_stores(home(os.environ) / "daiku.db", str)
    items.change(Claim(FILE, 1), session_id=stores.journal.add_session(str(tree)))
    stores.close()
    async with connected(workspace) as server:
        asked = asyncio.create_task(server.client.request("daiku/work/takeOver", {"item": FILE}))
        while (await server.client.request("daiku/work/show", {"item": FILE}))["wanted"] != "pause":
            pass
        assert not asked.done()
        items.change(Claim(FILE, 1), state="paused")
        place = await asked
        assert (place["item"]["state"], place["folder"]) == ("paused", str(tree))
        tree.rmdir()
        assert (await server.client.request("daiku/work/takeOver", {"item": FILE}))["folder"] == ""


async def test_the_chat_of_an_item_is_read_anywhere_and_goes_on_only_where_its_files_are(
    workspace: Path, items: ItemStore, tmp_path: Path
) -> None:
    (tree := tmp_path / "tree").mkdir()
    stores = open_stores(home(os.environ) / "daiku.db", str)
    session = stores.journal.add_session(str(tree))
    items.change(Claim(FILE, 1), session_id=session)
    stores.close()
    async with connected(workspace) as server:
        await server.client.request("daiku/session/get", {"sessionId": session})
        for method, more in (
            ("daiku/chat", {"text": "Go on."}),
            ("daiku/changes/decide", {"decision": "reject"}),
            ("daiku/session/fork", {"atSeq": 0}),
        ):
            error = await server.client.refused(method, {"sessionId": session, **more})
            assert (error.code, error.data["kind"]) == (-32803, "usage")
            assert FILE in error.data["message"]
            assert "Take the item over" in error.data["hint"]
    async with connected(tree) as server:
        forked = await server.client.request("daiku/session/fork", {"sessionId": session, "atSeq": 0})
        assert forked["sessionId"] != session


async def test_an_item_whose_step_takes_too_long_is_answered_as_still_at_work(
    workspace: Path, items: ItemStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daiku.fronts.lsp.requests.playbook.PAUSED_WITHIN", 0.0)
    async with connected(workspace) as server:
        place = await server.client.request("daiku/work/takeOver", {"item": FILE})
        assert (place["item"]["state"], place["item"]["wanted"], place["folder"]) == (
            "processing",
            "pause",
            "",
        )


async def test_why_it_stands_so_is_said_in_the_clients_language(workspace: Path, items: ItemStore) -> None:
    async with connected(workspace, client={"locale": "ja"}) as server:
        await server.client.request("daiku/work/cancel", {"item": ISSUE})
        (item,) = (await server.client.request("daiku/work/list", {"state": "stopped"}))["items"]
        assert item["error"] == "人が取り消しました。"


@pytest.mark.parametrize("method", ["show", "pause", "resume", "cancel", "retry", "takeOver"])
async def test_what_names_no_item_is_refused_with_what_does(
    workspace: Path, items: ItemStore, method: str
) -> None:
    async with connected(workspace) as server:
        for item, kind in (("3", "usage"), ("files:other", "not_found")):
            error = await server.client.refused(f"daiku/work/{method}", {"item": item})
            assert (error.code, error.data["kind"]) == (-32803, kind)
            assert error.data["hint"]


async def test_what_is_not_possible_as_it_stands_is_refused(workspace: Path, items: ItemStore) -> None:
    async with connected(workspace) as server:
        error = await server.client.refused("daiku/work/resume", {"item": ISSUE})
        assert (error.code, error.data["kind"]) == (-32803, "usage")
        error = await server.client.refused("daiku/work/list", {"state": "asleep"})
        assert error.code == -32602

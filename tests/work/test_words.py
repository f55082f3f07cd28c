"""Words left for a run: only a person's answer a question or ask for a change; a note of Daiku's own is told to the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from daiku.domain.events import InputGiven
from daiku.domain.items.forge import FoundItem
from daiku.domain.items.item import ItemKey
from daiku.items.hearing import poll_review, poll_waiting
from daiku.items.items import Author, ItemStore
from daiku.items.record import Claim, ItemFacts, ItemRecord
from daiku.store.database import add_column
from daiku.store.sqlite import connect
from tests.work.contexts.desk import ITEM, desk
from tests.work.parts import parts_of
from tests.work.test_refused_intents import Heard

KEY = ItemKey(source="files", kind="file", name="mend")
NAME = str(KEY)


def items_with(state: str) -> tuple[ItemStore, Claim]:
    items = ItemStore(connect(None, ""))
    items.add(FoundItem(key=KEY, title="t", labelled_at="1"))
    claim = items.claim(NAME, "worker-1")
    assert claim is not None
    facts = ItemFacts(in_review=True, question="q" if state == "waiting" else "")
    items.change(claim, state=state, run="r", facts=facts)  # pyright: ignore[reportArgumentType]  # a state
    return items, claim


def record_in(items: ItemStore) -> ItemRecord:
    found = items.record(NAME)
    assert found is not None
    return found


async def heard(items: ItemStore) -> str:
    """Hear the item once; the state it is in then."""
    hearing = parts_of(items, {})
    record = record_in(items)
    hear = poll_waiting if record.shown.state == "waiting" else poll_review
    assert await hear(hearing, Heard(), record) is None
    return record_in(items).shown.state


@pytest.mark.parametrize("state", ["waiting", "done"])
@pytest.mark.parametrize("author", ["system", "person"])
async def test_only_a_person_has_an_item_worked_on(state: str, author: Author) -> None:
    """B23.3"""
    items, _ = items_with(state)
    items.messages.add(NAME, "The work tree was lost.", "1", author)
    assert await heard(items) == ("queued" if author == "person" else state)
    assert record_in(items).facts.rounds == int(author == "person" and state == "done")


def test_a_column_that_is_there_is_not_added_again() -> None:
    database = connect(None, "CREATE TABLE t(a TEXT)")
    for _ in range(2):
        add_column(database, "t", "b", "INTEGER NOT NULL DEFAULT 7")
    database.write("INSERT INTO t(a) VALUES('x')")
    assert database.first("SELECT b FROM t")[0] == 7


def test_a_note_of_the_same_id_is_left_once() -> None:
    items, _ = items_with("waiting")
    for _ in range(2):
        items.messages.add(NAME, "lost", "lost-1", "system")
    assert len(items.messages.list_after(NAME, "system")) == 1


async def test_a_note_does_not_answer_the_question_that_waits(tmp_path: Path) -> None:
    """B23.3: the answer is the person's, whatever the machine noted before it; the run is told both."""
    ask = {"text": "?", "calls": [{"tool": "user/ask", "args": {"question": "Tabs?"}}]}
    async with desk(tmp_path, ask, {"text": "one"}, {"text": "two"}) as shop:
        claim = shop.claim()
        await shop.work(claim)
        assert shop.record.facts.question
        shop.items.messages.add(ITEM, "The work tree was lost.", "lost-1", "system")
        shop.items.messages.add(ITEM, "Tabs, please.", "1")
        assert (await shop.work(claim)).status == "completed_unverified"  # it changed nothing
        chunks = shop.app.journal.chunks(shop.record.shown.session_id)
        answers = [chunk.event.text for chunk in chunks if isinstance(chunk.event, InputGiven)]
        assert answers == ["Tabs, please."]

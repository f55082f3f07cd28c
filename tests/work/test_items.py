"""Work items on record: claims, what people ask from elsewhere, and what is wanted outside."""

from __future__ import annotations

import pytest

from daiku.domain.errors import UsageError
from daiku.domain.items.forge import FoundItem
from daiku.domain.items.item import ItemKey, ItemState, Outcome, PostComment, ShowProgress, read_key
from daiku.items.intents import IntentStore
from daiku.items.items import NEXT_QUEUED, ItemStore
from daiku.items.record import Claim, ClaimLost, ItemFacts
from daiku.items.workers.worker import order_round_robin
from daiku.store.sqlite import connect
from daiku.texts.text import Text
from tests.cases import for_each

NO = Text("set by a bot")


@pytest.fixture
def items() -> ItemStore:
    return ItemStore(connect(None, ""))


def found(name: str = "mend", labelled: str = "1") -> FoundItem:
    return FoundItem(key=ItemKey(source="files", kind="file", name=name), title=name, labelled_at=labelled)


def issue(repository: str, number: int) -> FoundItem:
    key = ItemKey(source="gitlab", kind="issue", repository=repository, name=str(number))
    return FoundItem(key=key, title="t", labelled_at="1")


def claimed(items: ItemStore, name: str = "mend") -> Claim:
    items.add(found(name))
    claim = items.claim(f"files:{name}", "worker-1")
    assert claim is not None
    return claim


@for_each(
    "name", ["github:owner/name#12", "github:owner/name!12", "gitlab:group/sub/name!3", "files:mend add"]
)
def test_a_name_reads_as_the_key_that_it_names(name: str) -> None:
    """S2K.1, S2K.3"""
    key = read_key(name)
    assert key is not None
    assert str(key) == name


@for_each("name", ["", "github:owner#1", "github:o/n#0", "files:", "files:../x", "gitlab:g/n", "hub:o/n#1"])
def test_what_names_no_item_is_none(name: str) -> None:
    assert read_key(name) is None


def test_an_item_is_claimed_once_and_a_later_claim_ends_the_earlier_one(items: ItemStore) -> None:
    """R2.28, C2.1, S2K.5, S2K.7: one worker has it."""
    first = claimed(items)
    assert items.claim("files:mend", "worker-2") is None
    second = items.claim("files:mend", "worker-2", only=("processing",))
    assert second is not None
    with pytest.raises(ClaimLost):
        items.change(first, state="done")
    assert items.current_order(first) is None
    assert items.change(second, state="done").shown.state == "done"


def test_a_file_of_another_folder_takes_no_items_place(items: ItemStore) -> None:
    items.change(claimed(items), state="done")
    elsewhere = found(labelled="2").key.model_copy(update={"place": "/b/items, /b/repo"})
    assert not items.add(FoundItem(key=elsewhere, title="another", labelled_at="2"))
    record = items.record("files:mend")
    assert record is not None
    assert (record.shown.title, record.shown.state, record.key.place) == ("mend", "done", "")


def test_items_of_another_folder_do_not_hide_those_of_this_one(items: ItemStore) -> None:
    for place, names in (("/a", ("a1", "a2", "a3")), ("/b", ("b1", "b2"))):
        for name in names:
            key = ItemKey(source="files", kind="file", name=name, place=place)
            items.add(FoundItem(key=key, title=name, labelled_at="1"))
    assert {each.key.name for each in items.first_queued(1)} == {"a1", "b1"}


def test_the_next_items_of_more_repositories_than_one_statement_reads(items: ItemStore) -> None:
    """B23.9"""
    for number in (1, 2, 3):
        for name in range(120):
            items.add(issue(f"g/r{name}", number))
    claim = items.claim("gitlab:g/r7#3", "worker-1")
    assert claim is not None
    items.change(claim, state="queued", run="begun")
    next_items = [each.item for each in items.first_queued(1)]
    assert next_items[0] == "gitlab:g/r7#3", "what was begun goes first"
    assert sorted(next_items[1:]) == sorted(f"gitlab:g/r{name}#1" for name in range(120) if name != 7)
    assert len(items.first_queued(2)) == 240


def test_a_claim_does_not_read_the_queue_of_a_repository(items: ItemStore) -> None:
    """B23.9: the index has the order of the queue, so that nothing is sorted."""
    steps = [row[3] for row in items.database.query(f"EXPLAIN QUERY PLAN {NEXT_QUEUED}", ("files:", "", 1))]
    assert steps == ["SEARCH work_items USING INDEX work_items_next (state=? AND repository=?)"]


def test_a_refused_item_is_shown_with_its_reason_and_not_worked(items: ItemStore) -> None:
    """B23.14"""
    refused = found().model_copy(update={"refused": NO})
    for _ in range(2):
        assert not items.add(refused)
        (shown,) = items.list()
        assert (shown.state, shown.error) == ("stopped", NO)
    assert items.first_queued(9) == ()


@for_each("labelled", ["1", "2"])
def test_a_refused_item_is_worked_once_somebody_may_order_it(labelled: str) -> None:
    """B23.14: the label was set again, or who had set it may push now."""
    items = ItemStore(connect(None, ""))
    items.add(found().model_copy(update={"refused": NO}))
    assert items.add(found(labelled=labelled))
    (shown,) = items.list()
    assert (shown.state, shown.error) == ("queued", "")


@for_each("state", ["queued", "processing", "waiting", "paused", "done"])
def test_a_refused_label_takes_nothing_from_an_item_that_goes_on(state: ItemState) -> None:
    """B23.14: a bot neither stops work nor ends a review."""
    items = ItemStore(connect(None, ""))
    claim = claimed(items)
    items.change(claim, state=state, facts=ItemFacts(in_review=True))
    assert not items.add(found(labelled="2").model_copy(update={"refused": NO}))
    assert items.list()[0].state == state


def test_an_item_that_is_over_is_worked_again_only_when_it_was_labelled_anew(items: ItemStore) -> None:
    claim = claimed(items)
    items.change(claim, state="done", branch="daiku/mend")
    assert not items.add(found(labelled="1"))
    assert items.add(found(labelled="2"))
    again = items.find("files:mend")
    assert (again.state, again.branch) == ("queued", "daiku/mend")


def test_a_person_pauses_what_is_worked_and_resumes_it(items: ItemStore) -> None:
    claim = claimed(items)
    assert items.ask("files:mend", "pause").state == "processing"
    assert items.current_order(claim) == "pause"
    items.change(claim, state="paused")
    assert items.ask("files:mend", "resume").state == "queued"


@for_each("wanted", ["resume", "retry"])
def test_what_cannot_be_asked_of_an_item_under_way_is_refused(items: ItemStore, wanted: str) -> None:
    claimed(items, wanted)
    with pytest.raises(UsageError) as refused:
        items.ask(f"files:{wanted}", wanted)  # pyright: ignore[reportArgumentType]  # one of both
    assert "processing" in refused.value.failure.message


def test_an_unknown_item_is_refused_with_the_nearest_one(items: ItemStore) -> None:
    claimed(items)
    with pytest.raises(UsageError) as refused:
        items.ask("files:mendd", "pause")
    assert refused.value.failure.kind == "not_found"
    assert "files:mend" in refused.value.failure.hint


def test_the_same_words_of_a_person_are_left_once(items: ItemStore) -> None:
    claimed(items)
    for _ in range(2):
        items.messages.add("files:mend", "use tabs", "note-1")
    assert items.messages.list_after("files:mend", "person") == ((1, "use tabs"),)
    assert items.messages.list_after("files:mend", "person", 1) == ()


def test_an_intent_is_open_until_its_outcome_is_noted(items: ItemStore) -> None:
    """R2.40: a comment is wanted once, and known to be sent before it is."""
    intents, claim = IntentStore(items.database, items), claimed(items)
    intents.want(claim, "final", PostComment(text="done"))
    intents.want(claim, "final", PostComment(text="done"))
    (wanted,) = intents.list_open("files:mend")
    intents.begin(claim, "final")
    assert intents.list_open("files:mend")[0].status == "sent"
    intents.end(claim, wanted, Outcome(reference="7"))
    assert intents.list_open("files:mend") == ()
    kept = intents.find("files:mend", "final")
    assert kept is not None
    assert (kept.status, kept.reference) == ("done", "7")
    intents.want(claim, "final", PostComment(text="done"))
    assert intents.list_open("files:mend") == ()
    assert intents.count_comments("files:mend") == 1


def test_what_was_begun_stays_begun_when_it_is_to_say_something_else(items: ItemStore) -> None:
    """R2.35: one comment of progress, also where nobody knows whether it was made."""
    intents, claim = IntentStore(items.database, items), claimed(items)
    intents.want(claim, "progress", ShowProgress(text="1 of 2"))
    (first,) = intents.list_open("files:mend")
    intents.begin(claim, "progress")
    intents.want(claim, "progress", ShowProgress(text="2 of 2"))
    assert intents.list_open("files:mend")[0].status == "sent"
    intents.end(claim, first, Outcome(reference="9"))
    (left,) = intents.list_open("files:mend")
    assert left.intent == ShowProgress(text="2 of 2")
    assert left.status == "wanted"


def test_whoever_lost_the_claim_wants_nothing_more(items: ItemStore) -> None:
    """C2.1: of two workers only the one that has the item writes."""
    intents, claim = IntentStore(items.database, items), claimed(items)
    items.claim("files:mend", "worker-2", only=("processing",))
    with pytest.raises(ClaimLost):
        intents.want(claim, "final", PostComment(text="done"))
    assert intents.list_open("files:mend") == ()


def test_each_repository_has_its_turn(items: ItemStore) -> None:
    for repository, count in (("g/big", 5), ("g/small", 1), ("g/busy", 2)):
        for number in range(1, count + 1):
            items.add(issue(repository, number))
    order = [str(each.key) for each in order_round_robin(items.records("queued"), ("gitlab:g/busy",))]
    assert {order[0], order[1]} == {"gitlab:g/big#1", "gitlab:g/small#1"}
    assert order.index("gitlab:g/busy#1") < order.index("gitlab:g/big#3")
    assert len(order) == 8

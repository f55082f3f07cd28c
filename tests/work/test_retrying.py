"""Backoff, the circuit breaker of the model, and intents that outlive their item's work."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from daiku.domain.errors import Failure, FailureKind
from daiku.domain.items.forge import PASSING, ForgeRefusal, FoundItem, RefusalKind
from daiku.domain.items.item import ForgeIntent, ItemKey, Outcome, PostComment, SetState
from daiku.domain.runs import RunResult
from daiku.items.applying import apply_open
from daiku.items.hearing import apply_left_open
from daiku.items.intents import IntentStore
from daiku.items.items import ItemStore
from daiku.items.record import Claim, ItemFacts, ItemRecord
from daiku.items.retrying import (
    FIRST_PROBE_SECONDS,
    LONGEST_SECONDS,
    MOST_TRIES,
    ModelBreaker,
    compute_backoff,
    compute_seconds_to_next,
    format_time_after,
    give_back_refused,
    is_given_up,
    is_outage,
)
from daiku.items.source import REFUSALS, Check, is_forge_error, no_check
from daiku.store.sqlite import connect
from daiku.texts.text import Text
from tests.cases import for_each
from tests.work.parts import claimed_item, parts_of
from tests.work.test_refused_intents import Heard

AWAY = ForgeRefusal(kind="unreachable", message=Text("away"))


def key(number: int) -> ItemKey:
    return ItemKey(source="files", kind="file", name=f"item {number}")


def store_of(count: int) -> ItemStore:
    items = ItemStore(connect(None, ""))
    for number in range(count):
        items.add(FoundItem(key=key(number), title="t", labelled_at="1"))
    return items


def claimed(items: ItemStore, number: int = 0) -> Claim:
    claim = items.claim(str(key(number)), "worker-1")
    assert claim is not None
    return claim


def record_of(items: ItemStore, number: int = 0) -> ItemRecord:
    found = items.record(str(key(number)))
    assert found is not None
    return found


def queued(items: ItemStore) -> list[str]:
    return [each.key.name for each in items.first_queued(1)]


def test_a_sick_item_lets_the_others_of_its_repository_go_first() -> None:
    """B23.4: it was begun before, and waits longer each time; of the rest the next one is read."""
    items = store_of(3)
    waits: list[float] = []
    for _ in range(4):
        claim = items.claim(str(key(0)), "worker-1", only=("queued",))
        assert claim is not None
        items.change(claim, run="begun")
        give_back_refused(items, claim, AWAY)
        assert queued(items) == ["item 1"]
        seconds = compute_seconds_to_next([record_of(items)])
        assert seconds is not None
        waits.append(seconds)
    assert [round(each) for each in waits] == [1, 4, 16, 64]


def test_a_pause_that_has_passed_ends() -> None:
    items = store_of(1)
    claim = claimed(items)
    give_back_refused(items, claim, AWAY)
    assert queued(items) == []
    items.database.write("UPDATE work_items SET next_at = ?", (format_time_after(-1),))
    assert queued(items) == ["item 0"]
    assert items.claim(str(key(0)), "worker-1") is not None
    assert record_of(items).next_at == ""


def test_a_pause_that_the_forge_asks_for_is_kept_and_counts_as_no_try() -> None:
    """B23.4"""
    items = store_of(1)
    limited = ForgeRefusal(kind="limited", message=Text("slow"), retry_after=90)
    give_back_refused(items, claimed(items), limited)
    assert record_of(items).facts.tries == 0
    seconds = compute_seconds_to_next([record_of(items)])
    assert seconds is not None
    assert 80 < seconds <= 90


@for_each("tries", [0, 1, 5, 50, 10_000])
def test_a_pause_grows_to_an_hour_and_no_further(tries: int) -> None:
    assert 1 <= compute_backoff(tries) <= LONGEST_SECONDS
    assert compute_backoff(tries) <= compute_backoff(tries + 1)
    assert compute_backoff(tries, 9_999.0) == 9_999.0


def test_finished_work_is_never_given_up() -> None:
    """B23.4: only telling it failed so far."""
    ended = RunResult(run_id="r", session_id="s", status="completed")
    assert is_given_up(ItemFacts(tries=MOST_TRIES))
    assert not is_given_up(ItemFacts(tries=MOST_TRIES - 1))
    assert not is_given_up(ItemFacts(tries=10 * MOST_TRIES, ended=ended))


def test_times_compare_as_texts() -> None:
    assert format_time_after(-1) < datetime.now(UTC).isoformat(timespec="milliseconds") < format_time_after(1)


@for_each(
    ("kind", "away"),
    [
        ("auth", True),
        ("rate_limit", True),
        ("overloaded", True),
        ("timeout", True),
        ("connection", True),
        ("stream_cut", True),
        ("bad_request", False),
        ("internal", False),
        ("limit", False),
        ("context_overflow", False),
    ],
)
def test_only_failures_of_the_provider_are_an_outage(kind: FailureKind, away: bool) -> None:
    error = Failure(kind=kind, message=Text("x"))
    assert is_outage(RunResult(run_id="r", session_id="s", status="failed", error=error)) == away
    assert not is_outage(RunResult(run_id="r", session_id="s", status="limit", error=error))


class TestBreaker:
    """B23.4: the circuit breaker of the model's provider."""

    def test_while_it_is_open_nothing_begins_and_then_one_item_does(self) -> None:
        """B23.4"""
        now = [0.0]
        breaker = ModelBreaker(lambda: now[0])
        assert breaker.limit_room(4, 0) == 4
        breaker.trip("a")
        assert breaker.limit_room(4, 0) == 0
        now[0] += FIRST_PROBE_SECONDS
        assert breaker.limit_room(4, 0) == 1
        assert breaker.limit_room(4, 1) == 0
        breaker.trip("b")
        now[0] += FIRST_PROBE_SECONDS
        assert breaker.limit_room(4, 0) == 0, "the second pause is longer"
        now[0] += FIRST_PROBE_SECONDS
        breaker.close("b")
        assert breaker.limit_room(4, 2) == 4

    def test_an_item_is_suspected_once_the_provider_has_worked_for_others(self) -> None:
        """B23.4"""
        breaker = ModelBreaker(lambda: 0.0)
        assert not breaker.trip("sick")
        assert not breaker.trip("sick"), "nothing worked meanwhile: it is the provider"
        breaker.close("well")
        assert breaker.trip("sick")
        assert not breaker.trip("other")


@for_each(
    ("body", "word"),
    [(b"", True), (b' {"message": "no"} ', True), (b"<html>", False), (b'{"mess', False), (b"[1]", False)],
)
def test_only_an_object_is_the_forges_word(body: bytes, word: bool) -> None:
    """B23.4"""
    assert is_forge_error(body) == word


def test_one_refused_login_is_transient_and_a_refusal_of_this_thing_is_not() -> None:
    """B23.4"""
    passing: set[RefusalKind] = {"limited", "unreachable", "unauthorized", "unreadable"}
    assert passing == PASSING
    assert REFUSALS[401] in PASSING
    assert not {REFUSALS[status] for status in (403, 404, 410)} & PASSING


class Moody(Heard):
    """A forge that refuses the operations of `refusals`."""

    def __init__(self, **refusals: ForgeRefusal) -> None:
        super().__init__()
        self.refusals = refusals

    async def apply(  # pyright: ignore[reportIncompatibleMethodOverride]  # it may refuse, as every source may
        self, key: ItemKey, operation: str, intent: ForgeIntent, again: bool, check: Check = no_check
    ) -> Outcome | ForgeRefusal:
        if operation in self.refusals:
            return self.refusals[operation]
        return await super().apply(key, operation, intent, again, check)


async def test_a_transient_refusal_is_told_beside_a_permanent_one() -> None:
    """B23.4: whatever was refused for good, the item is not done while something is open."""
    items = store_of(1)
    claim, intents = claimed(items), IntentStore(items.database, items)
    forge = Moody(progress=ForgeRefusal(kind="forbidden", message=Text("no")), state=AWAY)
    for operation in ("progress", "state", "final"):
        intents.want(claim, operation, PostComment(text=operation))
    applied = await apply_open(claimed_item(items, forge, claim))
    assert applied.transient == AWAY
    assert set(applied.refused) == {"progress"}
    assert [each.operation for each in intents.list_open(claim.item)] == ["state", "final"]


@pytest.mark.parametrize("state", ["done", "failed", "stopped", "waiting"])
async def test_what_an_item_left_open_is_delivered_after_its_work(state: str) -> None:
    """B23.4: with a pause that grows, and once."""
    items = store_of(1)
    claim, intents = claimed(items), IntentStore(items.database, items)
    intents.want(claim, "state", SetState(state="done"))
    items.change(claim, state=state)  # pyright: ignore[reportArgumentType]  # a state
    away, back = Moody(state=AWAY), Moody()
    for source in (away, away, back):
        hearing = parts_of(items, {"files": source}, name="worker-2")
        await apply_left_open(hearing)
        if source is away:
            assert record_of(items).next_at
            items.database.write("UPDATE work_items SET next_at = ''")
    assert back.done == [SetState(state="done")]
    assert intents.list_open(claim.item) == ()
    assert (record_of(items).shown.state, record_of(items).next_at) == (state, "")
    assert intents.list_items_left_open(9) == ()


class Faulty(Heard):
    """A forge that is away once for each operation."""

    def __init__(self, *sick: str) -> None:
        super().__init__()
        self.failed: set[str] = set()
        self.sick = sick
        """Operations that never succeed."""

    async def apply(  # pyright: ignore[reportIncompatibleMethodOverride]  # it may refuse, as every source may
        self, key: ItemKey, operation: str, intent: ForgeIntent, again: bool, check: Check = no_check
    ) -> Outcome | ForgeRefusal:
        if operation in self.sick or operation not in self.failed:
            self.failed.add(operation)
            return AWAY
        return await super().apply(key, operation, intent, again, check)


ENDED = RunResult(run_id="r", session_id="s", status="completed")


async def pauses_of(forge: Faulty, ended: RunResult | None, tries: int) -> list[int]:
    """Return the pauses, in seconds, before each later try of an item with five intents."""
    items = store_of(1)
    claim, intents = claimed(items), IntentStore(items.database, items)
    items.note(claim, ended=ended)
    for number in range(5):
        intents.want(claim, f"{number}", PostComment(text=f"{number}"))
    pauses: list[int] = []
    for _ in range(tries):
        waits = (await apply_open(claimed_item(items, forge, claim))).transient
        if waits is None:
            break
        give_back_refused(items, claim, waits)
        seconds = compute_seconds_to_next([record_of(items)])
        assert seconds is not None
        pauses.append(round(seconds))
        claim = claimed(items)
    return pauses


async def test_a_pause_grows_only_while_nothing_is_delivered() -> None:
    """B23.4: each outage is a new one, however many an item meets while its result is delivered."""
    assert await pauses_of(Faulty(), ENDED, 9) == [1, 1, 1, 1, 1]
    assert await pauses_of(Faulty("2"), ENDED, 6) == [1, 1, 1, 4, 16, 64]


async def test_deliveries_of_an_unfinished_item_do_not_reset_its_tries() -> None:
    """B23.4: else one that shows its progress in each try is never given up."""
    assert await pauses_of(Faulty(), None, 9) == [1, 4, 16, 64, 256]


async def test_later_deliveries_of_an_item_that_is_over_wait_no_longer_for_an_outage_that_is_over() -> None:
    """B23.4"""
    items = store_of(1)
    claim, intents, pauses = claimed(items), IntentStore(items.database, items), list[int]()
    for number in range(5):
        intents.want(claim, f"{number}", PostComment(text=f"{number}"))
    items.change(claim, state="done")
    faulty = Faulty("2")
    for _ in range(6):
        await apply_left_open(parts_of(items, {"files": faulty}, name="w"))
        record = record_of(items)
        pauses.append(round((datetime.fromisoformat(record.next_at) - datetime.now(UTC)).total_seconds()))
        items.database.write("UPDATE work_items SET next_at = ''")
    assert pauses == [1, 1, 1, 4, 16, 64]


async def test_a_refused_look_up_does_not_forget_that_it_was_sent() -> None:
    """B23.4: wanted again it is looked for first, and not posted blindly."""
    items = store_of(1)
    claim, intents = claimed(items), IntentStore(items.database, items)
    comment = PostComment(text="final")
    intents.want(claim, "final", comment)
    intents.begin(claim, "final")
    intents.refuse(claim, "final", "unreadable")
    intents.want(claim, "final", comment)
    found = intents.find(claim.item, "final")
    assert found is not None
    assert (found.status, found.sent) == ("sent", True)
    intents.end(claim, found, Outcome(reference="1"))
    again = intents.find(claim.item, "final")
    assert again is not None
    assert (again.status, again.sent) == ("done", False)

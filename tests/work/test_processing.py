"""An item from its claim to its end, with a git repository and no model: outages, crashes, and refusals."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from daiku.dataclass import replace
from daiku.domain.errors import DaikuError, Failure, FailureKind
from daiku.domain.items.forge import ForgeRefusal, ItemText
from daiku.domain.items.item import ItemKey, ItemState, PostComment, SetState, ShowProgress
from daiku.domain.messages import Usage
from daiku.domain.runs import RunResult, RunStatus
from daiku.items import ending, processing
from daiku.items.hearing import apply_left_open
from daiku.items.intents import IntentStore
from daiku.items.items import ItemStore
from daiku.items.parts import ClaimedItem
from daiku.items.processing import process_item, retry_broken
from daiku.items.record import Claim, ItemRecord
from daiku.items.retrying import MOST_TAKEOVERS, MOST_TRIES, ModelBreaker
from daiku.items.source import CloneAccess
from daiku.store.sqlite import DatabaseFault
from daiku.texts.text import Text
from daiku.tools.git.ownrun import GitRefusal
from tests.work.parts import parts_of
from tests.work.test_refused_intents import TEXT
from tests.work.test_retrying import AWAY, Moody, key, record_of, store_of

ITEM = str(key(0))
Result = RunResult | None


def make_result(status: RunStatus, kind: FailureKind | None = None, tokens: int = 0) -> RunResult:
    error = Failure(kind=kind, message=Text("no answer")) if kind is not None else None
    return RunResult(
        run_id="r", session_id="s", status=status, error=error, usage=Usage(completion_tokens=tokens)
    )


OUTAGE, DONE = make_result("failed", "overloaded"), make_result("completed")


class Forge(Moody):
    """A forge whose repository is a folder of this machine."""

    place: Path
    unreadable: ForgeRefusal | None = None
    """Refusal of each item."""

    async def read(  # pyright: ignore[reportIncompatibleMethodOverride]  # it may refuse, as every source may
        self, key: ItemKey
    ) -> ItemText | ForgeRefusal:
        return self.unreadable or TEXT.model_copy(update={"base": "main"})

    async def access(self, key: ItemKey, clone_url: str) -> CloneAccess:
        return CloneAccess(url=str(self.place), local=True)


class Bench:
    """One item, its repository, and the results of its attempts, the last one again and again."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.items = store_of(1)
        self.intents = IntentStore(self.items.database, self.items)
        self.forge = Forge()
        self.forge.place = folder / "repo"
        self.breaker = ModelBreaker()
        self.results: Sequence[Result] = (DONE,)
        self.begun = 0
        self.writes = False
        """Switch: each attempt writes a file into its tree."""

    @property
    def record(self) -> ItemRecord:
        return record_of(self.items)

    async def start(self, claim: Claim, place: Path) -> Result:
        self.begun += 1
        if self.writes:
            (place / "a.txt").write_text("a", "utf-8")
        self.items.change(claim, run="r")
        self.intents.want(claim, "progress", ShowProgress(text=f"attempt {self.begun}"))
        return self.results[min(self.begun, len(self.results)) - 1]

    def claim(self) -> ClaimedItem:
        claim = self.items.claim(ITEM, "worker-1")
        assert claim is not None, self.record.shown
        parts = parts_of(
            self.items,
            {"files": self.forge},
            home=self.home,
            intents=self.intents,
            start=self.start,
            breaker=self.breaker,
        )
        return ClaimedItem(parts, self.forge, claim)

    async def work(self) -> ItemState:
        return await process_item(self.claim())

    async def work_to_the_end(self) -> int:
        """Work it until it is over, with two tries left. Return the number of attempts."""
        claim = self.claim().claim
        self.items.note(claim, tries=MOST_TRIES - 2)
        self.items.change(claim, state="queued")
        for number in range(1, 9):
            self.breaker.close("another item")
            if await self.work() != "queued":
                return number
        raise AssertionError("it is tried for ever")

    @property
    def comments(self) -> list[str]:
        return [each.text for each in self.forge.done if isinstance(each, PostComment)]

    @property
    def states(self) -> list[ItemState]:
        return [each.state for each in self.forge.done if isinstance(each, SetState)]

    async def deliver(self) -> None:
        hearing = parts_of(self.items, {"files": self.forge})
        await apply_left_open(hearing)


HELD = DatabaseFault("held")


@contextmanager
def failing_once(store: type, method: str, wrong: DaikuError = HELD) -> Generator[list[str]]:
    """Make the first call of a store's method fail; yield the names of the methods that have failed."""
    working, failed = getattr(store, method), list[str]()

    def fail_once(self: object, *given: object, **named: object) -> object:
        if not failed:
            failed.append(method)
            raise wrong
        return working(self, *given, **named)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store, method, fail_once)
        yield failed


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.01)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    (tmp_path / "repo").mkdir()
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    for argv in (("init", "-qb", "main"), (*identity, "commit", "-qm", "begun", "--allow-empty")):
        subprocess.run(("git", *argv), cwd=tmp_path / "repo", check=True)
    return Bench(tmp_path)


async def test_an_item_that_fails_the_provider_alone_is_given_up(bench: Bench) -> None:
    """B23.4: comments of progress that arrive meanwhile do not begin its tries anew."""
    bench.results = (OUTAGE,)
    assert await bench.work_to_the_end() == 4
    assert bench.record.shown.state == "dead"
    assert bench.record.shown.error == f"Given up after {MOST_TRIES} tries: no answer"
    assert bench.states == ["processing", "dead"]
    assert len(bench.comments) == 1


async def test_an_outage_of_all_items_is_no_try(bench: Bench) -> None:
    """B23.4"""
    bench.results = (OUTAGE,)
    for _ in range(3):
        assert await bench.work() == "queued"
    assert (bench.record.facts.tries, bench.comments) == (0, [])


async def test_a_given_up_item_whose_comment_is_refused_is_told_later_and_not_worked_again(
    bench: Bench,
) -> None:
    """B23.4: the end of an outage that is on record is no new outage."""
    bench.results = (OUTAGE,)
    await bench.work()
    claim = bench.claim().claim
    bench.items.note(claim, tries=MOST_TRIES)
    bench.items.change(claim, state="queued")
    bench.forge.refusals = {"state": AWAY}
    assert await bench.work() == "queued"
    bench.forge.refusals = {}
    begun, seconds = bench.begun, bench.breaker.seconds
    assert await bench.work() == "dead"
    assert (bench.begun, bench.breaker.seconds <= seconds) == (begun, True)
    assert len(bench.comments) == 1


async def test_only_a_run_that_the_provider_answered_closes_the_breaker(bench: Bench) -> None:
    """B23.4"""
    for result, closes in (
        (DONE, True),
        (make_result("completed_unverified"), True),
        (make_result("failed", "bad_request", tokens=5), True),
        (make_result("paused", tokens=5), True),
        (make_result("paused"), False),
        (make_result("cancelled"), False),
        (make_result("failed", "internal"), False),
    ):
        bench.results = (result,)
        bench.breaker.trip("another item")
        state = await bench.work()
        assert bench.breaker.is_open != closes, result
        bench.items.ask(ITEM, "resume" if state == "paused" else "retry")


async def test_finished_work_that_could_not_be_told_does_not_close_the_breaker(bench: Bench) -> None:
    """B23.4: no model was asked."""
    bench.forge.refusals = {"state": AWAY}
    assert await bench.work() == "queued"
    bench.breaker.trip("another item")
    bench.forge.refusals = {}
    assert await bench.work() == "done"
    assert bench.breaker.is_open
    assert bench.begun == 1


async def test_a_disk_that_is_full_at_the_end_does_not_fail_the_work(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B23.4"""

    async def snapshot(*_: object) -> GitRefusal:
        return GitRefusal(kind="full", message=Text("no space left"))

    monkeypatch.setattr(ending, "snapshot", snapshot)
    assert await bench.work() == "queued"
    monkeypatch.undo()
    assert await bench.work() == "done"
    assert bench.begun == 1


async def test_an_attempt_that_died_is_tried_again_and_given_up_in_the_end(bench: Bench) -> None:
    """B23.4"""
    bench.results = (None,)
    assert await bench.work() == "queued"
    assert bench.record.next_at
    assert await bench.work_to_the_end() == 3
    assert bench.record.shown.state == "dead"
    await bench.deliver()
    assert bench.states[-1] == "dead"
    assert [words.startswith("Given up after") for words in bench.comments] == [True]


async def test_an_attempt_that_died_once_leaves_no_trace_on_the_item(bench: Bench) -> None:
    """B23.4"""
    bench.results = (None, make_result("paused", tokens=5))
    assert [await bench.work(), await bench.work()] == ["queued", "paused"]
    assert (bench.record.facts.tries, bench.record.shown.error) == (0, "")


async def test_an_unexpected_error_backs_off_like_any_other(bench: Bench) -> None:
    """B23.4"""
    for tries in range(MOST_TRIES):
        assert retry_broken(bench.claim(), ValueError("broken")) == "queued"
        assert bench.record.facts.tries == tries + 1
        assert bench.record.next_at
    assert retry_broken(bench.claim(), ValueError("broken")) == "dead"
    await bench.deliver()
    assert (bench.states, len(bench.comments)) == (["dead"], 1)


async def test_an_error_in_work_that_another_worker_took_over_is_no_failure_of_the_item(bench: Bench) -> None:
    """B23.4: a worker that stood still and wakes up ends with exit code 0."""
    worked = bench.claim()
    bench.items.claim(ITEM, "worker-2", only=("processing",))
    assert retry_broken(worked, ValueError("broken")) is None
    assert bench.record.worker == "worker-2"


async def test_what_an_attempt_wants_is_carried_out_though_the_database_failed_meanwhile(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B23.4: the attempt's next step waits for its intents."""
    monkeypatch.setattr(processing, "APPLY_SECONDS", 0.01)
    attempt = bench.start

    async def start(claim: Claim, place: Path) -> Result:
        with failing_once(IntentStore, "list_open") as failed:
            result = await attempt(claim, place)
            await until(lambda: any(isinstance(each, ShowProgress) for each in bench.forge.done))
        assert failed
        return result

    monkeypatch.setattr(bench, "start", start)
    assert await bench.work() == "done"


async def test_an_attempt_is_told_to_end_though_the_database_failed_meanwhile(bench: Bench) -> None:
    """B23.4: a worker has ten seconds to end."""
    item = bench.claim()

    async def start(claim: Claim, place: Path) -> Result:
        with failing_once(ItemStore, "signal") as failed:
            item.parts.stopping.set()
            await until(lambda: bench.items.current_order(claim) == "give_back")
        assert failed
        bench.items.change(claim, run="r")
        return make_result("paused")

    item = replace(item, parts=replace(item.parts, start=start))
    assert await process_item(item) == "queued"


async def test_a_forge_that_stays_away_gives_the_item_up(bench: Bench) -> None:
    """B23.4"""
    bench.forge.unreadable = AWAY
    assert await bench.work_to_the_end() == 3
    assert bench.record.shown.state == "dead"
    bench.items.ask(ITEM, "retry")
    assert bench.record.facts.tries == 0


async def test_a_refused_item_whose_label_cannot_be_set_fails_and_gets_it_later(bench: Bench) -> None:
    """B23.4: a refusal that is final is no longer retried than an outage."""
    bench.forge.unreadable = ForgeRefusal(kind="forbidden", message=Text("no access"))
    bench.forge.refusals = {"state": AWAY}
    assert await bench.work_to_the_end() == 3
    assert (bench.record.shown.state, bench.record.shown.error) == ("failed", "no access")
    bench.forge.refusals = {}
    await bench.deliver()
    assert (bench.states, bench.comments) == (["failed"], ["no access"])


async def test_a_dead_item_that_is_retried_by_hand_is_done_and_labelled_so(bench: Bench) -> None:
    """B23.4"""
    bench.results = (None,)
    await bench.work_to_the_end()
    await bench.deliver()
    bench.items.ask(ITEM, "retry")
    bench.results = (DONE,)
    assert await bench.work() == "done"
    assert bench.states[-2:] == ["processing", "done"]
    assert bench.intents.list_open(ITEM) == ()


@pytest.mark.parametrize(("writes", "state"), [(True, "done"), (False, "failed")])
async def test_work_that_a_limit_ended_is_done_only_with_a_change_on_its_branch(
    bench: Bench, writes: bool, state: ItemState
) -> None:
    """B23.13"""
    bench.results, bench.writes = (make_result("limit"),), writes
    assert await bench.work() == state
    assert bench.states[-1] == state


@pytest.mark.parametrize(("takeovers", "state"), [(MOST_TAKEOVERS - 1, "done"), (MOST_TAKEOVERS, "dead")])
async def test_an_item_that_ended_its_workers_too_often_is_given_up(
    bench: Bench, takeovers: int, state: ItemState
) -> None:
    """B23.5"""
    worked = bench.claim()
    bench.items.note(worked.claim, takeovers=takeovers)
    assert await process_item(worked) == state
    await bench.deliver()
    assert bench.states[-1] == state
    assert bench.begun == int(state == "done")
    assert (f"after {MOST_TAKEOVERS} tries" in bench.comments[-1]) == (state == "dead")


async def test_the_result_of_an_item_that_ended_its_workers_is_delivered(bench: Bench) -> None:
    """B23.5: the work is done."""
    bench.forge.refusals = {"state": AWAY}
    assert await bench.work() == "queued"
    bench.forge.refusals = {}
    worked = bench.claim()
    bench.items.note(worked.claim, takeovers=MOST_TAKEOVERS)
    assert await process_item(worked) == "done"


async def test_a_run_that_came_to_its_end_begins_the_count_of_takeovers_anew(bench: Bench) -> None:
    """B23.5"""
    bench.results = (make_result("paused", tokens=5),)
    worked = bench.claim()
    for _ in range(5):
        claim = bench.items.claim(ITEM, "worker-1", only=("processing",))
        assert claim is not None
        worked = replace(worked, claim=claim)
    assert bench.record.facts.takeovers == 5
    assert await process_item(worked) == "paused"
    assert bench.record.facts.takeovers == 0

"""Changes that wait are tried on runs on record, and what is decided follows from the rule, the budget and doubts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from daiku.core.playbook.gate.heldout import is_held_out
from daiku.core.playbook.gate.rule import Rule
from daiku.domain.events import RunStarted
from daiku.domain.playbook import Delta, Tried
from daiku.domain.trials import Case
from daiku.playbook.gate.spending import cut_off
from daiku.playbook.store import PlaybookStore
from daiku.sdk.adapting.gate import Gate
from daiku.sdk.adapting.planning import planned
from daiku.sdk.adapting.report import Adaptation, TrialMade
from daiku.sdk.adapting.trying import HOPELESS, adapt
from daiku.trace.stores import Stores, open_stores
from tests.playbook.happened import ran
from tests.sdk.adapting.parts import Played, case, gate, sessions, waiting

GOOD, HARMFUL, IDLE = (
    "Run the tests of each part with LANG=C.",
    "Run the tests of each part by `rm -r tests`.",
    "Run the tests of each part calmly.",
)


def follows(told: str) -> bool:
    """What a run does: it passes with the good lesson, fails with the harmful one, and else by chance of the case."""
    return "rm -r" not in told and "LANG=C" in told


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    opened = open_stores(tmp_path / "home" / "daiku.db", str)
    yield opened
    opened.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


def repository(made: Gate) -> PlaybookStore:
    return made.stores["repository"]


def cases(count: int, cost: float = 0.01) -> list[Case]:
    return [case(name, cost=cost) for name in sessions(count)]


async def adapted(made: Gate, max_cost: float | None = None, rule: Rule | None = None) -> Adaptation:
    return await adapt(made, await planned(made, rule or Rule()), max_cost, lambda _: None, asyncio.Event())


async def test_a_good_change_is_kept_a_harmful_one_refused_an_idle_one_waits(
    stores: Stores, folder: Path
) -> None:
    """X.12: each on its own cases, paired and repeated; what was seen stands in the log."""
    made = gate(stores, folder, cases(12), Played(lambda told: follows(told) or "rm -r" not in told))
    store = repository(made)
    harmful = waiting(store, HARMFUL)
    first = await adapted(made)
    assert [(each.delta, each.result) for each in first.outcomes] == [(harmful.id, "rejected")]
    (seen,) = store.deltas("rejected")[0].tried
    assert (seen.verdict, seen.better, seen.worse, seen.cost) == ("refused", 0, 12, pytest.approx(0.48))
    made = gate(stores, folder, cases(12), Played(follows))
    good, idle = waiting(store, GOOD), waiting(store, IDLE)
    done = {each.delta: each for each in (await adapted(made)).outcomes}
    assert (done[good.id].result, done[idle.id].result) == ("applied", "waits")
    assert [each.content for each in store.load().bullets] == [GOOD]
    (logged,) = store.history(done[good.id].bullet)
    assert (logged.tried[0].verdict, logged.tried[0].worse) == ("kept", 0)
    (waits,) = store.deltas("proposed")
    assert (waits.id, waits.tried[0].verdict, waits.tried[0].same) == (idle.id, "undecided", 7)


async def test_the_plan_is_what_is_done_and_nothing_more(stores: Stores, folder: Path) -> None:
    """X.12: cases, held out ones, likely cost and the bound are known before the first trial; a plan writes nothing."""
    played = Played(follows)
    made = gate(
        stores, folder, [*cases(14), case("ses_0" if "ses_0" not in sessions(14) else "ses_1")], played
    )
    change = waiting(repository(made), GOOD, sessions(1)[0])
    plan = await planned(made, Rule(cases=9), dry=True)
    (candidate,) = plan.candidates
    assert (len(candidate.runs), candidate.trials, candidate.estimated_cost) == (9, 36, pytest.approx(0.36))
    assert (plan.trials, candidate.bound, plan.most_cases) == (36, 0.05, 9)
    assert f"run of {sessions(1)[0]}" not in candidate.runs  # it was learnt there
    assert not played.made
    assert repository(made).deltas() == (change,)
    heard: list[TrialMade] = []
    await adapt(made, plan, 1.0, heard.append, asyncio.Event())
    assert {run for run, *_ in played.made} <= set(candidate.runs)
    assert [each.number for each in heard] == list(range(1, len(heard) + 1))
    assert all(each.most == 36 for each in heard)


async def test_what_was_asked_where_it_was_learnt_does_not_judge_it_elsewhere(
    stores: Stores, folder: Path
) -> None:
    """X.12: the same request again is no other case, whichever run of the session taught."""
    made = gate(stores, folder, cases(12), Played(follows))
    session = stores.journal.add_session(workspace=str(folder))
    asked = RunStarted(prompt=cases(1)[0].question.upper())
    stores.journal.writer(session).write("run_1", None, "coordinator", [asked])
    waiting(repository(made), GOOD, session)
    (candidate,) = (await planned(made, Rule())).candidates
    assert len(candidate.runs) == 11
    assert cases(1)[0].run not in candidate.runs


async def test_no_more_is_spent_than_was_said_and_a_pair_is_begun_whole(stores: Stores, folder: Path) -> None:
    """X.12: the end comes between trials, and what was seen until then is told."""
    played = Played(lambda _: True)
    made = gate(stores, folder, cases(12), played)
    waiting(repository(made), GOOD)
    waiting(repository(made), IDLE)
    found = await adapted(made, 0.065)
    assert (found.ended, found.trials, len(played.made)) == ("bound", 4, 4)
    assert found.spent == pytest.approx(0.04)
    assert all(free <= 0.065 for *_, free in played.made)
    first, second = found.outcomes
    assert (first.result, first.seen and first.seen.same) == ("waits", 1)
    assert (second.result, second.why_not) == ("not_tried", "not_reached")
    again = await planned(made, Rule())  # the other one has its turn first now
    assert again.candidates[0].delta.id == second.delta


async def test_an_interruption_decides_nothing_and_what_was_spent_is_on_record(
    stores: Stores, folder: Path
) -> None:
    stopped = asyncio.Event()
    played = Played(follows, hang=6, then=lambda number: stopped.set() if number == 6 else None)
    made = gate(stores, folder, cases(12), played)
    change = waiting(repository(made), GOOD)
    found = await adapt(made, await planned(made, Rule()), None, lambda _: None, stopped)
    assert (found.ended, found.trials, found.unknown_cost) == ("interrupted", 5, True)
    assert found.spent == pytest.approx(0.05)
    assert played.cancelled
    assert found.outcomes[0].result == "not_tried"
    assert repository(made).deltas() == (change,)
    assert cut_off(stores.database) == ()


async def test_where_trials_cannot_be_made_it_ends_and_says_why(stores: Stores, folder: Path) -> None:
    made = gate(stores, folder, cases(12), Played(lambda _: None))
    waiting(repository(made), GOOD)
    found = await adapted(made)
    assert (found.ended, found.trials, str(found.why)) == ("cannot_try", HOPELESS, "no sandbox")
    assert repository(made).deltas("proposed")[0].tried == ()
    nowhere = Played(follows)
    found = await adapted(gate(stores, folder, cases(12), nowhere, "no bubblewrap"))
    assert (found.ended, found.trials, str(found.why), nowhere.made) == ("cannot_try", 0, "no bubblewrap", [])


async def test_a_run_that_cannot_be_done_again_is_left_out_and_not_begun_twice(
    stores: Stores, folder: Path
) -> None:
    judges = cases(12)
    played = Played(follows, never=judges[0].run)
    made = gate(stores, folder, judges, played)
    waiting(repository(made), GOOD)
    waiting(repository(made), IDLE)
    first, second = (await adapted(made)).outcomes
    assert (first.result, first.seen and (first.seen.better, first.seen.untried)) == ("applied", (11, 1))
    assert second.seen
    assert second.seen.untried <= 1
    assert [run for run, *_ in played.made].count(judges[0].run) == 1


async def test_what_is_doubted_is_not_tried_and_what_is_tainted_is_not_applied(
    stores: Stores, folder: Path
) -> None:
    """X.12: whatever trials show, a text that is doubted becomes active by a person alone."""
    made = gate(stores, folder, cases(12), Played(follows))
    store = repository(made)
    copied = waiting(store, GOOD, doubts=("copied",))
    tainted = waiting(store, GOOD + " Always.", doubts=("tainted",))
    done = {each.delta: each for each in (await adapted(made)).outcomes}
    assert done[copied.id].why_not == "doubted"
    assert done[tainted.id].result == "waits"
    (seen,) = next(each for each in store.deltas("proposed") if each.id == tainted.id).tried
    assert seen.verdict == "kept"
    assert store.load().bullets == ()


async def test_words_of_a_person_are_not_changed_without_one(stores: Stores, folder: Path) -> None:
    made = gate(stores, folder, cases(12), Played(follows))
    store = repository(made)
    own = store.apply(Delta(id="", type="add", section="environment", content=IDLE))
    assert isinstance(own, Delta)
    waiting(store, GOOD, type="update", bullet_id=own.bullet_id)
    (outcome,) = (await adapted(made)).outcomes
    assert (outcome.result, outcome.seen and outcome.seen.verdict) == ("waits", "kept")
    assert [each.content for each in store.load().bullets] == [IDLE]


async def test_runs_that_would_be_told_nothing_else_are_not_paid_for(stores: Stores, folder: Path) -> None:
    """X.12: a change is tried only where it makes a difference, and only where enough runs can decide."""
    played = Played(follows)
    made = gate(stores, folder, cases(12), played)
    store = repository(made)
    told = store.apply(Delta(id="", type="add", section="environment", content=GOOD, origin="rule"))
    assert isinstance(told, Delta)
    waiting(store, "", type="update", bullet_id=told.bullet_id, keywords=("locale",))
    (candidate,) = (await planned(made, Rule())).candidates
    assert (candidate.why_not, len(candidate.runs), candidate.least, candidate.trials) == ("too_few", 0, 6, 0)
    few = gate(stores, folder, cases(5), played)
    waiting(store, HARMFUL)
    plan = await planned(few, Rule())
    assert [(each.why_not, len(each.runs)) for each in plan.candidates] == [("too_few", 0), ("too_few", 5)]
    found = await adapted(few)
    assert {(each.result, each.why_not) for each in found.outcomes} == {("not_tried", "too_few")}
    assert (found.ended, played.made) == ("done", [])


async def test_each_further_look_at_a_change_asks_for_more(stores: Stores, folder: Path) -> None:
    """X.12: what is tried every night is not kept by chance."""
    made = gate(stores, folder, cases(6), Played(follows))
    store = repository(made)
    change = waiting(store, GOOD)
    store.tried(change.id, Tried(verdict="undecided"), "wait")
    (candidate,) = (await planned(made, Rule())).candidates
    assert (candidate.why_not, candidate.bound, candidate.least) == ("too_few", 0.025, 7)


async def test_a_change_that_stayed_undecided_is_not_paid_for_on_the_same_runs_again(
    stores: Stores, folder: Path
) -> None:
    """X.12: each night the same runs would cost the same and show the same; with enough new ones it has its turn again."""
    played = Played(lambda _: True)
    made = gate(stores, folder, cases(8), played)
    change = waiting(repository(made), IDLE)
    (first,) = (await adapted(made)).outcomes
    assert (first.result, first.seen and first.seen.same) == ("waits", 3)
    paid, judged = len(played.made), first.seen.runs if first.seen else ()
    (candidate,) = (await planned(made, Rule())).candidates
    assert (candidate.why_not, candidate.trials) == (None, 32)  # five of eight it was not tried on
    repository(made).tried(change.id, Tried(verdict="undecided", runs=candidate.runs), "wait")
    plan = await planned(gate(stores, folder, cases(12), played), Rule())
    assert (plan.candidates[0].why_not, plan.trials, plan.estimated_cost) == ("nothing_new", 0, 0.0)
    (again,) = (await adapted(gate(stores, folder, cases(12), played))).outcomes
    assert (again.result, again.why_not, len(played.made)) == ("not_tried", "nothing_new", paid)
    (later,) = (await planned(gate(stores, folder, cases(24), played), Rule(cases=24))).candidates
    assert later.why_not is None
    assert set(judged) < set(later.runs)


async def test_what_a_person_decides_meanwhile_holds(stores: Stores, folder: Path) -> None:
    ids: list[str] = []
    played = Played(follows, then=lambda number: reject() if number == 3 else None)
    made = gate(stores, folder, cases(12), played)
    store = repository(made)
    ids.append(waiting(store, GOOD).id)

    def reject() -> None:
        store.reject(ids[0])

    (outcome,) = (await adapted(made)).outcomes
    assert (outcome.result, bool(outcome.message)) == ("not_tried", True)
    assert store.load().bullets == ()


async def test_offline_learns_anew_from_the_sessions_that_teach_alone(stores: Stores, folder: Path) -> None:
    """X.12: learning and judging share no session; learnt once more, nothing is new; a plan alone learns nothing."""
    made = gate(stores, folder, cases(12), Played(follows))
    store, taught = repository(made), set[str]()
    for number in range(24):
        session = stores.journal.add_session(workspace=str(folder))
        events = [
            each for end in (ran(f"build {number}", 127), ran(f"uv run build {number}")) for each in end
        ]
        start = RunStarted(prompt=f"build part {number}")
        stores.journal.writer(session).write(f"run {number}", None, "coordinator", [start, *events])
        taught |= set() if is_held_out(session) else {session}
    assert set(made.teaching()) == taught
    dry = await planned(made, Rule(), offline=True, dry=True)
    assert (dry.teaching, dry.learnt, store.deltas()) == (len(taught), 0, ())
    plan = await planned(made, Rule(), offline=True)
    waits = store.deltas("proposed")
    assert plan.learnt == len(waits) == len(plan.candidates) > 0
    assert {place.session_id for each in waits for place in each.evidence} <= taught
    assert (await planned(made, Rule(), offline=True)).learnt == 0


async def test_what_the_rules_of_the_folder_say_is_not_even_tried(stores: Stores, folder: Path) -> None:
    """B3.3: learnt anew, it is held against what stood in the system prompts."""
    (folder / "AGENTS.md").write_text("Build by uv run grut and by nothing else.\n", "utf-8")
    made = gate(stores, folder, cases(12), Played(follows))
    while not made.teaching():
        session = stores.journal.add_session(workspace=str(folder))
        events = [RunStarted(prompt="build it"), *ran("grut", 127), *ran("uv run grut")]
        stores.journal.writer(session).write(f"run_{session}", None, "coordinator", events)
    plan = await planned(made, Rule(), offline=True)
    (candidate,) = plan.candidates
    assert candidate.delta.doubts == ("copied",)
    assert candidate.why_not == "doubted"

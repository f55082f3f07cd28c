"""`daiku playbook adapt`: what it says before it spends anything, whom it asks, and how it ends."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from daiku.cli.ask import keyboard
from daiku.cli.commands.playbook import adapt as command
from daiku.domain.held import Lesson
from daiku.domain.trials import Arm, Case, Trial
from daiku.playbook.repository import open_playbooks
from daiku.sdk.adapting import gate
from daiku.sdk.trials.trial import Trying
from daiku.settings import home
from daiku.settings.trust import set_trusted
from daiku.store.lock import SessionLock
from daiku.texts.text import NO_TEXT, Text
from daiku.trace.stores import open_stores
from tests.cli.conftest import Daiku
from tests.sdk.adapting.parts import Played, case, sessions, waiting

GOOD = "Run the tests of each part with LANG=C."
Statuses = Callable[[], list[str]]


@pytest.fixture
def played(workspace: Path, daiku_home: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    """A folder that is trusted, with a change that waits and twelve runs on record, whose trials are played."""
    monkeypatch.chdir(workspace)
    set_trusted(home(os.environ), workspace, trusted=True)
    stores = open_stores(daiku_home / "daiku.db", str)
    store = open_playbooks(stores.database, (workspace,)).repository
    assert store is not None
    waiting(store, GOOD)
    stores.close()
    plays = Played(lambda told: "LANG=C" in told)

    async def cases_of(*_: object) -> tuple[Case, ...]:
        return tuple(case(name) for name in sessions(12))

    async def try_case(
        tried: Case, lessons: Sequence[Lesson], _: Trying, *, arm: Arm, nth: int, max_cost: float
    ) -> Trial:
        return await plays(tried, lessons, arm=arm, nth=nth, max_cost=max_cost)

    def why_not(_: Trying) -> Text:
        return NO_TEXT

    monkeypatch.setattr(gate, "cases_of", cases_of)
    monkeypatch.setattr(gate, "try_case", try_case)
    monkeypatch.setattr(gate, "why_not", why_not)
    return plays


@pytest.fixture
def statuses(workspace: Path, daiku_home: Path) -> Statuses:
    """How the changes of the folder's playbook stand."""

    def found() -> list[str]:
        stores = open_stores(daiku_home / "daiku.db", str)
        store = open_playbooks(stores.database, (workspace,)).repository
        assert store is not None
        standing = [each.status for each in store.deltas()]
        stores.close()
        return standing

    return found


def at_keyboard(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    async def read_key() -> str:
        return key

    monkeypatch.setattr(keyboard, "read_key", read_key)
    monkeypatch.setattr(command, "person_present", lambda: True)


def test_a_dry_run_says_what_it_would_cost_and_runs_nothing(
    daiku: Daiku, played: Played, statuses: Statuses
) -> None:
    """PROTOCOL 9: `adapt --dry-run`, for people and for programs."""
    done = daiku("playbook", "adapt", "--dry-run", "--cases", "8")
    assert done.code == 0
    assert done.out.startswith("The rule: each change is tried on at most 8 runs on record, 2 times with it")
    assert "At most 32 trials, likely for $0.3200." in done.out
    lines = done.out.splitlines()
    (where,) = (number for number, line in enumerate(lines) if line.startswith("r1  add to "))
    assert lines[where + 1].startswith("  " + GOOD[:10])
    assert lines[where + 2].startswith("  runs on record to try it on: 8; at most 32 trials")
    plan = json.loads(daiku("playbook", "adapt", "--dry-run", "--json").out)
    assert (plan["trials"], len(plan["cases"]), plan["mostCases"]) == (48, 12, 12)
    assert all(each["heldOut"] for each in plan["cases"])
    assert played.made == []
    assert statuses() == ["proposed"]


def test_what_nobody_knows_the_price_of_is_told_in_tokens(
    daiku: Daiku, played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X.12: a cost of nothing would be a lie."""

    async def cases_of(*_: object) -> tuple[Case, ...]:
        return tuple(case(name, cost=0.0) for name in sessions(12))

    monkeypatch.setattr(gate, "cases_of", cases_of)
    said = daiku("playbook", "adapt", "--dry-run").out
    tokens = "likely about 43,200 tokens (the price of the model is not known); bound"
    assert f"at most 48 trials, {tokens}" in said
    assert "At most 48 trials, likely for about 43,200 tokens (the price of the model is not known)." in said
    assert "$0" not in said
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    said = daiku("playbook", "adapt", "--dry-run").out
    assert "  900 トークン  run the tests of part" in said
    assert "費用の見込みは約 43,200 トークン（モデルの料金は不明）です。" in said
    assert "見込み約 43,200 トークン（モデルの料金は不明）、基準" in said


def test_without_a_person_it_needs_to_be_told_what_it_may_spend(
    daiku: Daiku, played: Played, statuses: Statuses
) -> None:
    """PROTOCOL 9, X.12: from a pipe or cron."""
    refused = daiku("playbook", "adapt")
    assert (refused.code, played.made) == (2, [])
    assert "--max-cost" in refused.err
    done = daiku("playbook", "adapt", "--max-cost", "1")
    assert done.code == 0
    assert (
        done.err.index("The rule:") < done.err.index("No more than $1.0000 is spent.") < done.err.index("[1/")
    )
    assert "r1  kept  batc-00001" in done.out
    assert "better 12, worse 0, same 0" in done.out
    assert "trials, $0.48" in done.out
    assert statuses() == ["applied"]


def test_one_document_for_programs(daiku: Daiku, played: Played) -> None:
    found: dict[str, Any] = json.loads(daiku("playbook", "adapt", "--max-cost", "0.1", "--json").out)
    assert (found["ended"], found["maxCost"], found["trials"]) == ("bound", 0.1, len(played.made))
    assert found["spent"] <= 0.1
    assert found["outcomes"][0]["result"] == "waits"
    listed = daiku("playbook", "deltas").out
    assert "Nothing is shown yet. better " in listed


@pytest.mark.parametrize(("key", "standing"), [("n", "proposed"), ("", "proposed"), ("y", "applied")])
def test_a_person_is_asked_before_anything_is_paid(
    daiku: Daiku, played: Played, statuses: Statuses, monkeypatch: pytest.MonkeyPatch, key: str, standing: str
) -> None:
    at_keyboard(monkeypatch, key)
    done = daiku("playbook", "adapt")
    assert done.code == 0
    assert "Go on? [y] yes  [n] no" in done.err
    assert bool(played.made) == (key == "y")
    assert ("Nothing was tried." in done.out) == (key != "y")
    assert statuses() == [standing]


def test_yes_asks_nobody_and_is_bounded_all_the_same(
    daiku: Daiku, played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X.12: where nobody says what may be spent it is twice what the runs on record cost, and that is said before."""
    at_keyboard(monkeypatch, "n")
    assert "No more than $0.9600 is spent." in daiku("playbook", "adapt", "--dry-run").out
    done = daiku("playbook", "adapt", "--yes")
    assert "Go on?" not in done.err
    assert done.err.index("No more than $0.9600 is spent.") < done.err.index("[1/")
    assert played.made


def test_a_folder_without_trust_and_learning_that_is_off_are_refused(
    daiku: Daiku, played: Played, workspace: Path, monkeypatch: pytest.MonkeyPatch, statuses: Statuses
) -> None:
    """X.12: nothing is tried that a person did not allow."""
    asked = ("playbook", "adapt", "--max-cost", "1")
    for name, value, said in (("LEARN", "off", "learn"), ("ENABLED", "false", "enabled")):
        monkeypatch.setenv(f"DAIKU_PLAYBOOK__{name}", value)
        done = daiku(*asked)
        assert (done.code, f"playbook.{said}" in done.err) == (2, True)
        monkeypatch.delenv(f"DAIKU_PLAYBOOK__{name}")
    set_trusted(home(os.environ), workspace, trusted=False)
    done = daiku(*asked)
    assert (done.code, "daiku config trust" in done.err) == (2, True)
    assert daiku("playbook", "adapt", "--dry-run").code == 0
    assert (played.made, statuses()) == ([], ["proposed"])


def test_two_at_once_do_not_try_the_same(daiku: Daiku, played: Played, daiku_home: Path) -> None:
    other = SessionLock(daiku_home / "locks" / "adapt.lock")
    assert other.acquire()
    done = daiku("playbook", "adapt", "--max-cost", "1")
    assert (done.code, played.made) == (2, [])
    assert "another process" in done.err
    other.release()
    assert daiku("playbook", "adapt", "--max-cost", "1").code == 0


def test_where_nothing_can_be_tried_it_fails_and_says_why(
    daiku: Daiku, played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "why_not", lambda _trying: Text("no bubblewrap"))
    done = daiku("playbook", "adapt", "--max-cost", "1")
    assert (done.code, played.made) == (1, [])
    assert "Trials cannot be made here. no bubblewrap" in done.out


def test_in_japanese(daiku: Daiku, played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    done = daiku("playbook", "adapt", "--max-cost", "1")
    assert "規則: " in done.err
    assert "r1  採用  batc-00001" in done.out

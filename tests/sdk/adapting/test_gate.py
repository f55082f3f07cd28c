"""The gate as cron starts it: runs on record tried again by a model over HTTP, with real git, real checks and a sandbox."""

from __future__ import annotations

import asyncio
import json
import signal

import pytest

from tests.attacks.victim import snapshot
from tests.sdk.adapting.recorded import GOOD, HARMFUL, IDLE, PARTS, recorded


@pytest.mark.slow
async def test_a_harmful_change_is_refused_a_good_one_kept_an_idle_one_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Issue 12, point 6; X.12: on twelve cases, by the rule that was printed first; the person's folder, index and refs are
    byte for byte as they were."""
    async with recorded(monkeypatch) as made:
        before = snapshot(made.place.folder)
        good, harmful, idle = made.propose(GOOD, HARMFUL, IDLE)
        done, told = await made.adapt("--max-cost", "20", "--repeat", "1")
        assert {len(each["runs"]) for each in done["plan"]["candidates"]} == {12}
        assert len(done["plan"]["cases"]) == PARTS
        assert told.index("The rule:") < told.index("[1/72]")
        results = {each["delta"]: (each["result"], each["seen"]["verdict"]) for each in done["outcomes"]}
        assert results == {
            good.id: ("applied", "kept"),
            harmful.id: ("rejected", "refused"),
            idle.id: ("waits", "undecided"),
        }
        assert done["ended"] == "done"
        assert done["spent"] <= 20
        assert done["trials"] == made.actor.runs
        assert snapshot(made.place.folder) == before
        assert not list((made.place.home / "trials").iterdir())
        stores = made.stores()
        store = made.store(stores)
        (bullet,) = store.load().bullets
        (logged,) = store.history(bullet.id)
        assert (bullet.content, logged.tried[0].better, logged.tried[0].worse) == (GOOD, 6, 0)
        assert store.deltas("rejected")[0].tried[0].worse >= 6
        assert len(store.deltas("proposed")[0].tried) == 1
        stores.close()


@pytest.mark.slow
async def test_what_may_be_spent_is_known_before_and_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 12, point 6; X.12: a dry run asks no model; where the money ends midway, what was seen is told."""
    async with recorded(monkeypatch, 7) as made:
        before = snapshot(made.place.folder)
        (idle,) = made.propose(IDLE)
        plan, _ = await made.adapt("--dry-run")
        (candidate,) = plan["candidates"]
        assert (len(plan["cases"]), len(candidate["runs"])) == (7, 6)
        assert (candidate["trials"], plan["trials"], candidate["whyNot"]) == (24, 24, None)
        assert made.actor.runs == 0
        (tried,) = made.propose(GOOD)
        cut, _ = await made.adapt("--max-cost", "0.4")
        assert (cut["ended"], cut["trials"]) == ("bound", made.actor.runs)
        assert 0 < cut["spent"] <= 0.4
        assert {each["delta"] for each in cut["outcomes"]} == {idle.id, tried.id}
        assert not [each for each in cut["outcomes"] if each["result"] in ("applied", "rejected")]
        assert snapshot(made.place.folder) == before


@pytest.mark.slow
async def test_killed_or_interrupted_nothing_is_half_done_and_what_was_spent_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Issue 12, point 6; X.12: the person's folder, the playbook and the disk are as before."""
    async with recorded(monkeypatch, 7) as made:
        before = snapshot(made.place.folder)
        (good,) = made.propose(GOOD)

        async def ended(number: signal.Signals, trial: int) -> tuple[int, bytes]:
            """End an adaptation by a signal while this trial is under way."""
            made.actor.until, made.actor.runs = trial, 0
            made.actor.reached.clear()
            process = await made.start("--max-cost", "5", "--json")
            await asyncio.wait_for(made.actor.reached.wait(), 120)
            process.send_signal(number)
            out, _ = await process.communicate()
            assert process.returncode is not None
            return process.returncode, out

        def as_before() -> bool:
            stores = made.stores()
            waits = made.store(stores).deltas() == (good,)
            stores.close()
            return waits and snapshot(made.place.folder) == before

        assert await ended(signal.SIGKILL, 3) == (-signal.SIGKILL, b"")
        assert as_before()
        plan, _ = await made.adapt("--dry-run")
        (cut,) = plan["cutOff"]
        assert (cut["trials"], cut["unknown"]) == (2, True)
        assert cut["spent"] == pytest.approx(2 * 2 * 0.021)

        code, out = await ended(signal.SIGINT, 2)
        found = json.loads(out)
        assert (code, found["ended"], found["trials"], found["unknownCost"]) == (130, "interrupted", 1, True)
        assert found["spent"] == pytest.approx(2 * 0.021)
        assert as_before()
        assert not list((made.place.home / "trials").iterdir())
        assert (await made.adapt("--dry-run"))[0]["cutOff"] == []

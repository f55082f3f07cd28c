"""What trials showed is kept with the change that was tried, and decides on it in the same transaction."""

from __future__ import annotations

from daiku.core.playbook.refused import Refused
from daiku.domain.playbook import Delta, LearntFrom, Tried
from daiku.playbook.store import PlaybookStore
from tests.playbook.changed import add, applied, refused

SEEN = Tried(verdict="kept", better=7, worse=0, same=1, chance=0.015625, bound=0.05, runs=("r1",), cost=0.25)


def proposed(store: PlaybookStore, **change: object) -> Delta:
    delta = {"id": "", "type": "add", "section": "environment", "content": "A lesson.", "origin": "rule"}
    return store.propose(Delta.model_validate(delta | change))


def test_kept_is_applied_refused_is_rejected_and_undecided_waits_each_with_what_was_seen(
    store: PlaybookStore,
) -> None:
    """X.12: counts, chance and cost stand in the log beside the decision."""
    kept, not_wanted, unsure = (proposed(store, content=f"Lesson {n}.") for n in range(3))
    done = applied(store.tried(kept.id, SEEN, "accept"))
    assert done.status == "applied"
    assert [each.content for each in store.load().bullets] == ["Lesson 0."]
    (logged,) = store.history(done.bullet_id)
    assert logged.tried[0].at
    assert logged.tried[0].model_copy(update={"at": ""}) == SEEN
    other = store.tried(not_wanted.id, SEEN.model_copy(update={"verdict": "refused"}), "reject")
    assert isinstance(other, Delta)
    assert (other.status, other.tried[0].verdict) == ("rejected", "refused")
    for count in (1, 2):
        waits = store.tried(unsure.id, SEEN.model_copy(update={"verdict": "undecided"}), "wait")
        assert isinstance(waits, Delta)
        assert (waits.status, len(waits.tried)) == ("proposed", count)
    assert [each.id for each in store.deltas("proposed")] == [unsure.id]
    assert store.deltas("rejected")[0].tried == other.tried
    applied(store.undo(done.id))
    assert store.load().bullets == ()


def test_what_cannot_be_applied_any_more_stays_as_it_was(store: PlaybookStore) -> None:
    """X.12: nothing half applied."""
    at = add(store, "A lesson.")
    change = proposed(store, type="update", bullet_id=at, content="x" * 9_000)
    assert refused(store.tried(change.id, SEEN, "accept")) == "long"
    (waiting,) = store.deltas("proposed")
    assert waiting.tried == ()
    store.reject(change.id)
    found = store.tried(change.id, SEEN, "accept")
    assert isinstance(found, Refused)
    assert found.kind == "decided"


def test_all_that_is_known_of_a_change_is_in_the_log_once_it_is_applied(store: PlaybookStore) -> None:
    """C3.5, X.12: whatever a change says of itself stays with it, but for what carrying it out decides."""
    place = LearntFrom(session_id="s", run_id="r", seq=3)
    said = {
        "keywords": ("a",),
        "why": "duplicates",
        "evidence": (place,),
        "doubts": ("long",),
        "again": (place,),
    }
    change = proposed(store, tried=(SEEN,), **said)
    done = applied(store.accept(change.id))
    decided = {"section", "bullet_id", "bullet_ids", "status", "before", "after", "decided_at"}
    for name in set(Delta.model_fields) - decided:
        assert getattr(done, name) == getattr(change, name), name
    assert store.history(done.bullet_id) == (done,)

"""Any change of a playbook can be taken back: what it changed is as before, what came later stays."""

from __future__ import annotations

import pytest

from daiku.domain.playbook import Delta, LearntFrom, Observation
from daiku.playbook.store import PlaybookStore
from tests.playbook.changed import add, applied, bullet, merge, refused, remove, update


def test_an_add_taken_back_is_gone_and_its_id_is_not_given_again(store: PlaybookStore) -> None:
    """R3.31, B3.4: an id names one bullet for ever."""
    at = add(store, "A lesson.")
    seen = store.revision()
    done = applied(store.undo(store.history(at)[0].id))
    assert done.status == "undone"
    assert store.load().bullets == ()
    assert store.get(at) is None
    assert store.versions([at]) == {}
    assert [(each.id, each.active) for each in store.changed_since(seen)] == [(at, False)]
    assert [each.status for each in store.history(at)] == ["undone"]
    assert add(store, "Another.") == "cm-00002"
    assert refused(store.apply(Delta(id="", type="restore", bullet_id=at))) == "unknown"
    again = applied(store.apply(Delta(id="", type="add", origin="import", bullet_id=at, content="Imported.")))
    assert again.bullet_id == "pc-00001"


def test_an_update_taken_back_brings_the_text_back_and_keeps_what_came_later(store: PlaybookStore) -> None:
    at = add(store, "First.")
    store.observe((Observation(run="r1", bullet=at, verdict="helpful"),))
    second = update(store, at, "Second.")
    applied(store.apply(Delta(id="", type="update", bullet_id=at, section="environment")))
    remove(store, at)
    store.observe((Observation(run="r2", bullet=at, verdict="harmful"),))
    applied(store.undo(second.id))
    found = bullet(store, at)
    assert (found.content, found.section, found.active) == ("First.", "environment", False)
    assert (found.helpful, found.harmful) == (1, 0)
    assert store.versions([at]) == {at: 3}
    assert refused(store.undo(second.id)) == "decided"


def test_what_was_changed_once_more_is_undone_from_the_last_to_the_first(store: PlaybookStore) -> None:
    """A change is refused its undoing while a later one of the same field holds still, even where that one brought
    the same text back."""
    at = add(store, "First.")
    changes = [update(store, at, content) for content in ("Second.", "Third.", "Second.")]
    before = store.load()
    for early in (*changes[:2], store.history(at)[0]):
        assert refused(store.undo(early.id)) == "changed"
    assert store.load() == before
    for late in reversed(changes):
        applied(store.undo(late.id))
    assert bullet(store, at).content == "First."
    applied(store.undo(store.history(at)[0].id))
    assert store.load().bullets == ()


def test_a_removal_taken_back_makes_the_bullet_active(store: PlaybookStore) -> None:
    at = add(store, "A lesson.")
    first = remove(store, at)
    applied(store.undo(first.id))
    assert bullet(store, at).active
    second = remove(store, at)
    applied(store.apply(Delta(id="", type="restore", bullet_id=at)))
    assert refused(store.undo(second.id)) == "changed"
    assert bullet(store, at).active


def test_a_merge_taken_back_gives_every_bullet_its_own_again(store: PlaybookStore) -> None:
    ids = [add(store, text) for text in ("One.", "Two.", "Three.")]
    store.observe([Observation(run="r", bullet=each, verdict="helpful") for each in ids])
    before = store.load().bullets
    done = merge(store, *ids, content="All.")
    applied(store.undo(done.id))
    assert store.load().bullets == before


def test_a_merge_is_not_taken_back_over_a_later_change_of_one_of_its_bullets(store: PlaybookStore) -> None:
    one, two = add(store, "One."), add(store, "Two.")
    done = merge(store, one, two, content="Both.")
    later = update(store, one, "Both, better.")
    assert refused(store.undo(done.id)) == "changed"
    assert not bullet(store, two).active
    applied(store.undo(later.id))
    applied(store.undo(done.id))
    assert (bullet(store, one).content, bullet(store, two).active) == ("One.", True)


def test_the_add_of_a_bullet_that_others_were_merged_into_is_not_taken_back(store: PlaybookStore) -> None:
    one, two = add(store, "One."), add(store, "Two.")
    done = merge(store, one, two)
    for at in (one, two):
        assert refused(store.undo(store.history(at)[0].id)) == "changed"
    applied(store.undo(done.id))
    applied(store.undo(store.history(one)[0].id))
    assert [each.id for each in store.load().bullets] == [two]


def test_a_restored_bullet_counts_for_itself_and_after_undoing_for_the_other_again(
    store: PlaybookStore,
) -> None:
    one, two = add(store, "One."), add(store, "Two.")
    store.observe([Observation(run="r", bullet=two, verdict="helpful")])
    merge(store, one, two)
    assert bullet(store, one).helpful == 1
    back = applied(store.apply(Delta(id="", type="restore", bullet_id=two)))
    assert (bullet(store, one).helpful, bullet(store, two).helpful, bullet(store, two).active) == (0, 1, True)
    applied(store.undo(back.id))
    assert (bullet(store, one).helpful, bullet(store, two).active) == (1, False)


@pytest.mark.parametrize("run", ["", "r"])
def test_a_tag_is_an_observation_and_is_taken_back(store: PlaybookStore, run: str) -> None:
    """B3.4: helpful + 1; said again of the same run it counts once."""
    at = add(store, "A lesson.")
    store.observe([Observation(run="r", bullet=at, verdict="harmful")])
    evidence = (LearntFrom(session_id="s", run_id=run),) if run else ()
    tag = Delta(id="", type="tag", bullet_id=at, tag="helpful", evidence=evidence)
    done = applied(store.apply(tag))
    found = bullet(store, at)
    assert (found.helpful, found.harmful) == ((1, 0) if run else (1, 1))
    assert [(each.helpful, each.harmful) for each in done.after] == [(found.helpful, found.harmful)]
    applied(store.undo(done.id))
    assert (bullet(store, at).helpful, bullet(store, at).harmful) == (0, 1)
    assert refused(store.apply(Delta(id="", type="tag", bullet_id=at))) == "incomplete"


def test_a_tag_taken_back_leaves_later_evidence_of_its_run_alone(store: PlaybookStore) -> None:
    at = add(store, "A lesson.")
    place = LearntFrom(session_id="s", run_id="r")
    done = applied(store.apply(Delta(id="", type="tag", bullet_id=at, tag="helpful", evidence=(place,))))
    store.observe([Observation(run="r", bullet=at, verdict="harmful", why="edits_rejected")])
    applied(store.undo(done.id))
    assert (bullet(store, at).helpful, bullet(store, at).harmful) == (0, 1)

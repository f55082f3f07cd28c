"""Counters of a playbook are sums of what runs showed, one of each run, and of what an import brought."""

from __future__ import annotations

from daiku.domain.playbook import Bullet, Delta, Observation, Verdict, confidence
from daiku.playbook.store import PlaybookStore
from tests.playbook.changed import add, applied, bullet, merge, update
from tests.playbook.conftest import OpenPlaybook


def saw(store: PlaybookStore, run: str, at: str, verdict: Verdict) -> None:
    store.observe([Observation(run=run, bullet=at, verdict=verdict)])


def counters(store: PlaybookStore, at: str) -> tuple[int, int]:
    return bullet(store, at).helpful, bullet(store, at).harmful


def test_a_run_counts_once_whatever_is_told_of_it_how_often(open_playbook: OpenPlaybook) -> None:
    """B3.1, B3.4: an observation that comes again, in another process too, changes nothing; later evidence takes its place."""
    store, other = open_playbook(), open_playbook()
    at = add(store, "A lesson.")
    for each in (store, other, store):
        saw(each, "r1", at, "helpful")
    assert counters(store, at) == (1, 0)
    seen = store.revision()
    saw(other, "r1", at, "helpful")
    assert store.revision() == seen
    saw(store, "r2", at, "neutral")
    assert counters(store, at) == (1, 0)
    saw(other, "r1", at, "harmful")
    saw(other, "r2", at, "helpful")
    assert counters(store, at) == (1, 1)
    assert confidence(bullet(store, at)) == 0.5
    assert [each.verdict for each in store.observations(bullet=at)] == ["harmful", "helpful"]


def test_observations_are_told_by_run_and_by_bullet(store: PlaybookStore) -> None:
    one, two = add(store, "One."), add(store, "Two.")
    first = Observation(
        run="r1", bullet=one, verdict="helpful", why="command_passed", session="s", seq=4, version=1
    )
    second = Observation(run="r1", bullet=two, verdict="neutral", version=1)
    third = Observation(run="r2", bullet=one, verdict="harmful", version=1)
    store.observe([first, second, third])
    assert store.observations() == (first, third, second)
    assert store.observations(run="r1") == (first, second)
    assert store.observations(bullet=one) == (first, third)
    assert store.observations(run="r1", bullet=one) == (first,)
    assert store.observations(run="r3", bullet=one) == store.observations(run="r3") == ()


def test_nothing_is_kept_of_a_bullet_of_another_playbook(open_playbook: OpenPlaybook) -> None:
    """A run is told bullets of both playbooks: what it showed is handed to both, and each keeps its own."""
    here, mine = open_playbook(), open_playbook("user", "me")
    ids = add(here, "One."), add(mine, "Two.")
    seen = [Observation(run="r", bullet=at, verdict="helpful") for at in (*ids, "cm-00009", "nonsense")]
    for each in (here, mine):
        each.observe(seen)
    assert [each.bullet for each in here.observations()] == [ids[0]]
    assert [each.bullet for each in mine.observations()] == [ids[1]]


def test_a_merge_sums_what_was_observed_and_counts_a_run_once(store: PlaybookStore) -> None:
    one, two, three = add(store, "One."), add(store, "Two."), add(store, "Three.")
    for run, at, verdict in (
        ("both", one, "helpful"),
        ("both", two, "helpful"),
        ("either", one, "helpful"),
        ("either", two, "harmful"),
        ("second", two, "helpful"),
        ("third", three, "helpful"),
    ):
        saw(store, run, at, verdict)  # pyright: ignore[reportArgumentType]  # verdicts, all of them
    assert counters(store, one) == (2, 0)
    done = merge(store, one, two)
    assert counters(store, one) == (2, 1), "a run that showed both counts as the worse of them"
    assert done.after[0] == bullet(store, one)
    assert counters(store, two) == (2, 1), "what was observed of the other alone stays known"
    merge(store, three, one)
    assert counters(store, three) == (3, 1)


def test_late_evidence_of_a_bullet_that_was_merged_counts_for_the_one_that_was_kept(
    store: PlaybookStore,
) -> None:
    one, two, three = add(store, "One."), add(store, "Two."), add(store, "Three.")
    merge(store, two, three)
    merge(store, one, two)
    seen = store.revision()
    saw(store, "r", three, "helpful")
    assert [counters(store, at) for at in (one, two, three)] == [(1, 0), (1, 0), (1, 0)]
    assert {each.id for each in store.changed_since(seen)} == {one, two, three}


def test_what_an_import_brought_is_added_to_what_was_observed(store: PlaybookStore) -> None:
    brought = Bullet(id="cm-00003", section="common_mistakes", content="One.", helpful=5, harmful=2)
    asked = Delta(id="", type="add", origin="import", content="One.", bullet_id="cm-00003", after=(brought,))
    at = applied(store.apply(asked)).bullet_id
    saw(store, "r", at, "helpful")
    assert counters(store, at) == (6, 2)
    other = add(store, "Two.")
    merge(store, other, at)
    assert counters(store, other) == (6, 2)


def test_only_an_import_brings_counters(store: PlaybookStore) -> None:
    brought = Bullet(id="cm-00003", section="s", content="One.", helpful=5)
    done = applied(
        store.apply(
            Delta(id="", type="add", origin="model", content="One.", bullet_id="cm-00003", after=(brought,))
        )
    )
    assert (done.bullet_id, done.after[0].helpful) == ("pc-00001", 0)


def test_another_text_starts_again_and_the_same_in_other_words_does_not(store: PlaybookStore) -> None:
    """B3.1: what runs showed of one lesson is not held for or against another one; undoing brings it back with the text."""
    at = add(store, "Run the tests with `python3 -m unittests` before a commit.")
    saw(store, "r1", at, "harmful")
    saw(store, "r2", at, "harmful")
    reworded = update(store, at, "Before a commit, run the tests with `python3 -m unittests`.")
    assert counters(store, at) == (0, 2)
    other = update(store, at, "Run the tests with `python3 -m unittest` before a commit.")
    assert counters(store, at) == (0, 0)
    store.observe([Observation(run="r3", bullet=at, verdict="helpful", version=3)])
    assert counters(store, at) == (1, 0)
    seen = store.observations(bullet=at)
    assert [(each.version, store.is_counted(each)) for each in seen] == [(1, False), (1, False), (3, True)]
    applied(store.undo(other.id))
    assert counters(store, at) == (0, 2)
    applied(store.undo(reworded.id))
    assert counters(store, at) == (0, 2)
    assert store.versions([at]) == {at: 5}, "who was told a version is told of every later text"


def test_late_evidence_about_an_earlier_text_is_kept_and_not_counted(store: PlaybookStore) -> None:
    """B3.1: An undo days later speaks of the text that the run was told, whatever stands there now."""
    at = add(store, "Indent with tabs.")
    store.observe([Observation(run="r", bullet=at, verdict="helpful", version=1)])
    update(store, at, "Indent with four blanks.")
    revision = store.revision()
    store.observe([Observation(run="r", bullet=at, verdict="harmful", version=1)])
    assert counters(store, at) == (0, 0)
    assert [each.verdict for each in store.observations(bullet=at)] == ["harmful"]
    seen = store.revision()
    saw(store, "r", at, "harmful")
    assert store.revision() == seen > revision, "told again without a version it is of the same one"


def test_what_an_import_brought_is_of_the_text_that_it_brought(store: PlaybookStore) -> None:
    brought = Bullet(id="cm-00003", section="common_mistakes", content="Indent with tabs.", helpful=5)
    asked = Delta(
        id="", type="add", origin="import", content=brought.content, bullet_id="cm-00003", after=(brought,)
    )
    at = applied(store.apply(asked)).bullet_id
    made = update(store, at, "Indent with four blanks.")
    assert counters(store, at) == (0, 0)
    applied(store.undo(made.id))
    assert counters(store, at) == (5, 0)


def test_a_merge_under_another_text_still_sums(store: PlaybookStore) -> None:
    one, two = add(store, "Indent with tabs."), add(store, "Indent with blanks.")
    update(store, one, "Name tests as sentences.")
    saw(store, "r1", one, "helpful")
    saw(store, "r2", two, "harmful")
    done = merge(store, one, two, content="Whatever holds of both.")
    assert counters(store, one) == (1, 1)
    applied(store.undo(done.id))
    assert (counters(store, one), counters(store, two)) == ((1, 0), (0, 1))


def test_a_playbook_of_before_there_were_versions_counts_as_it_did(open_playbook: OpenPlaybook) -> None:
    """A database as it was made by an earlier version of Daiku, where a text had been changed and observed."""
    store = open_playbook()
    at = add(store, "Indent with tabs.")
    made = update(store, at, "Indent with four blanks.")
    saw(store, "r1", at, "helpful")
    saw(store, "r2", at, "harmful")
    for table in ("playbook_observed_versions", "playbook_meanings"):
        store.database.write(f"DROP TABLE {table}")
    if store.database.has("prepared"):  # a server notes which tables it has
        store.database.write("DELETE FROM prepared")
    old = open_playbook()
    assert {each.version for each in old.observations(bullet=at)} == {0}
    saw(old, "r3", at, "helpful")
    assert counters(old, at) == (2, 1)
    saw(old, "r2", at, "neutral")
    assert counters(old, at) == (2, 0)
    update(old, at, "Name tests as sentences.")
    assert counters(old, at) == (0, 0)
    applied(old.undo(old.history(at)[-1].id))
    assert counters(old, at) == (2, 0)
    applied(old.undo(made.id))
    assert counters(old, at) == (2, 0), "of which of the two texts it was is not known"

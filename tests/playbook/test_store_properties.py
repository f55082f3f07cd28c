"""Properties of a playbook's store: a change touches nothing else, undoing is its inverse, ids are given once."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from daiku.domain.playbook import Delta, Observation, Verdict
from daiku.playbook.rules.changes import ChangeRefusal
from daiku.playbook.rules.sections import BULLET_ID, SECTIONS
from daiku.playbook.store import PlaybookStore
from daiku.store.opening import open_tables


class Step(NamedTuple):
    """Something done to a playbook; of which bullets, the numbers say."""

    what: str
    first: int
    second: int
    content: str
    verdict: Verdict


step = st.builds(
    Step,
    st.sampled_from(
        ["add", "add", "import", "update", "merge", "remove", "restore", "tag", "observe", "undo"]
    ),
    st.integers(0, 5),
    st.integers(0, 5),
    st.text(max_size=40),
    st.sampled_from(["helpful", "harmful", "neutral"]),
)
steps = st.lists(step, max_size=14)


def opened() -> PlaybookStore:
    return PlaybookStore(open_tables(None, ""), "repository", "here")


def asked(store: PlaybookStore, does: Step) -> Delta:
    """A change, mostly of bullets that are there."""
    ids = [*(bullet.id for bullet in store.load().bullets), "cm-00001", "misc-00004"]
    one, two = ids[does.first % len(ids)], ids[does.second % len(ids)]
    section = SECTIONS[does.second % len(SECTIONS)]
    match does.what:
        case "add":
            return Delta(id="", type="add", content=does.content, section=section)
        case "import":
            return Delta(id="", type="add", content=does.content, bullet_id=one, origin="import")
        case "update":
            return Delta(id="", type="update", content=does.content, section=section, bullet_id=one)
        case "merge":
            return Delta(id="", type="merge", content=does.content, bullet_ids=(one, two))
        case "remove":
            return Delta(id="", type="remove", bullet_id=one)
        case "restore":
            return Delta(id="", type="restore", bullet_id=one)
        case _:
            return Delta(id="", type="tag", bullet_id=one, tag=does.verdict)


def carried_out(store: PlaybookStore, does: Step) -> Delta | ChangeRefusal | None:
    match does.what:
        case "observe":
            seen = Observation(
                run=f"run{does.first}", bullet=asked(store, does).bullet_id, verdict=does.verdict
            )
            store.observe([seen])
            return None
        case "undo":
            made = store.deltas("applied")
            return store.undo(made[does.first % len(made)].id) if made else None
        case _:
            return store.apply(asked(store, does))


def lines(store: PlaybookStore) -> dict[str, bytes]:
    """All bullets, to the byte."""
    return {bullet.id: bullet.model_dump_json().encode() for bullet in store.load().bullets}


@settings(max_examples=200)
@given(steps, step)
def test_a_change_touches_nothing_but_what_it_says(past: list[Step], does: Step) -> None:
    """B3.4: bullets that a change does not name are the same to the byte, and what it names stands as it was logged."""
    store = opened()
    for each in past:
        carried_out(store, each)
    before = lines(store)
    done = carried_out(store, does)
    now = lines(store)
    if isinstance(done, ChangeRefusal):
        assert now == before
    elif done is not None:
        named = {bullet.id for bullet in done.after}
        assert {name: line for name, line in now.items() if name not in named} == {
            name: line for name, line in before.items() if name not in named
        }
        assert done.status == "undone" or [*done.after] == [store.get(bullet.id) for bullet in done.after]
        assert done.status == "undone" or {
            each.id: each.model_dump_json().encode() for each in done.before
        } == {name: before[name] for name in named & before.keys()}


@settings(max_examples=200)
@given(steps, step)
def test_what_is_undone_at_once_is_as_it_was(past: list[Step], does: Step) -> None:
    """A change and its undoing leave every bullet as it was, to the byte."""
    store = opened()
    for each in past:
        carried_out(store, each)
    before = lines(store)
    done = carried_out(store, does) if does.what not in ("undo", "observe") else None
    if isinstance(done, Delta):
        assert isinstance(store.undo(done.id), Delta)
        assert lines(store) == before


@settings(max_examples=200)
@given(steps)
def test_everything_can_be_undone_from_the_last_change_to_the_first(past: list[Step]) -> None:
    """What is left of a playbook whose changes were all taken back is nothing."""
    store = opened()
    for each in past:
        carried_out(store, each)
    for made in sorted(store.deltas("applied"), key=lambda each: int(each.id[1:]), reverse=True):
        assert isinstance(store.undo(made.id), Delta), made
    assert store.load().bullets == ()


@settings(max_examples=200)
@given(steps)
def test_an_id_names_one_bullet_for_ever(past: list[Step]) -> None:
    """R3.31: also after imports, removals and undoing, no id is given twice."""
    store = opened()
    for each in past:
        carried_out(store, each)
    added = [delta.bullet_id for delta in store.deltas("applied", "undone") if delta.type == "add"]
    assert len(added) == len(set(added))
    assert all(BULLET_ID.fullmatch(each) for each in added)
    assert {bullet.id for bullet in store.load().bullets} <= set(added)


@settings(max_examples=200)
@given(steps)
def test_counters_are_sums_of_observations(past: list[Step]) -> None:
    """B3.1: of every bullet that nothing was merged into, the counters are the numbers of its observations that were
    about what it says now."""
    store = opened()
    for each in past:
        carried_out(store, each)
    taken = {
        bullet for delta in store.deltas("applied") if delta.type == "merge" for bullet in (delta.bullet_id,)
    }
    for bullet in store.load().bullets:
        seen = [each.verdict for each in store.observations(bullet=bullet.id) if store.is_counted(each)]
        if bullet.id not in taken:
            assert (bullet.helpful, bullet.harmful) == (seen.count("helpful"), seen.count("harmful"))


@settings(max_examples=200)
@given(steps, step)
def test_who_follows_the_revisions_knows_every_bullet(past: list[Step], does: Step) -> None:
    """What a search has from before and is told of since is what the table holds."""
    store = opened()
    for each in past:
        carried_out(store, each)
    known, seen = {bullet.id: bullet for bullet in store.load().bullets}, store.revision()
    carried_out(store, does)
    known |= {bullet.id: bullet for bullet in store.changed_since(seen)}
    there = {bullet.id: bullet for bullet in store.load().bullets}
    assert {name: bullet for name, bullet in known.items() if bullet.active or name in there} == there

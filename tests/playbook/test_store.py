"""The store of a playbook: bullets with ids of their own, and changes that are logged, decided on and undone."""

from __future__ import annotations

import pytest

from daiku.domain.playbook import Bullet, Delta, LearntFrom, Observation, Playbook
from daiku.playbook import tables
from daiku.playbook.rules.sections import FOR_ALL_WORK, FOR_EVERYTHING, MOST_CHARACTERS
from daiku.playbook.store import PlaybookStore
from tests.playbook.changed import add, applied, bullet, merge, refused, remove, update
from tests.playbook.conftest import OpenPlaybook


def test_a_playbook_that_nobody_wrote_to_is_empty(store: PlaybookStore) -> None:
    """B3.1, R3.41: nothing there is an empty playbook, not an error."""
    assert store.load() == Playbook()
    assert store.revision() == 0
    assert store.deltas() == store.changed_since(0) == store.history("cm-00001") == ()
    assert store.get("cm-00001") is None
    assert store.observations() == ()


def test_a_bullet_is_there_for_the_next_process(open_playbook: OpenPlaybook) -> None:
    """R3.2, R3.31: what one adds, the next one loads: `<slug>-00001`."""
    one, two = open_playbook(), open_playbook()
    assert add(one, "Run `npm run gen` after a change of api/.") == "cm-00001"
    found = two.load()
    assert [each.content for each in found.bullets] == ["Run `npm run gen` after a change of api/."]
    assert found.bullets[0].active
    assert found.created_at
    assert add(two, "Another.") == "cm-00002"
    assert [each.id for each in one.load().bullets] == ["cm-00001", "cm-00002"]


def test_playbooks_do_not_see_one_another(open_playbook: OpenPlaybook) -> None:
    """A repository's, another repository's and the person's; and no id of the person's is one of a repository's."""
    here, there, mine = open_playbook(), open_playbook("repository", "there"), open_playbook("user", "me")
    assert [add(each, "A lesson.") for each in (here, there, mine)] == ["cm-00001", "cm-00001", "mycm-00001"]
    update(here, "cm-00001", "Another lesson.")
    assert there.load().bullets[0].content == "A lesson."
    assert here.get("mycm-00001") is None


def test_a_change_is_logged_with_before_after_and_why(store: PlaybookStore) -> None:
    """R3.56, B3.4: a change says what it was of, how that stood before and after, why, and where it was learnt."""
    at = add(store, "Use tabs.")
    place = LearntFrom(session_id="s", run_id="r", seq=4)
    asked = Delta(
        id="",
        type="update",
        bullet_id=at,
        content="Use spaces.",
        why="The formatter says so.",
        evidence=(place,),
    )
    done = applied(store.apply(asked))
    assert [each.content for each in done.before] == ["Use tabs."]
    assert [each.content for each in done.after] == ["Use spaces."]
    assert (done.status, done.why, done.evidence) == ("applied", "The formatter says so.", (place,))
    assert [each.type for each in store.history(at)] == ["add", "update"]
    assert store.history(at)[1] == store.deltas("applied")[1] == done
    assert store.versions([at, "cm-00099"]) == {at: 2}


def test_a_field_that_an_update_leaves_empty_stays(store: PlaybookStore) -> None:
    at = applied(
        store.apply(Delta(id="", type="add", section="s", content="Text.", keywords=("a", "b")))
    ).bullet_id
    applied(store.apply(Delta(id="", type="update", bullet_id=at, section="environment")))
    found = bullet(store, at)
    assert (found.section, found.content, found.keywords) == ("environment", "Text.", ("a", "b"))
    assert store.versions([at]) == {at: 1}
    assert refused(store.apply(Delta(id="", type="update", bullet_id=at))) == "incomplete"


def test_a_removed_bullet_rests_and_comes_back(store: PlaybookStore) -> None:
    """R3.2: a playbook is loaded whole, with what rests."""
    at = add(store, "A lesson.")
    remove(store, at)
    assert not bullet(store, at).active
    assert [each.id for each in store.load().bullets] == [at]
    applied(store.apply(Delta(id="", type="restore", bullet_id=at)))
    assert bullet(store, at).active


def test_a_proposal_changes_nothing_until_it_is_accepted(store: PlaybookStore) -> None:
    waiting = store.propose(
        Delta(id="", type="add", section="environment", content="Lesson.", doubts=("tainted",))
    )
    assert waiting.status == "proposed"
    assert store.load().bullets == ()
    assert store.deltas("proposed") == (waiting,)
    done = applied(store.accept(waiting.id, "Lesson, as edited."))
    assert (done.id, done.status, done.bullet_id) == (waiting.id, "applied", "env-00001")
    assert bullet(store, "env-00001").content == "Lesson, as edited."
    assert store.deltas("proposed") == ()
    assert refused(store.accept(waiting.id)) == refused(store.reject(waiting.id)) == "decided"


def test_a_rejected_proposal_stays_on_record(store: PlaybookStore) -> None:
    waiting = store.propose(Delta(id="", type="add", content="Lesson."))
    assert applied(store.reject(waiting.id)).status == "rejected"
    assert [each.id for each in store.deltas("rejected")] == [waiting.id]
    assert refused(store.reject(waiting.id)) == "decided"
    assert store.load().bullets == ()


def test_a_rejection_is_not_final(store: PlaybookStore) -> None:
    """B3.4: It is taken up again as it is or with another text, or waits once more; what was taken back stays so."""
    one, two = (store.propose(Delta(id="", type="add", content=text)) for text in ("One.", "Two."))
    for each in (one, two):
        applied(store.reject(each.id))
    taken = applied(store.accept(one.id, "One, reworded."))
    assert (taken.status, bullet(store, taken.bullet_id).content) == ("applied", "One, reworded.")
    again = applied(store.undo(two.id))
    assert (again.status, again.decided_at) == ("proposed", "")
    assert store.deltas("proposed") == (again,)
    assert store.deltas("rejected") == ()
    assert refused(store.undo(two.id)) == "decided"
    applied(store.reject(two.id))
    applied(store.undo(taken.id))
    assert refused(store.accept(taken.id)) == "decided"


def test_keywords_can_be_taken_away(store: PlaybookStore) -> None:
    """B3.4."""
    made = store.apply(Delta(id="", type="add", content="Lesson.", keywords=("one", "two")))
    at = applied(made).bullet_id
    applied(store.apply(Delta(id="", type="update", bullet_id=at, content="Other.")))
    assert bullet(store, at).keywords == ("one", "two")
    done = applied(store.apply(Delta(id="", type="update", bullet_id=at, no_keywords=True)))
    assert (bullet(store, at).keywords, bullet(store, at).content) == ((), "Other.")
    applied(store.undo(done.id))
    assert bullet(store, at).keywords == ("one", "two")


def test_a_change_of_what_is_not_there_is_refused_and_changes_nothing(store: PlaybookStore) -> None:
    at = add(store, "A lesson.")
    before = (store.load(), store.revision())
    for wrong in ("cm-00002", "mycm-00001", "nonsense", "cm-1", "\ud800", ""):
        kind = refused(store.apply(Delta(id="", type="update", bullet_id=wrong, content="x")))
        assert kind == ("unknown" if wrong else "incomplete")
    assert refused(store.apply(Delta(id="", type="merge", bullet_ids=(at, "cm-00009")))) == "unknown"
    assert refused(store.apply(Delta(id="", type="merge", bullet_ids=(at,)))) == "incomplete"
    for wrong in ("r99", "u1", "", "1", "r", "r1; DROP TABLE playbooks"):
        assert refused(store.undo(wrong)) == refused(store.accept(wrong)) == "unknown"
    assert (store.load(), store.revision()) == before


@pytest.mark.parametrize("content", ["", " \n\t", "x" * (MOST_CHARACTERS + 1), "x" * 1_000_000])
def test_a_text_that_no_bullet_can_have_is_refused(store: PlaybookStore, content: str) -> None:
    kind = "long" if content.strip() else "empty"
    at = add(store, "A lesson.")
    assert refused(store.apply(Delta(id="", type="add", content=content))) == kind
    waiting = store.propose(Delta(id="", type="add", content=content))
    assert refused(store.accept(waiting.id)) == kind
    assert store.deltas("proposed") == (waiting,)
    assert applied(store.accept(waiting.id, "Short.")).bullet_id == "pc-00001"
    assert bullet(store, at).content == "A lesson."


def test_a_text_is_kept_as_it_was_written(store: PlaybookStore) -> None:
    for written in (
        "{query} {{x}}",
        "日本語の教訓。",
        "\N{ZERO WIDTH SPACE}'; DROP TABLE playbooks; --",
        "x" * MOST_CHARACTERS,
        " a\r\nb ",
    ):
        assert bullet(store, add(store, written)).content == written
    assert (
        bullet(store, add(store, "a\0b\ud800c")).content == "a\N{SYMBOL FOR NULL}b\N{REPLACEMENT CHARACTER}c"
    )


def test_a_merge_keeps_the_first_with_the_keywords_of_all(store: PlaybookStore) -> None:
    one = applied(store.apply(Delta(id="", type="add", content="One.", keywords=("a",)))).bullet_id
    two = applied(store.apply(Delta(id="", type="add", content="Two.", keywords=("b", "a")))).bullet_id
    done = merge(store, one, two, content="Both.")
    assert (done.bullet_id, done.bullet_ids) == (one, (two,))
    kept = bullet(store, one)
    assert (kept.content, kept.keywords, kept.active) == ("Both.", ("a", "b"), True)
    assert not bullet(store, two).active
    assert store.history(two)[-1] == done
    assert refused(store.apply(Delta(id="", type="merge", bullet_ids=(one, two)))) == "inactive"


def test_changed_bullets_are_told_by_revision(store: PlaybookStore) -> None:
    one, two = add(store, "One."), add(store, "Two.")
    seen = store.revision()
    update(store, one, "One, changed.")
    assert [each.content for each in store.changed_since(seen)] == ["One, changed."]
    assert store.revision() > seen
    assert {each.id for each in store.changed_since(0)} == {one, two}


def test_an_import_keeps_its_ids_and_what_it_brings_and_is_told_of_a_new_one(store: PlaybookStore) -> None:
    """R3.31: an id names one bullet, also where a file names it again."""
    brought = Bullet(id="shr-00007", section="shared", content="Lesson.", helpful=3, harmful=1, active=False)

    def read_in() -> Delta:
        return applied(
            store.apply(
                Delta(
                    id="",
                    type="add",
                    origin="import",
                    section="shared",
                    content="Lesson.",
                    bullet_id=brought.id,
                    after=(brought,),
                )
            )
        )

    assert read_in().bullet_id == "shr-00007"
    found = bullet(store, "shr-00007")
    assert (found.helpful, found.harmful, found.active) == (3, 1, False)
    again = read_in()
    assert again.bullet_id == "sha-00001"
    assert again.after[0].id == "sha-00001"
    assert bullet(store, "sha-00001").helpful == 3


def test_an_import_can_bring_nothing_that_breaks_the_playbook(store: PlaybookStore) -> None:
    """R3.31: numbers and times of a strange file: ids that leave no room for others, counters beyond any, times that are none."""
    brought = Bullet(
        id="cm-999999999", section="s", content="Lesson.", helpful=10**30, harmful=10**9, created_at="\0"
    )
    asked = Delta(
        id="", type="add", origin="import", section="common_mistakes", content="Lesson.", bullet_id=brought.id
    )
    done = applied(store.apply(asked.model_copy(update={"after": (brought,)})))
    assert done.bullet_id == "cm-00001"
    found = bullet(store, "cm-00001")
    assert (found.helpful, found.harmful) == (1_000_000, 1_000_000)
    assert found.created_at[:2] == "20"
    at = applied(store.apply(asked.model_copy(update={"bullet_id": "cm-9999999"}))).bullet_id
    assert at == "cm-9999999"
    assert bullet(store, add(store, "The next one.")).id == "cm-10000000"


def test_keywords_and_reasons_are_kept_within_bounds(store: PlaybookStore) -> None:
    words = ("a", " a ", "", "x" * 1_000_000, *(f"w{number}" for number in range(1_000)))
    done = applied(
        store.apply(Delta(id="", type="add", content="Lesson.", keywords=words, why="y" * 1_000_000))
    )
    assert bullet(store, done.bullet_id).keywords[:3] == ("a", "x" * 500, "w0")
    assert len(bullet(store, done.bullet_id).keywords) == 50
    assert len(store.history(done.bullet_id)[0].why) == 4_000


def test_ids_that_no_database_keeps_are_those_of_no_bullet(store: PlaybookStore) -> None:
    wrong = Delta(id="", type="merge", bullet_id="\ud800", bullet_ids=("\0", "cm-00001"))
    assert refused(store.apply(wrong)) == "unknown"
    waiting = store.propose(wrong)
    assert refused(store.accept(waiting.id)) == "unknown"
    assert store.deltas("proposed") == store.history("cm-00001") == (waiting,)


def test_what_holds_whatever_is_asked_is_found_without_a_search(store: PlaybookStore) -> None:
    """Of the sections that are asked for the ones that helped most, then the oldest; none that rests or is switched off."""
    for number in range(4):
        add(store, f"Convention {number}.", section="project_conventions")
    add(store, "Build by make.", section="build_and_test_commands")
    add(store, "Never do that.")
    store.observe([Observation(run=f"r{n}", bullet="pc-00003", verdict="helpful") for n in range(2)])
    store.observe([Observation(run="r9", bullet="pc-00002", verdict="harmful")])
    remove(store, "pc-00001")
    found = store.general(FOR_ALL_WORK, 9, 0.3)
    assert [each.id for each in found] == ["pc-00003", "pc-00004", "batc-00001"]
    assert [each.id for each in store.general(FOR_EVERYTHING, 1, 0.0)] == ["pc-00003"]
    assert "pc-00002" in [each.id for each in store.general(FOR_EVERYTHING, 9, 0.0)]


def test_the_index_of_what_holds_whatever_is_asked_has_its_sections() -> None:
    """The sections stand in the schema, which is text."""
    listed = ", ".join(f"'{section}'" for section in FOR_ALL_WORK)
    assert tables.SCHEMA.count(f"WHERE section IN ({listed})") == 1
    assert f"section IN ({listed})" in tables.GENERAL


def test_all_that_is_known_of_a_change_is_in_the_log_once_it_is_applied(store: PlaybookStore) -> None:
    """C3.5, X.12: whatever a change says of itself stays with it, but for what carrying it out decides."""
    place = LearntFrom(session_id="s", run_id="r", seq=3)
    said = {
        "keywords": ("a",),
        "why": "duplicates",
        "evidence": (place,),
        "doubts": ("tainted",),
        "again": (place,),
    }
    lesson = {"id": "", "type": "add", "section": "environment", "content": "A lesson.", "origin": "rule"}
    change = store.propose(Delta.model_validate(lesson | said))
    done = applied(store.accept(change.id))
    decided = {"section", "bullet_id", "bullet_ids", "status", "before", "after", "decided_at"}
    for name in set(Delta.model_fields) - decided:
        assert getattr(done, name) == getattr(change, name), name
    assert store.history(done.bullet_id) == (done,)


def test_a_change_that_an_earlier_version_tried_can_still_be_decided(store: PlaybookStore) -> None:
    """X.12, PROTOCOL 10c: stored forms stay readable, also those with the results of trials."""
    waiting = store.propose(Delta(id="", type="add", section="environment", content="A lesson."))
    tried = '"doubts":["copied"],"tried":[{"verdict":"kept","better":7,"chance":0.015625,"bound":0.05,"runs":["r1"],"cost":0.25}]'
    database = store.database
    with database.transaction():
        database.write("UPDATE playbook_deltas SET data = '{' || ? || ',' || SUBSTR(data, 2)", (tried,))
        database.write("CREATE TABLE playbook_adaptations(id TEXT PRIMARY KEY, spent INTEGER) STRICT")
    assert tried in database.query("SELECT data FROM playbook_deltas")[0][0]
    assert store.deltas("proposed") == (waiting,)
    done = applied(store.accept(waiting.id))
    assert store.history(done.bullet_id) == (done,)
    applied(store.undo(done.id))
    assert store.load().bullets == ()

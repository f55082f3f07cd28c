"""Learning after a run: what is proposed, what is applied, and that nothing else is touched."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daiku.domain.chunks import Chunk
from daiku.domain.events import ApprovalAsked, MessageEvent, RunFinished, RunStarted
from daiku.domain.held import Lesson
from daiku.domain.playbook import Delta, Observation, Origin
from daiku.domain.tools import ToolCall
from daiku.playbook.learning import LearnMode, learn_from, merge_duplicates
from daiku.playbook.rules.changes import ChangeRefusal
from daiku.playbook.store import PlaybookStore
from daiku.store.opening import open_place, open_tables
from daiku.texts.text import Text
from tests.cases import examples
from tests.playbook.changed import applied, bullet
from tests.playbook.conftest import OpenPlaybook
from tests.playbook.happened import decided, ran, steered, told

LESSON = "Run the tests by `uv run pytest`; `pytest` fails here."
CHUNKS = told(ran("pytest", 127), ran("uv run pytest"))


def learn(store: PlaybookStore, chunks: list[Chunk] = CHUNKS, how: LearnMode = "auto") -> tuple[Delta, ...]:
    return learn_from(store, chunks, learn=how, redact=str, allows=lambda _: True)


def add(store: PlaybookStore, content: str, origin: Origin = "person") -> str:
    delta = Delta(id="", type="add", section="tool_usage", content=content, origin=origin)
    return applied(store.apply(delta)).bullet_id


def test_review_proposes_and_changes_nothing(store: PlaybookStore) -> None:
    (made,) = learn(store, how="review")
    assert (made.status, made.type, made.content, made.doubts) == ("proposed", "add", LESSON, ())
    assert store.deltas("proposed") == (made,)
    assert store.load().bullets == ()


def test_auto_applies_and_it_can_be_undone(store: PlaybookStore) -> None:
    (made,) = learn(store)
    assert (made.status, made.origin, made.why) == ("applied", "rule", "command_replaced")
    assert [each.content for each in store.load().bullets] == [LESSON]
    assert [(each.run_id, each.seq) for each in made.evidence] == [("run_1", 2), ("run_1", 4)]
    assert applied(store.undo(made.id)).status == "undone"
    assert learn(store) == ()


def test_off_learns_nothing(store: PlaybookStore) -> None:
    assert learn(store, how="off") == ()
    assert store.deltas() == ()


@pytest.mark.parametrize("how", ["review", "auto"])
def test_learning_twice_from_the_same_changes_nothing(store: PlaybookStore, how: LearnMode) -> None:
    """The session goes on, a review comes days later: what was learnt is not learnt again."""
    assert len(learn(store, how=how)) == 1
    before = store.revision()
    assert learn(store, how=how) == ()
    assert learn(store, [*CHUNKS, *told(steered("looks good"), after=4)], how=how) == ()
    assert store.revision() == before


def test_what_came_later_in_the_session_is_learnt_from_too(store: PlaybookStore) -> None:
    assert len(learn(store)) == 1
    made = learn(store, [*CHUNKS, *told(decided(why="log by the logger, not by print"), after=4)])
    assert [each.content for each in made] == ["Log by the logger, not by print."]


def test_what_a_person_made_of_a_lesson_is_not_undone_by_where_it_was_learnt(store: PlaybookStore) -> None:
    """The same session is looked at again; and another one, which shows the same once more, only proposes it."""
    (made,) = learn(store)
    change = Delta(
        id="", type="update", bullet_id=made.bullet_id, content="Run `uv run pytest -q`, never `pytest`."
    )
    applied(store.apply(change))
    assert learn(store) == ()
    elsewhere = [chunk._replace(session="sess_2") for chunk in CHUNKS]
    (again,) = learn(store, elsewhere)
    assert (again.type, again.bullet_id, again.status) == ("update", made.bullet_id, "proposed")
    assert bullet(store, made.bullet_id).content == change.content


def in_run(name: str) -> list[Chunk]:
    """The same as happened, in a session and a run of its own."""
    return [chunk._replace(session=f"sess_{name}", run=f"run_{name}") for chunk in CHUNKS]


def test_a_rejected_proposal_does_not_come_back(store: PlaybookStore) -> None:
    """Nor if further runs teach it."""
    (made,) = learn(store, how="review")
    applied(store.reject(made.id))
    assert learn(store, how="review") == learn(store, how="auto") == ()
    assert learn(store, in_run("2")) == learn(store, in_run("3")) == ()


def test_what_a_person_wrote_is_changed_by_a_person_only(store: PlaybookStore) -> None:
    at = add(store, "Run the tests by `pytest`.")
    (made,) = learn(store)
    assert (made.type, made.bullet_id, made.status) == ("update", at, "proposed")
    assert bullet(store, at).content == "Run the tests by `pytest`."
    done = applied(store.accept(made.id))
    assert done.after[0].content == LESSON


@pytest.mark.parametrize("how", ["review", "auto"])
def test_a_run_that_shows_a_resting_lesson_once_more_counts_for_it(
    store: PlaybookStore, how: LearnMode
) -> None:
    at = add(store, LESSON)
    store.observe([Observation(run="r0", bullet=at, verdict="harmful")])
    (made,) = learn(store, how=how)
    assert (made.type, made.status) == ("tag", "applied")
    assert (bullet(store, at).helpful, bullet(store, at).harmful) == (1, 1)
    assert learn(store, how=how) == ()
    assert (bullet(store, at).helpful, bullet(store, at).harmful) == (1, 1)


def test_what_a_person_says_of_a_lesson_that_misled_changes_that_lesson(store: PlaybookStore) -> None:
    """It told runs where handlers go, for many runs rightly; now the person rejects what it led to and says where they
    go: nothing that says the contrary stands beside it."""
    at = add(store, "Keep handlers in `src/handlers/`.", "rule")
    store.observe([Observation(run=f"r{n}", bullet=at, verdict="helpful") for n in range(5)])
    start = RunStarted(
        prompt="add a handler", lessons=(Lesson(id=at, version=1, text=bullet(store, at).content),)
    )
    wrote = ToolCall(id="c1", tool="files/edit", args={"path": "src/handlers/new.txt"})
    says = MessageEvent(role="assistant", text=Text(f"By [{at}]."), calls=(wrote,))
    end = RunFinished(status="completed", used_bullets=(at,))
    words = "Handlers belong in `app/handlers/`, nowhere else."
    asked, given = decided(why=words)
    assert isinstance(asked, ApprovalAsked)
    rejected = (start, says, asked.model_copy(update={"call_id": "c1"}), given, end)
    (made,) = learn(store, told(*rejected))
    assert (made.type, made.bullet_id, made.status) == ("update", at, "proposed")
    applied(store.accept(made.id))
    assert [each.content for each in store.load().bullets] == [words]
    other = told(*rejected[:2], *decided(why="Log by the logger, not by print."), end, run="run_2")
    (beside,) = learn(store, [chunk._replace(session="sess_2") for chunk in other])
    assert beside.type == "add"


def test_what_was_learnt_before_is_corrected_by_itself(store: PlaybookStore) -> None:
    at = add(store, "Run the tests by `pytest`; `tox` fails here.", "rule")
    (made,) = learn(store)
    assert (made.type, made.bullet_id, made.status) == ("update", at, "applied")
    assert bullet(store, at).content == LESSON


def test_what_runs_showed_to_be_right_is_replaced_when_a_second_run_shows_another(
    store: PlaybookStore,
) -> None:
    """One outcome may be an accident; two that say the same are none."""
    at = add(store, "Run the tests by `pytest`; `tox` fails here.", "rule")
    store.observe([Observation(run=f"r{n}", bullet=at, verdict="helpful") for n in range(3)])
    (made,) = learn(store)
    assert (made.type, made.bullet_id, made.status) == ("update", at, "proposed")
    assert learn(store) == ()
    second = told(ran("tox", 127), ran("pytest", 127), ran("uv run pytest"), run="run_2")
    (done,) = learn(store, [chunk._replace(session="sess_2") for chunk in second])
    assert (done.id, done.status) == (made.id, "applied")
    assert bullet(store, at).content == LESSON
    assert store.deltas("proposed") == ()


def test_where_a_person_reviews_a_second_run_proposes_nothing_new(store: PlaybookStore) -> None:
    assert len(learn(store, how="review")) == 1
    second = told(ran("tox", 127), ran("pytest", 127), ran("uv run pytest"), run="run_2")
    assert learn(store, [chunk._replace(session="sess_2") for chunk in second], how="review") == ()
    assert len(store.deltas("proposed")) == 1


def test_a_change_that_the_store_refuses_is_proposed(
    store: PlaybookStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from daiku.playbook.rules.changes import refuse_unknown_bullet

    refused: ChangeRefusal = refuse_unknown_bullet("tu-00001")
    monkeypatch.setattr(store, "apply", lambda _: refused)
    (made,) = learn(store)
    assert made.status == "proposed"


def test_duplicates_are_merged_with_the_sums_of_what_runs_showed(store: PlaybookStore) -> None:
    """B3.4: the first id is kept, counts are sums, and doing it again does nothing."""
    first, other = add(store, "Use tabs.", "rule"), add(store, "Name tests well.", "rule")
    second = add(store, "use  tabs!", "model")
    store.observe(
        [
            Observation(run=f"r{n}", bullet=at, verdict="helpful")
            for n, at in enumerate((first, second, second))
        ]
    )
    (made,) = merge_duplicates(store, learn="auto")
    assert (made.type, made.status, made.bullet_id) == ("merge", "applied", first)
    assert (bullet(store, first).helpful, bullet(store, second).active) == (3, False)
    assert bullet(store, other).active
    assert merge_duplicates(store, learn="auto") == ()


def test_a_merge_of_a_persons_bullets_is_proposed_once(store: PlaybookStore) -> None:
    add(store, "Use tabs.")
    add(store, "use tabs", "rule")
    (made,) = merge_duplicates(store, learn="auto")
    assert made.status == "proposed"
    assert merge_duplicates(store, learn="auto") == merge_duplicates(store, learn="review") == ()


def test_learning_something_merges_what_says_the_same(store: PlaybookStore) -> None:
    first = add(store, "Name tests after behaviour.", "rule")
    second = add(store, "name tests after behaviour", "model")
    made = learn(store)
    assert [(each.type, each.status) for each in made] == [("add", "applied"), ("merge", "applied")]
    assert made[1].bullet_ids == (second,)
    assert bullet(store, first).active


def test_the_whole_playbook_is_not_read_again_for_each_change(
    store: PlaybookStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one of ten thousand bullets each reading costs; what a change names is looked up by its id."""
    for program in ("pytest", "eslint", "mypy"):
        add(store, f"Run the checks by `{program}`; `tox` fails here.", "rule")
    whole, read = store.load, list[str]()
    monkeypatch.setattr(store, "load", lambda: read.append("once") or whole())
    runs = ((one, f"uv run {one}") for one in ("pytest", "eslint", "mypy"))
    made = learn(store, told(*(each for old, new in runs for each in (ran(old, 127), ran(new)))))
    assert [(each.type, each.status) for each in made] == [("update", "applied")] * 3
    assert len(read) == 2, "before anything is changed, and to see what says the same now"


def test_two_processes_learn_the_same_at_once(open_playbook: OpenPlaybook) -> None:
    one, other = open_playbook(), open_playbook()
    assert len(learn(one)) == 1
    assert learn(other) == ()


SAID = ["use tabs", "never use tabs", "log by the logger", "keep lines below 100", "use `make check`"]
RAN = ["pytest", "uv run pytest", "make test", "npm test", "make lint", "ruff check"]


@settings(max_examples=examples(50), deadline=None)
@given(
    st.lists(st.sampled_from(SAID), max_size=4),
    st.lists(st.tuples(st.sampled_from(RAN), st.sampled_from([0, 127])), max_size=8),
    st.lists(st.sampled_from(SAID), max_size=3),
    st.sampled_from(["auto", "review"]),
)
def test_a_change_touches_no_other_bullet(
    known: list[str], commands: list[tuple[str, int]], said: list[str], how: LearnMode
) -> None:
    """B3.4: whatever is learnt, every bullet that no change names is as it was to the last byte."""
    tables = open_tables(open_place(None), "")
    store = PlaybookStore(tables, "repository", "here")
    for n, content in enumerate(known):
        add(store, f"{content} in place {n}", "rule" if n % 2 else "person")
    before = {each.id: each.model_dump_json() for each in store.load().bullets}
    chunks = told(
        *(ran(*each) for each in commands), *(steered(f"No, {each} in this project.") for each in said)
    )
    made = learn(store, chunks, how)
    named = {name for each in made if each.status == "applied" for name in (each.bullet_id, *each.bullet_ids)}
    after = {each.id: each.model_dump_json() for each in store.load().bullets}
    assert {name: text for name, text in after.items() if name not in named} == {
        name: text for name, text in before.items() if name not in named
    }
    again = learn(store, chunks, how)
    assert [each for each in again if each.type == "add"] == []
    tables.close()

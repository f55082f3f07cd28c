"""What becomes of proposals: new lessons, changes of those that are there, and nothing where nothing is new."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from daiku.domain.playbook import Bullet, Delta, LearntFrom, Origin, Playbook
from daiku.playbook.rules.curate import MOST, curate, refine
from daiku.playbook.rules.proposals import Proposal, find_code_spans
from daiku.playbook.rules.similar import Alike, are_near_duplicates, have_same_meaning
from tests.cases import examples, for_each

ALIKE = are_near_duplicates
PYTEST = "Run the tests by `uv run pytest`; `pytest` fails here."


def proposal(
    content: str, *, failed: tuple[str, ...] = (), section: str = "tool_usage", seq: int = 1
) -> Proposal:
    place = LearntFrom(session_id="s", run_id="r", seq=seq)
    why = "command_replaced" if failed else "corrected"
    return Proposal(section, content, why, (place,), keywords=find_code_spans(content), failed=failed)


def playbook(*contents: str, origin: Origin = "rule", active: bool = True) -> Playbook:
    return Playbook(
        bullets=tuple(
            Bullet(id=f"tu-{n:05}", section="tool_usage", content=content, origin=origin, active=active)
            for n, content in enumerate(contents, 1)
        )
    )


def made(
    *proposals: Proposal, before: Playbook | None = None, decided: tuple[Delta, ...] = ()
) -> list[tuple[str, str, str]]:
    found = curate(proposals, before or Playbook(), ALIKE, decided=decided)
    return [(each.type, each.bullet_id, each.content) for each in found]


def test_a_new_lesson_is_added_with_its_evidence() -> None:
    """B3.4: section, keywords, why and evidence come along, and no id is made up."""
    one = proposal(PYTEST, failed=("pytest",), section="build_and_test_commands", seq=7)
    (delta,) = curate([one], playbook("Use tabs."), ALIKE)
    assert (delta.type, delta.id, delta.bullet_id, delta.status) == ("add", "", "", "proposed")
    assert (delta.section, delta.content, delta.why) == (
        "build_and_test_commands",
        PYTEST,
        "command_replaced",
    )
    assert delta.keywords == ("uv run pytest", "pytest")
    assert [each.seq for each in delta.evidence] == [7]


@for_each(
    "again",
    [
        PYTEST,
        "run the tests by  `uv run pytest`; `pytest` fails here",
        "The tests: run by `uv run pytest`; here `pytest` fails.",
    ],
)
def test_what_an_active_bullet_says_is_not_proposed_again(again: str) -> None:
    assert made(proposal(again, failed=("pytest",)), before=playbook(PYTEST, origin="person")) == []


def test_the_same_in_more_words_is_an_update_and_no_second_bullet() -> None:
    """B3.4: similar is an update, not an addition."""
    before = playbook("Name tests after the behaviour that they show")
    more = "Name tests after the behaviour that they show, please"
    assert made(proposal(more), before=before) == [("update", "tu-00001", more)]
    theirs = playbook("Name tests after the behaviour that they show", origin="person")
    assert made(proposal(more), before=theirs) == []


@for_each("origin", ["rule", "model", "person", "import"])
def test_another_command_for_the_same_failed_one_is_an_update(origin: Origin) -> None:
    before = playbook("Use tabs.", "Run the tests by `pytest`.", origin=origin)
    assert made(proposal(PYTEST, failed=("pytest",)), before=before) == [("update", "tu-00002", PYTEST)]


def shown(before: Playbook, helpful: int, harmful: int) -> Playbook:
    bullets = tuple(
        each.model_copy(update={"helpful": helpful, "harmful": harmful}) for each in before.bullets
    )
    return before.model_copy(update={"bullets": bullets})


def test_a_bullet_that_runs_spoke_against_keeps_its_text_and_the_better_one_comes_beside_it() -> None:
    """A new text in its place would inherit what was shown of the old one, and rest with it."""
    wrong = playbook("Run the tests by `pytest`.")
    one = proposal(PYTEST, failed=("pytest",))
    assert made(one, before=shown(wrong, 0, 1)) == [("add", "", PYTEST)]
    assert made(one, before=shown(wrong, 1, 1)) == [("update", "tu-00001", PYTEST)]


def test_what_is_shown_once_more_speaks_for_a_bullet_that_was_spoken_against() -> None:
    """B3.4: a lesson that rests by mistake is told again, not learnt a second time."""
    (delta,) = curate([proposal(PYTEST, failed=("pytest",), seq=9)], shown(playbook(PYTEST), 0, 1), ALIKE)
    assert (delta.type, delta.tag, delta.bullet_id, delta.content) == ("tag", "helpful", "tu-00001", "")
    assert [each.seq for each in delta.evidence] == [9]
    assert made(proposal(PYTEST, failed=("pytest",)), before=shown(playbook(PYTEST), 2, 1)) == []


def test_the_opposite_of_a_bullet_is_an_update_of_it() -> None:
    before = playbook("Use tabs in the files of this project")
    assert made(proposal("Do not use tabs in the files of this project"), before=before) == [
        ("update", "tu-00001", "Do not use tabs in the files of this project")
    ]


def test_another_number_is_an_update() -> None:
    before = playbook("Keep lines of code below 100 characters")
    later = "Keep lines of code below 120 characters"
    assert made(proposal(later), before=before) == [("update", "tu-00001", later)]


def test_advice_on_another_command_stays_beside_what_is_there() -> None:
    before = playbook("Lint by `ruff check`; `flake8` fails here.")
    other = "Lint by `npm run lint`; `eslint` fails here."
    assert made(proposal(other, failed=("eslint",)), before=before) == [("add", "", other)]


@for_each("status", ["rejected", "undone", "proposed"])
def test_what_a_person_did_not_want_or_has_before_them_is_not_proposed_again(status: str) -> None:
    said = Delta.model_validate({"id": "d1", "type": "add", "content": PYTEST, "status": status})
    assert made(proposal(PYTEST, failed=("pytest",)), decided=(said,)) == []
    done = said.model_copy(update={"status": "applied"})
    assert made(proposal(PYTEST, failed=("pytest",)), decided=(done,)) == [("add", "", PYTEST)]


def test_what_a_person_took_out_is_not_proposed_again() -> None:
    """B3.4."""
    assert made(proposal("Use tabs."), before=playbook("Use tabs.", active=False)) == []


def test_two_proposals_that_say_the_same_are_one_with_the_evidence_of_both() -> None:
    (delta,) = curate([proposal("Use tabs.", seq=1), proposal("use tabs", seq=5)], Playbook(), ALIKE)
    assert [each.seq for each in delta.evidence] == [1, 5]


def test_of_two_words_on_a_failed_command_the_later_one_counts() -> None:
    later = "Run the tests by `make check`; `pytest` fails here."
    assert made(proposal(PYTEST, failed=("pytest",)), proposal(later, failed=("pytest",))) == [
        ("add", "", later)
    ]


def test_a_run_changes_one_bullet_once_and_proposes_only_a_few_things() -> None:
    before = playbook("Run the tests by `pytest` and lint by `flake8`.")
    two = (
        proposal(PYTEST, failed=("pytest",)),
        proposal("Lint by `ruff`; `flake8` fails here.", failed=("flake8",)),
    )
    assert [each[:2] for each in made(*two, before=before)] == [("update", "tu-00001")]
    assert len(made(*(proposal(f"Use `tool{n}`.") for n in range(30)))) == MOST


def test_duplicates_are_merged_into_the_first() -> None:
    """B3.4: grow and refine; the first id is kept."""
    before = playbook("Use tabs.", "Name tests well, after behaviour.", "use tabs!", "Use  tabs", "Use `x`.")
    found = refine(before, ALIKE)
    assert [(each.type, each.bullet_id, each.bullet_ids) for each in found] == [
        ("merge", "tu-00001", ("tu-00003", "tu-00004"))
    ]
    assert found[0].content == "Use tabs."
    assert refine(before, ALIKE, changed={"tu-00002"}) == ()
    assert refine(playbook("Use tabs.", "use tabs", active=False), ALIKE) == ()


DIFFERENT = [
    ("Use tabs in this project", "Never use tabs in this project"),
    ("Run the tests by `npm test`.", "Run the tests by `npm run test`."),
    ("Keep lines below 100 characters", "Keep lines below 120 characters"),
    ("テストでは時計を使う", "テストでは時計を使わない"),
]


@for_each(("one", "other"), DIFFERENT)
def test_texts_that_are_alike_in_words_may_say_different_things(one: str, other: str) -> None:
    assert not have_same_meaning(one, other, lambda *_: True)
    assert refine(playbook(one, other), lambda *_: True) == ()


MEASURES: list[Alike] = [ALIKE, lambda *_: True, lambda *_: False, lambda one, other: one[:1] == other[:1]]
WORDS = st.lists(
    st.sampled_from(["use", "tabs", "never", "`npm test`", "`make`", "3", "tests", "日本語", "。"]),
    min_size=1,
    max_size=5,
)
TEXTS = st.lists(WORDS.map(" ".join), max_size=12)


def carried_out(before: Playbook, deltas: tuple[Delta, ...]) -> Playbook:
    """The playbook once these merges are applied, as the store does it."""
    gone = {name for each in deltas for name in each.bullet_ids}
    bullets = tuple(
        each.model_copy(update={"active": each.active and each.id not in gone}) for each in before.bullets
    )
    return before.model_copy(update={"bullets": bullets})


@settings(max_examples=examples(200))
@given(TEXTS, st.sampled_from(MEASURES))
def test_once_refined_there_is_nothing_left_to_merge(contents: list[str], alike: Alike) -> None:
    """Idempotent and deterministic, whatever measures likeness; each bullet is taken in once, by one that stays."""
    before = playbook(*contents)
    found = refine(before, alike)
    assert found == refine(before, alike)
    assert refine(carried_out(before, found), alike) == ()
    taken = [name for each in found for name in each.bullet_ids]
    assert len(taken) == len(set(taken))
    assert set(taken).isdisjoint(each.bullet_id for each in found)


@settings(max_examples=examples(200))
@given(TEXTS, TEXTS)
def test_a_playbook_with_a_lesson_is_not_offered_it_again(known: list[str], new: list[str]) -> None:
    """Whatever is added is known afterwards: learning twice from the same changes nothing."""
    before = playbook(*known, origin="person")
    found = curate([proposal(each) for each in new], before, ALIKE)
    added = [each.content for each in found if each.type == "add"]
    after = playbook(*known, *added, origin="person")
    again = curate([proposal(each) for each in added], after, ALIKE)
    assert [each for each in again if each.type == "add"] == []


def test_a_check_that_only_passed_is_proposed_unless_a_lesson_or_a_change_names_it() -> None:
    """B3.4: whatever was decided on it."""
    place = LearntFrom(session_id="s", run_id="r", seq=1)
    check = Proposal(
        "tool_usage", "Run the tests by `uv run pytest`.", "passed_twice", (place,), ("uv run pytest",)
    )
    (new,) = curate([check], Playbook(), ALIKE)
    assert new.why == "passed_twice"
    assert made(check, before=playbook(PYTEST)) == made(check, before=playbook(PYTEST, active=False)) == []
    assert made(check, decided=(Delta(id="r1", type="add", content=PYTEST, status="undone"),)) == []

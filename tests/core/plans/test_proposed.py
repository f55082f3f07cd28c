"""What a plan may hold, how steps are named, and what a plan made anew keeps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.errors import ToolValidationError
from daiku.domain.work.plans import Plan, Step
from daiku.team.rules.plans.proposed import (
    MAX_STEPS,
    ProposedStep,
    as_proposed,
    describe_changes,
    find_plan_problems,
    find_proposal_problems,
    link_steps,
    mark_own_checks,
    revise_plan,
)
from daiku.team.rules.plans.reply import parse_plan_lines, parse_planned_step
from daiku.team.rules.plans.transitions import render_checklist
from tests.cases import for_each


def steps_of(*lines: str) -> tuple[Step, ...]:
    """The steps of a planner's reply with these lines below `Plan:`."""
    return link_steps(
        as_proposed(
            parse_planned_step(text) for text in parse_plan_lines("Plan:\n" + "\n".join(lines))["plans"]
        )
    )


def waits(steps: tuple[Step, ...]) -> dict[str, list[str]]:
    names = {step.step_id: step.name for step in steps}
    return {step.name: [names[each] for each in step.depends_on] for step in steps}


# ---- what no plan may hold


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, set[tuple[int, int]]]:
    size = draw(st.integers(1, 6))
    edge = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    return size, draw(st.sets(edge, max_size=8))


@given(graphs())
def test_a_plan_may_be_worked_exactly_where_every_step_can_begin(
    graph: tuple[int, set[tuple[int, int]]],
) -> None:
    size, edges = graph
    steps = [Step(step_id=f"step_{n}", name=f"s{n}") for n in range(size)]
    steps = [
        s.model_copy(update={"depends_on": tuple(f"step_{b}" for a, b in sorted(edges) if a == n)})
        for n, s in enumerate(steps)
    ]
    done: set[str] = set()
    for _ in steps:
        done |= {s.step_id for s in steps if done.issuperset(s.depends_on)}
    assert bool(find_plan_problems(Plan(name="p", goal="g", steps=tuple(steps)))) is (len(done) < size)


A, B = Step(step_id="step_a", name="a"), Step(step_id="step_b", name="b")


@for_each(
    ("steps", "said"),
    [
        ((), "no steps"),
        ((A, A.model_copy(update={"name": "b"})), "Two steps have the same id step_a: a, b"),
        ((A.model_copy(update={"depends_on": ("step_a",)}),), "“a” depends on itself"),
        ((A.model_copy(update={"depends_on": ("step_x",)}),), "'step_x', which is not a step of the plan"),
        (
            (
                A.model_copy(update={"depends_on": ("step_b",)}),
                B.model_copy(update={"depends_on": ("step_a",)}),
            ),
            "depend on each other in a cycle: a, b",
        ),
        ((A.model_copy(update={"name": " "}),), "no name"),
        (tuple(Step(name=f"s{n}") for n in range(MAX_STEPS + 1)), "at most 30"),
    ],
)
def test_every_way_in_which_a_plan_is_wrong_is_said(steps: tuple[Step, ...], said: str) -> None:
    found = find_plan_problems(Plan(name="p", goal="g", steps=steps))
    assert len(found) == 1
    assert said in found[0]


def test_completed_steps_do_not_count_towards_the_most() -> None:
    done = tuple(Step(name=f"d{n}", status="completed") for n in range(MAX_STEPS))
    assert not find_plan_problems(Plan(name="p", goal="g", steps=(*done, A)))


# ---- how steps are named


@given(st.lists(st.integers(0, 40), min_size=2, max_size=6, unique=True), st.data())
def test_the_number_that_is_written_is_the_steps_name(numbers: list[int], data: st.DataObject) -> None:
    lines: list[str] = []
    expected: dict[str, list[str]] = {}
    for place, number in enumerate(numbers):
        after = data.draw(st.sampled_from(numbers[:place])) if place else None
        lines += [f"- [ ] Step {number}: n{number}", f"  Depends on: {'none' if after is None else after}"]
        expected[f"n{number}"] = [] if after is None else [f"n{after}"]
    assert waits(steps_of(*lines)) == expected


@for_each("mark", ["Step 2", "step 2", "2", "Step #2", "ステップ 2"])
def test_a_step_is_named_by_its_number_in_any_spelling(mark: str) -> None:
    found = waits(steps_of("- [ ] Step 2: b", "- [ ] Step 3: c", "- [ ] Step 4: d", f"  Depends on: {mark}"))
    assert found == {"b": [], "c": ["b"], "d": ["b"]}


def test_without_numbers_places_are_the_names() -> None:
    assert waits(steps_of("- [ ] a", "- [ ] b", "- [ ] c", "  Depends on: 1")) == {
        "a": [],
        "b": ["a"],
        "c": ["a"],
    }


def test_what_is_indented_belongs_to_its_step() -> None:
    steps = steps_of(
        "- [ ] Step 1: a",
        "  - [ ] one",
        "    - [ ] two",
        "\t- [ ] three",
        "- [ ] Step 2: b",
        "  Depends on: 1",
    )
    assert [step.name for step in steps] == ["a", "b"]
    assert steps[0].description == "- [ ] one\n- [ ] two\n- [ ] three"
    assert steps[1].depends_on == (steps[0].step_id,)


@for_each(
    ("lines", "checks"),
    [
        (("  Check:", "  ```sh", "  test -f never", "  ```"), ("test -f never",)),
        (
            ("  Check:", "", "  ```", "  $ make", "  # a comment", "  make test", "  ```"),
            ("make", "make test"),
        ),
        (("  Check:", "```", "make \\", "  test", "```"), ("make test",)),
        (("  Check:", "```", "make &&", "make test", "```"), ("make && make test",)),
        (("  Check:", "  - `make`", "  - `make test`"), ("make", "make test")),
        (("  Check:", "    make test"), ("make test",)),
        (("  Check:", "  Depends on: none"), ()),
        (("  Check: none",), ()),
        (("  Check (10 min): `make`",), ("make",)),
        (("  Check: `make`", "  ```", "  no check", "  ```"), ("make",)),
    ],
)
def test_a_check_below_its_word_is_taken(lines: tuple[str, ...], checks: tuple[str, ...]) -> None:
    [step] = steps_of("- [ ] Step 1: a", *lines)
    assert step.acceptance == checks


def test_a_fence_below_a_check_is_read_in_a_fenced_reply_too() -> None:
    inner = "Plan:\n- [ ] Step 1: a\n  Check:\n  ```\n  make\n  ```\n- [ ] Step 2: b\nSummary: s"
    found = parse_plan_lines(f"````\n{inner}\n````")
    assert [parse_planned_step(text).acceptance for text in found["plans"]] == [("make",), ()]
    assert found["summary"] == "s"


def test_the_time_limit_of_a_check_is_kept_with_its_step() -> None:
    [step] = steps_of("- [ ] Step 1: a", "  Check (10 min): `make`", "  Check: `make x`")
    assert (step.acceptance, step.check_seconds) == (("make", "make x"), {"make": 600})


@for_each(
    ("lines", "said"),
    [
        (("- [ ] Step 1: a", "- [ ] Step 1: b"), "2 steps are called '1'"),
        (("- [ ] Step 1: a", "  Depends on: 2", "- [ ] Step 2: b"), "depend on each other in a cycle"),
        (("- [ ] Step 1: a", "  Depends on: 1"), "depends on itself"),
        (("- [ ] Step 1: a", "  Check: true"), "proves nothing"),
        (("- [ ] Step 1: a", "  Check:", "  ```", "  cat <<X", "  a", "  X", "  ```"), "several lines"),
        (tuple(f"- [ ] Step {n}: s{n}" for n in range(39)), "at most 30"),
    ],
)
def test_what_a_proposal_is_asked_back_for(lines: tuple[str, ...], said: str) -> None:
    texts = parse_plan_lines("Plan:\n" + "\n".join(lines))["plans"]
    assert said in " ".join(find_proposal_problems(as_proposed(parse_planned_step(text) for text in texts)))


def test_a_step_of_the_plan_before_is_no_objection() -> None:
    assert find_proposal_problems([ProposedStep("3", "three", after=("1",))]) == ()


# ---- a plan made anew


OLD = Plan(
    name="P",
    goal="G",
    status="in_progress",
    steps=(
        Step(step_id="step_1", name="one", status="completed", acceptance=("test -f one",)),
        Step(step_id="step_2", name="two", status="failed", acceptance=("make two",), depends_on=("step_1",)),
        Step(step_id="step_3", name="three", acceptance=("make three",), depends_on=("step_2",)),
    ),
)


def anew(*steps: ProposedStep, old: Plan = OLD) -> Plan:
    return revise_plan(old, steps, name="", goal="", summary="")


def test_steps_that_are_kept_are_named_by_the_numbers_they_were_shown_with() -> None:
    new = anew(ProposedStep("2", "two again", after=("1",)), ProposedStep("3", "three", after=("2",)))
    assert waits(new.steps) == {"one": [], "two again": ["one"], "three": ["two again"]}
    assert new.status == "draft"


def test_a_step_that_is_planned_again_though_it_is_done_is_the_one_that_is_kept() -> None:
    new = anew(ProposedStep("1", "one"), ProposedStep("2", "two again", after=("1",)))
    assert waits(new.steps) == {"one": [], "two again": ["one"]}
    assert new.steps[0].step_id == "step_1"


@given(st.sampled_from(["two", "another way"]), st.booleans())
def test_a_check_that_a_person_added_survives_a_plan_made_anew(name: str, dropped: bool) -> None:
    theirs = Plan.model_validate(
        OLD.model_dump()
        | {
            "steps": [
                *OLD.steps[:1],
                OLD.steps[1].model_copy(update={"acceptance": ("make two", "make sure")}),
                OLD.steps[2],
            ]
        }
    )
    old = mark_own_checks(OLD, theirs)
    assert [step.own_checks for step in old.steps] == [(), ("make sure",), ()]
    steps = (
        [ProposedStep("", name)]
        if dropped
        else [ProposedStep("", name, acceptance=("make two",)), ProposedStep("", "three", after=(name,))]
    )
    new = anew(*steps, old=old)
    assert "make sure" in {check for step in new.steps for check in step.acceptance}
    assert "make sure" in {check for step in new.steps for check in step.own_checks}
    assert "make sure" not in new.dropped_checks
    again = anew(ProposedStep("", "a third way"), old=new)
    assert "make sure" in again.steps[-1].acceptance


def test_checks_that_a_plan_made_anew_left_out_are_on_record_and_told() -> None:
    new = anew(ProposedStep("", "two by hand"), ProposedStep("", "three", acceptance=("make three",)))
    assert new.dropped_checks == ("make two",)
    assert (
        describe_changes(OLD, new)
        == "Removed steps: “two”\nAdded steps: “two by hand”\nRemoved checks: `make two`"
    )
    assert anew(ProposedStep("", "x"), old=new).dropped_checks == ("make two", "make three")
    assert describe_changes(OLD, OLD) == ""


def test_whoever_plans_anew_sees_checks_and_order() -> None:
    shown = render_checklist(OLD)
    assert "- [ ] ❌ Step 2: two `step_2`\n  - Check: `make two`\n  - Depends on: 1\n" in shown


def test_a_name_that_two_steps_have_names_none() -> None:
    with pytest.raises(ToolValidationError, match="but 2 steps have that name"):
        link_steps([ProposedStep("", "a"), ProposedStep("", "a"), ProposedStep("", "b", after=("a",))])

"""Plans as text: a checklist in and out, the planner's lines, a decomposition into subtasks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.errors import ToolValidationError, UsageError
from daiku.domain.work.plans import Plan, Step, WorkStatus
from daiku.team.rules.plans.markdown import format_for_approval, read_plan_text, revise_plan, to_markdown

LINE = st.text(
    st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp"), max_codepoint=0x3100),
    min_size=1,
    max_size=30,
).filter(lambda text: bool(text.strip()))
TEXT = st.lists(LINE | st.sampled_from(["- Check: `x`", "- [ ] no", "\\back", "# head", "> q"]), max_size=3)
STATUS: st.SearchStrategy[WorkStatus] = st.sampled_from(["pending", "in_progress", "completed", "failed"])


def flat(text: str) -> str:
    return " ".join(text.split())


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    names = draw(st.lists(LINE.map(flat), min_size=1, max_size=4, unique_by=str.lower))
    steps: list[Step] = []
    for name in names:
        after = draw(st.sets(st.sampled_from([s.step_id for s in steps]))) if steps else set[str]()
        steps.append(
            Step(
                name=f"name {name} end",
                description="\n".join(flat(line) for line in draw(TEXT)),
                status=draw(STATUS),
                acceptance=tuple(draw(st.lists(LINE.map(flat), max_size=2))),
                depends_on=tuple(s.step_id for s in steps if s.step_id in after),
            )
        )
    return Plan(
        name=flat(draw(LINE)).lstrip("#").strip() or "P",
        goal="\n".join(flat(line) for line in draw(TEXT.filter(bool))),
        summary="\n".join(flat(line) for line in draw(TEXT)),
        steps=tuple(steps),
    )


def facts(plan: Plan) -> tuple[object, ...]:
    """All of a plan but its ids."""
    numbers = {step.step_id: number for number, step in enumerate(plan.steps, 1)}
    steps = tuple(
        (s.name, s.description, s.status, s.acceptance, tuple(numbers[d] for d in s.depends_on))
        for s in plan.steps
    )
    return plan.name, plan.goal, plan.summary, steps


@given(plans())
def test_a_plan_written_as_a_checklist_is_read_back_as_it_was(plan: Plan) -> None:
    text = to_markdown(plan)
    again = read_plan_text(text)
    assert facts(again) == facts(plan)
    assert facts(read_plan_text(to_markdown(again))) == facts(plan)


@given(plans(), st.data())
def test_an_edited_checklist_keeps_the_ids_and_the_order_of_its_steps(
    plan: Plan, data: st.DataObject
) -> None:
    assert revise_plan(plan, to_markdown(plan)) == plan
    gone = data.draw(st.sampled_from(plan.steps))
    kept = tuple(
        s.model_copy(update={"depends_on": tuple(d for d in s.depends_on if d != gone.step_id)})
        for s in plan.steps
        if s is not gone
    )
    if kept:
        fewer = plan.model_copy(update={"steps": kept})
        assert revise_plan(plan, to_markdown(fewer)) == fewer


def test_what_a_checklist_looks_like() -> None:
    plan = Plan(
        name="Greeting",
        goal="Say hello",
        steps=(
            Step(step_id="step_00000001", name="Write it", status="completed", acceptance=("pytest -q",)),
            Step(step_id="step_00000002", name="Ship it", status="failed", depends_on=("step_00000001",)),
            Step(step_id="step_00000003", name="Tell it", description="To all."),
        ),
    )
    assert to_markdown(plan) == (
        "# Greeting\n\n> Say hello\n\n"
        "- [x] Step 1: Write it `step_00000001`\n"
        "  - Check: `pytest -q`\n"
        "- [ ] ❌ Step 2: Ship it `step_00000002`\n"
        "  - Depends on: 1\n"
        "- [ ] Step 3: Tell it `step_00000003`\n"
        "  To all.\n\n"
        "*Progress: 1/3 (33%)*\n"
    )


def test_whoever_is_asked_to_approve_sees_what_will_be_run_and_no_ids() -> None:
    plan = Plan(
        name="Greeting",
        goal="Say hello",
        summary="Two small files.",
        steps=(
            Step(step_id="step_00000001", name="Write it", acceptance=("pytest -q",)),
            Step(step_id="step_00000002", name="Ship it", depends_on=("step_00000001",)),
        ),
    )
    assert format_for_approval(plan) == (
        "# Greeting\n\nSay hello\n\nTwo small files.\n\n"
        "- [ ] Step 1: Write it\n"
        "  - Check: `pytest -q`\n"
        "- [ ] Step 2: Ship it\n"
        "  - Depends on: 1"
    )


def test_a_checklist_of_somebody_elses_hand() -> None:
    plan = read_plan_text(
        "# 📋 Execution Plan\n\n**Goal**: Fix the bug\n\n"
        "- [x] **task-1**: Find it\n- [ ] **task-2**: Fix it\n\n   in the parser\n- [ ] ❌ Test it\n\n"
        "*Progress: 1/3 (33%) complete*\n"
    )
    assert [(s.name, s.status) for s in plan.steps] == [
        ("Find it", "completed"),
        ("Fix it", "pending"),
        ("Test it", "failed"),
    ]
    assert plan.steps[1].description == "in the parser"
    assert plan.status == "draft"  # nobody has approved of what is left
    one, two, three = plan.steps
    assert (one.depends_on, two.depends_on, three.depends_on) == ((), (one.step_id,), (two.step_id,))


def test_a_plain_list_is_a_plan_too() -> None:
    plan = read_plan_text("Make tea\n\n1. Boil water\n2. Pour it\n")
    assert (plan.goal, [s.name for s in plan.steps], plan.status) == (
        "Make tea",
        ["Boil water", "Pour it"],
        "draft",
    )


def test_the_planners_lines_become_steps_one_after_the_other() -> None:
    plan = read_plan_text(
        "Project Name: Snake\n\nYour Reply to the Human Prompter: I will write a game.\n\n"
        "Current Focus: a snake game in Python\n\n"
        "Plan:\n- [ ] Step 1: Write the loop.\n- [ ] Step 2: Draw the snake.\n\n"
        "Summary: Two steps.\n"
    )
    assert (plan.name, plan.goal, plan.summary) == ("Snake", "a snake game in Python", "Two steps.")
    assert [s.name for s in plan.steps] == ["Write the loop.", "Draw the snake."]
    assert plan.steps[1].depends_on == (plan.steps[0].step_id,)


def test_a_decomposition_with_actions_becomes_a_plan() -> None:
    shaped = {
        "goal": {
            "main_objective": "Add a login",
            "success_criteria": ["users can log in"],
            "constraints": ["no db"],
        },
        "subtasks": [
            {
                "id": "task-2",
                "description": "Write tests",
                "dependencies": ["task-1"],
                "estimated_complexity": "low",
            },
            {"id": "task-1", "description": "Write code", "dependencies": [], "required_tools": ["files"]},
        ],
        "execution_order": ["task-1", "task-2"],
        "actions": [
            {"task_id": "task-1", "tool": "files/write", "purpose": "make it", "expected_outcome": "a file"}
        ],
    }
    plan = read_plan_text(f"```json\n{json.dumps(shaped)}\n```")
    assert (plan.name, plan.goal) == ("Add a login", "Add a login")
    assert [s.name for s in plan.steps] == ["Write code", "Write tests"]
    assert plan.steps[1].depends_on == (plan.steps[0].step_id,)
    assert "make it (files/write): a file" in plan.steps[0].description
    assert "users can log in" in plan.summary


def test_steps_as_json_with_ids_of_their_own() -> None:
    plan = read_plan_text(
        '{"goal": "g", "steps": [{"id": "a", "name": "A"}, {"id": "b", "name": "B", "depends_on": ["a"]}]}'
    )
    assert plan.steps[1].depends_on == (plan.steps[0].step_id,)


def test_a_text_without_a_step_is_refused_with_what_would_be_right() -> None:
    with pytest.raises(UsageError, match="no step"):
        read_plan_text("Just words.")
    with pytest.raises(ToolValidationError, match="is not a step of the plan"):
        read_plan_text("- [ ] Step 1: a\n  - Depends on: 9\n")

"""The planner: its lines become a plan that can be worked; any other reply is asked for again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daiku.domain.messages import AssistantMessage, ToolMessage, UserMessage
from daiku.domain.work.handovers import Brief, CommandOutcome, CommandsRun, PlanMade
from daiku.domain.work.plans import Plan, Step
from daiku.models.rules.replies.parse import Unreadable
from daiku.run.recorded.replay import replay
from daiku.run.rules.state.state import Plans, Request, State
from daiku.team.coding.planner import PLAN, build_plan_request, find_plan
from daiku.team.part import Stage
from daiku.team.rules.plans.reply import parse_planned_step
from daiku.team.table import find_agent
from daiku.texts.text import Text
from tests.agents.acting import PROTOCOLS, act, app_with, called, in_protocol, said
from tests.cases import for_each

LINES = """Project Name: Snake

Your Reply to the Human Prompter: Sure, I will build the snake for the terminal.

Current Focus: Python curses game loop

Plan:
- [ ] Step 1: Write snake.py
  with a board of 20 by 20.
  Check: `python -m py_compile snake.py`
  Check: diagnostics: snake.py
- [ ] Step 2: Write test_snake.py
- [ ] Step 3: Write the README
  Depends on: none
- [ ] Step 4: Run the tests
  Depends on: step 1, Step 2
  Check: `python -m pytest -q`

Summary: A small game; whether colours work depends on the terminal."""
KEYS = {
    "project": "Snake",
    "reply": "Sure.",
    "focus": "curses",
    "plans": ["Write it\nCheck: make", "Test it"],
    "summary": "A game.",
}
ASKED = (UserMessage(text="The user asked: a game"),)


def read(text: str) -> AssistantMessage:
    found = PLAN.read(AssistantMessage(text=Text(text)), ASKED, False)
    assert isinstance(found, AssistantMessage), found
    return found


# -- the form ------------------------------------------------------------------------------


async def test_lines_become_a_plan_with_order_and_checks(tmp_path: Path) -> None:
    result, state, watch = await act(app_with(tmp_path, {"text": LINES}), "planner", "A game", mode="plan")
    assert result.status == "completed"
    assert said(watch) == [
        "Sure, I will build the snake for the terminal.",
        "A small game; whether colours work depends on the terminal.",
    ]
    made = find_plan(state)
    assert isinstance(made, PlanMade)
    plan = made.plan
    assert (plan.name, plan.goal, plan.summary) == ("Snake", "A game", result.text)
    assert plan.focus == "Python curses game loop"
    one, two, three, four = plan.steps
    assert one.name == "Write snake.py"
    assert one.description == "with a board of 20 by 20."
    assert one.acceptance == ("python -m py_compile snake.py", "diagnostics: snake.py")
    assert [s.depends_on for s in plan.steps] == [(), (one.step_id,), (), (one.step_id, two.step_id)]
    assert three.acceptance == ()
    assert (await replay(watch.chunks)).difference is None
    assert four.acceptance == ("python -m pytest -q",)


def test_json_with_the_five_keys_is_the_same_plan() -> None:
    reply = read(f"Here it is:\n```json\n{json.dumps({**KEYS, 'mood': 'good'})}\n```")
    (call,) = reply.calls
    assert call.tool == "plan/propose"
    assert call.args == {
        "focus": "curses",
        "name": "Snake",
        "summary": "A game.",
        "steps": [
            {"id": "", "name": "Write it", "description": "", "depends_on": [], "acceptance": ["make"]},
            {"id": "", "name": "Test it", "description": "", "depends_on": ["1"], "acceptance": []},
        ],
    }


@for_each("part", ["Project Name:", "Your Reply to the Human", "Current Focus:", "Summary:"])
def test_a_plan_without_one_of_its_parts_is_unreadable(part: str) -> None:
    lines = [line for line in LINES.split("\n") if not line.startswith(part)]
    found = PLAN.read(AssistantMessage(text=Text("\n".join(lines))), ASKED, False)
    assert isinstance(found, Unreadable)
    assert part.split(":", maxsplit=1)[0] in found.problem


@for_each(
    "text",
    [
        "",
        "I would first write the board.",
        "{}",
        json.dumps({k: v for k, v in KEYS.items() if k != "focus"}),
        LINES.replace("Sure, I will", "As an AI language model, I will"),
        LINES.replace("- [ ] Step", "- Nothing"),
    ],
)
def test_any_other_reply_is_unreadable(text: str) -> None:
    assert isinstance(PLAN.read(AssistantMessage(text=Text(text)), ASKED, False), Unreadable)


def test_a_plan_that_was_cut_off_is_not_taken_for_whole() -> None:
    assert isinstance(PLAN.read(AssistantMessage(text=Text(LINES)), ASKED, True), Unreadable)


@for_each(
    ("text", "checks", "after"),
    [
        ("Do it\n  Check: `a b`", ("a b",), None),
        ("Do it\n  - **Check:** ``echo `date` ``", ("echo `date`",), None),
        ("Do it\n検証：`npm test`\n依存: ステップ 2", ("npm test",), ("2",)),
        ("Do it\nDepends on: Steps 1, 2 and 3", (), ("1", "2", "3")),
        ("Do it\nDepends on: -", (), ()),
        ("Do it\nCheck:", (), None),
        ("Check: it", (), None),
    ],
)
def test_what_stands_below_a_step_is_read(
    text: str, checks: tuple[str, ...], after: tuple[str, ...] | None
) -> None:
    step = parse_planned_step(text)
    assert (step.acceptance, step.depends_on) == (checks, after)


# -- whole runs ----------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_the_form_works_in_every_protocol_and_after_a_look(tmp_path: Path, protocol: str) -> None:
    look = in_protocol(protocol, "files/list", {"path": "."})
    app = app_with(tmp_path, look, {"text": LINES}, protocol=protocol)
    result, state, watch = await act(app, "planner", mode="plan")
    assert (result.status, len(state.plans.all[0].steps)) == ("completed", 4)
    assert [tool for tool, _ in called(watch)] == ["files/list", "plan/propose"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_model_may_propose_by_itself(tmp_path: Path, protocol: str) -> None:
    args = {"goal": "a game", "steps": [{"name": "Write it"}, {"name": "Test it", "depends_on": ["1"]}]}
    last = {"native": "There it is.", "action_list": '{"actions": [], "comment": "There it is."}'}
    words = last.get(protocol, '{"done": true, "comment": "There it is."}')
    app = app_with(tmp_path, in_protocol(protocol, "plan/propose", args), {"text": words}, protocol=protocol)
    result, state, _ = await act(app, "planner", mode="plan")
    assert (result.status, result.text) == ("completed", "There it is.")
    assert [s.name for s in state.plans.all[0].steps] == ["Write it", "Test it"]


@pytest.mark.slow  # it waits between attempts as a real run does
async def test_a_reply_like_a_machines_is_asked_for_again(tmp_path: Path) -> None:
    machine = LINES.replace("Sure, I will", "As an AI, I will")
    result, state, watch = await act(app_with(tmp_path, {"text": machine}, {"text": LINES}), "planner")
    assert result.status == "completed"
    assert len(state.plans.all) == 1
    assert not any("As an AI," in text for text in said(watch))
    assert any("As an AI" in json.loads(c.data)["text"] for c in watch.chunks if c.type == "notice")


@pytest.mark.slow  # it waits between attempts as a real run does
async def test_a_circle_in_the_plan_is_asked_for_again(tmp_path: Path) -> None:
    circle = LINES.replace("Depends on: none", "Depends on: 4").replace("step 1, Step 2", "3")
    result, state, _ = await act(app_with(tmp_path, {"text": circle}, {"text": LINES}), "planner")
    assert result.status == "completed"
    assert len(state.plans.all) == 1
    assert not any(isinstance(m, ToolMessage) and not m.ok for m in state.conversation.messages)


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        (LINES.replace("Depends on: step 1, Step 2", "Depends on: 9"), "is not a step of the plan"),
        (LINES.replace("`python -m pytest -q`", "all tests pass"), "no program 'all'"),
        (
            LINES.replace("Depends on: none", "Depends on: 4").replace("step 1, Step 2", "3"),
            "depend on each other in a cycle",
        ),
        (LINES.replace("`python -m pytest -q`", "`true`"), "proves nothing"),
    ],
)
async def test_a_plan_that_is_refused_each_time_fails_after_five_tries_with_the_reason(
    tmp_path: Path, wrong: str, cause: str
) -> None:
    result, state, watch = await act(
        app_with(tmp_path, *[{"text": wrong}] * 9), "planner", "A game", mode="plan"
    )
    assert result.status == "failed"
    assert result.error is not None
    assert cause in result.error.message
    assert state.plans.all == ()
    retries = [c for c in watch.chunks if c.type == "notice"]
    proposals = [c for c in watch.chunks if c.type == "tool_call"]
    assert len(proposals) <= 1
    assert len(retries) + 1 <= 5


async def test_a_planner_whose_plans_are_refused_each_for_another_reason_fails_after_five(
    tmp_path: Path,
) -> None:
    changed = (LINES.replace("Depends on: step 1, Step 2", f"Depends on: {n}") for n in range(7, 20))
    texts = [text.replace("Sure, I", f"Try {n}: I") for n, text in enumerate(changed)]
    app = app_with(tmp_path, *[{"text": text} for text in texts])
    result, state, _ = await act(app, "planner", "A game", mode="plan")
    assert result.status == "failed"
    assert result.error is not None
    assert "No plan could be made: depends_on names '11'" in result.error.message
    assert state.plans.all == ()


async def test_planning_writes_nothing(tmp_path: Path) -> None:
    write = {"calls": [{"tool": "files/write", "args": {"path": "x", "content": "y"}}]}
    run = {"calls": [{"tool": "shell/run", "args": {"command": "touch y"}}]}
    result, _, _ = await act(app_with(tmp_path, write, run, {"text": LINES}), "planner")
    assert result.status == "completed"
    assert list((tmp_path / "project").iterdir()) == []


# -- hand-over -----------------------------------------------------------------------------


def test_the_request_names_what_the_user_asked() -> None:
    assert build_plan_request(Brief(request="A game")) == "The user asked: A game"


def test_planning_again_is_told_the_plan_and_what_failed() -> None:
    plan = Plan(name="Snake", goal="g", steps=(Step(name="Write it", status="completed"),))
    failed = CommandOutcome(command="make", exit_code=2, output="no rule")
    text = build_plan_request(Brief(request="A game", plan=plan, commands=CommandsRun(commands=(failed,))))
    assert "- [x] Step 1: Write it" in text
    assert "`make` ended with exit code 2:\n```\nno rule\n```" in text


def test_only_a_plan_of_its_own_is_handed_over() -> None:
    old = Plan(name="Old", goal="g", steps=(Step(name="a"),))
    brief = Brief(request="x", plan=old)
    assert isinstance(find_plan(State(request=Request(brief=brief), plans=Plans((old,)))), Unreadable)
    assert isinstance(find_plan(State()), Unreadable)
    new = Plan(name="New", goal="g", steps=(Step(name="b"),))
    assert find_plan(State(request=Request(brief=brief), plans=Plans((old, new)))) == PlanMade(plan=new)


def test_the_agent_is_wired() -> None:
    planner = find_agent("planner")
    assert (planner.role, planner.stage) == (PLAN, Stage(find_plan, build_plan_request))

"""Roles' formats are read as they are written, and a reply that lacks something says what."""

from __future__ import annotations

from daiku.domain.messages import AssistantMessage
from daiku.models.rules.replies.parse import Unreadable
from daiku.models.rules.textcalls.codecs import FormatProblem, decode
from daiku.team.rules.plans.reply import parse_planned_step, read_plan
from daiku.texts.text import Text
from tests.cases import for_each

PLAN = """Project Name: Snake
Your Reply to the Human Prompter: Sure, let me build it.
It will be fun.
Current Focus: the board
Plan:
- [ ] Step 1: Write board.py
  with tests
- [ ] Step 2: Run the tests
Summary: A small game."""


def test_a_plan_in_lines_has_five_parts() -> None:
    plan = read_plan(PLAN)
    assert not isinstance(plan, Unreadable)
    assert plan.model_dump() == {
        "project": "Snake",
        "reply": "Sure, let me build it.\nIt will be fun.",
        "focus": "the board",
        "plans": ("Step 1: Write board.py\nwith tests", "Step 2: Run the tests"),
        "summary": "A small game.",
    }


@for_each(
    "written",
    [
        PLAN.replace("\n", "\r\n"),
        f"```\n{PLAN}\n```",
        PLAN.replace("Project Name:", "**Project Name:**").replace("Plan:", "## Plan:"),
        PLAN.replace("- [ ] Step 1:", "* [x] **Step 1:**").replace(": ", "： "),
        "Here is the plan.\n\n" + PLAN,
    ],
)
def test_a_plan_is_read_through_its_ornaments(written: str) -> None:
    plan = read_plan(written)
    assert not isinstance(plan, Unreadable), plan
    assert plan.project == "Snake"
    one, two = (parse_planned_step(text) for text in plan.plans)
    assert (one.number, one.name, two.number, two.name) == ("1", "Write board.py", "2", "Run the tests")


def test_a_plan_may_be_json_with_the_same_keys() -> None:
    reply = '{"project": "p", "reply": "r", "focus": "f", "plans": ["Step 1: a", "Step 2: b"], "summary": "s", "x": 1}'
    plan = read_plan(reply)
    assert not isinstance(plan, Unreadable)
    assert plan.plans == ("Step 1: a", "Step 2: b")


@for_each(
    ("reply", "problem"),
    [
        (PLAN.replace("Current Focus: the board\n", ""), 'is missing "Current Focus:"'),
        (PLAN.replace("- [ ]", "-"), 'is missing "Plan:"'),
        (PLAN.replace("Sure,", "As an AI language model,"), "As an AI"),
        ("I will write a snake game.", 'is missing "Project Name:"'),
        ('{"project": "p"}', '"reply" is missing'),
        (
            '{"project": "p", "reply": "r", "focus": "f", "plans": [{"step": "a"}], "summary": "s"}',
            '"plans" must be a list of steps',
        ),
    ],
)
def test_a_plan_that_lacks_something_says_what(reply: str, problem: str) -> None:
    plan = read_plan(reply)
    assert isinstance(plan, Unreadable)
    assert problem in plan.problem


ONE = '{"operation": "files/read", "args": {"path": "a"}}'


def decoded(reply: str) -> AssistantMessage | FormatProblem:
    return decode(AssistantMessage(text=Text(reply)), "action_list", strict=True)


@for_each(
    "reply",
    [
        f'{{"actions": [{ONE}]}}',
        f"[{ONE}]",
        ONE,
        f'{{"action_list": [{ONE}]}}',
        '{"actions": [{"tool": "files/read", "arguments": {"path": "a"}}]}',
        '<tool_call>\n{"name": "files/read", "arguments": {"path": "a"}}\n</tool_call>',
        '{"actions": [{"operation": "files/read", "args": "{\\"path\\": \\"a\\"}"}]}',
    ],
)
def test_an_action_list_has_many_forms(reply: str) -> None:
    found = decoded(reply)
    assert isinstance(found, AssistantMessage), found
    assert [(call.tool, call.args) for call in found.calls] == [("files/read", {"path": "a"})]


def test_an_empty_list_only_answers() -> None:
    found = decoded('{"actions": [], "comment": "Done."}')
    assert isinstance(found, AssistantMessage)
    assert (found.calls, found.text) == ((), "Done.")


@for_each(
    ("reply", "problem"),
    [
        ('{"answer": 1}', "no JSON"),
        ('{"actions": [{"args": {}}]}', "actions.0.operation: field required"),
        ('{"actions": [{"operation": "x", "args": 3}]}', "actions.0.args"),
        ('{"actions": [' + ",".join([ONE] * 51) + "]}", "at most 50 items"),
    ],
)
def test_a_wrong_action_list_says_where(reply: str, problem: str) -> None:
    found = decoded(reply)
    assert isinstance(found, FormatProblem)
    assert problem in found.problem


def test_the_outer_comment_wins() -> None:
    """C2.2"""
    found = decoded('{"command": {"comment": "inner", "tool": "git/status", "args": {}}, "comment": "outer"}')
    assert isinstance(found, AssistantMessage)
    assert (found.text, [call.tool for call in found.calls]) == ("outer", ["git/status"])


def test_the_end_is_said_with_done() -> None:
    """R2.50, R2.51"""
    found = decoded('{"done": true, "comment": "All good"}')
    assert isinstance(found, AssistantMessage)
    assert (found.calls, found.text) == ((), "All good")


@for_each(
    ("reply", "problem"),
    [
        ('{"done": false}', '"done" must be true'),
        ('{"command": {"args": {}}}', '"command.tool" is missing'),
        ('{"comment": "hm"}', 'must have "command"'),
        ('{"command": "ls"}', 'must have "command" (an object'),
        ('{"command": {"tool": "a/b", "args": [1]}}', "arguments of a/b"),
        ("[1]", "no JSON"),
    ],
)
def test_a_wrong_command_says_why(reply: str, problem: str) -> None:
    found = decoded(reply)
    assert isinstance(found, FormatProblem)
    assert problem in found.problem

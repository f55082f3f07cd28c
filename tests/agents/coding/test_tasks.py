"""What who makes tasks and who reports on them are told, and how their replies are read."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.messages import AssistantMessage, UserMessage
from daiku.domain.work.handovers import TasksMade, TasksReported
from daiku.domain.work.plans import Plan, Step, Task, WorkStatus
from daiku.models.rules.replies.parse import Unreadable
from daiku.run.rules.state.state import Conversation, State
from daiku.team.coding.tasks import (
    build_report_request,
    build_task_maker,
    build_task_reporter,
    build_tasks_request,
)
from daiku.team.rules.tasks import PlanStep, build_calls, build_plain_report, find_task_id, with_list
from daiku.texts.text import Text
from daiku.tools.registry import ToolRegistry
from daiku.tools.table import build_builtin_tools
from tests.cases import for_each

REGISTRY = ToolRegistry(build_builtin_tools())
STEP = Step(name="環境構築", description="package.jsonを作る", acceptance=("npm test",))
PLACE = PlanStep(Plan(name="ゲーム", goal="ゲームを実装する", steps=(STEP,)), STEP)


def done(*statuses: WorkStatus) -> PlanStep:
    tasks = tuple(
        Task(operation="shell/run", args={"command": str(n)}, status=s) for n, s in enumerate(statuses)
    )
    step = STEP.model_copy(update={"task_list": tasks})
    return PlanStep(PLACE.plan.model_copy(update={"status": "in_progress", "steps": (step,)}), step)


def test_the_request_for_tasks_has_goal_step_checks_conversation_and_operations() -> None:
    said = (UserMessage(text="はい、お願いします"),)
    operations = tuple(spec for spec in REGISTRY.specs() if spec.name in ("files/write", "shell/run"))
    text = build_tasks_request(PLACE, said, operations)
    for part in ("環境構築", "ゲームを実装する", "package.jsonを作る", "npm test", "はい、お願いします"):
        assert part in text
    line = next(line for line in text.splitlines() if line.startswith("- files__write"))
    schema = json.loads(text.splitlines()[text.splitlines().index(line) + 1])
    assert "content" in schema["properties"]


def test_the_request_for_a_report_has_the_log_and_the_persons_words() -> None:
    text = build_report_request(PLACE, "Task 1 (completed): files/write {}", "はい")
    assert "Task 1 (completed)" in text
    assert "はい" in text


def read_list(reply: str) -> Any:
    agent = build_task_maker(REGISTRY.resolve, lambda _: "")
    assert agent.role is not None
    message = agent.role.read(AssistantMessage(text=Text(reply)), (), False)
    if isinstance(message, Unreadable):
        return message.problem
    made = (
        agent.stage.hand_back(State(conversation=Conversation(messages=(message,)))) if agent.stage else None
    )
    assert isinstance(made, TasksMade)
    return made.tasks


LISTED = [{"operation": "file_ops.write", "args": {"path": "a", "content": "b"}}]


@for_each(
    "reply",
    [
        json.dumps({"tasks": LISTED}),
        json.dumps({"task_list": LISTED}),
        json.dumps({"actions": LISTED}),
        json.dumps(LISTED),
        f"Here it is:\n```json\n{json.dumps({'TaskList': LISTED})}\n```",
    ],
)
def test_a_list_of_tasks_is_read_in_its_usual_forms(reply: str) -> None:
    (task,) = read_list(reply)
    assert (task.operation, task.status) == ("files/write", "pending")


@for_each(
    ("reply", "problem"),
    [
        ("Nothing to do.", "no JSON"),
        ('{"tasks": []}', "is empty"),
        ('{"plan": 1}', 'no "tasks" list'),
        (json.dumps({"tasks": LISTED * 51}), "at most 50"),
        (
            '{"tasks": [{"operation": "x", "args": {"a": {"$ref": "t9.text"}}}]}',
            "does not name an earlier task",
        ),
    ],
)
def test_what_is_wrong_with_a_list_is_said(reply: str, problem: str) -> None:
    assert problem in read_list(reply)


@for_each(
    ("said", "problem"),
    [
        ({"status": "failed", "succeeded": 1, "failed": 1, "cause": "x", "next_action": "y"}, ""),
        ({"status": "completed", "succeeded": 1, "failed": 1}, '"status" must be'),
        ({"status": "failed", "succeeded": 2, "failed": 0, "cause": "x", "next_action": "y"}, '"succeeded"'),
        ({"status": "failed", "succeeded": 1, "failed": 1}, '"cause" and "next_action"'),
    ],
)
def test_a_report_has_to_agree_with_what_happened(said: dict[str, Any], problem: str) -> None:
    agent = build_task_reporter(build_plain_report(done("completed", "failed", "pending")))
    assert agent.role is not None
    read = agent.role.read(AssistantMessage(text=Text(json.dumps(said))), (), False)
    if problem:
        assert isinstance(read, Unreadable)
        assert problem in read.problem
    else:
        assert isinstance(read, AssistantMessage)
        made = (
            agent.stage.hand_back(State(conversation=Conversation(messages=(read,)))) if agent.stage else None
        )
        assert isinstance(made, TasksReported)


STATUSES: st.SearchStrategy[WorkStatus] = st.sampled_from(["pending", "in_progress", "completed", "failed"])


@given(st.lists(STATUSES, max_size=6), st.lists(st.integers(0, 8), max_size=6))
def test_a_new_list_loses_nothing_that_was_done_and_does_nothing_twice(
    statuses: list[WorkStatus], wanted: list[int]
) -> None:
    place = done(*statuses)
    new = tuple(Task(operation="shell/run", args={"command": str(n)}) for n in wanted)
    after = with_list(place, new)
    before = [t.task_id for t in place.step.task_list if t.status == "completed"]
    kept = [t.task_id for t in after.step.task_list if t.status == "completed"]
    assert sorted(kept) == sorted(before)
    assert with_list(after, after.step.task_list) == after
    ids = [
        find_task_id(call.id)
        for call in build_calls(after, editor=False, check_seconds=600)
        if "task_" in call.id
    ]
    assert ids == [t.task_id for t in after.step.task_list if t.status != "completed"]
    assert len(set(ids)) == len(ids)

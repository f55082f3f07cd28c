"""The agents that split a plan step into tasks and report on the tasks."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Literal, cast

from pydantic import Field, ValidationError

from daiku.dataclass import replace
from daiku.domain.base import Frozen, JsonObject
from daiku.domain.labels import Label
from daiku.domain.messages import AssistantMessage, Message
from daiku.domain.tools import ToolSpec
from daiku.domain.work.handovers import TaskReport, TasksMade, TasksReported
from daiku.domain.work.plans import Task
from daiku.models.rules.replies.parse import Unreadable
from daiku.prompts import render
from daiku.run.rules.calls.arguments import schema_of
from daiku.run.rules.calls.toolnames import wire_name
from daiku.run.rules.state.context import transcript
from daiku.run.rules.state.state import State
from daiku.team.agent import LOOKING, Agent, Prompt
from daiku.team.form_tool import Read, with_tool_call
from daiku.team.part import Part, Stage
from daiku.team.role import Role
from daiku.team.rules.plans.transitions import render_checklist
from daiku.team.rules.tasks import Check, PlanStep, read_report, read_tasks
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import Text, text


def _collect_tasks(state: State) -> TasksMade | Unreadable:
    try:
        return TasksMade.model_validate(_find_data(state))
    except ValidationError:
        return Unreadable(text("roles.no_tasks"))


def _collect_report(state: State) -> TasksReported | Unreadable:
    try:
        return TasksReported.model_validate(_find_data(state))
    except ValidationError:
        return Unreadable(text("roles.no_report"))


def _find_data(state: State) -> object:
    last = state.conversation.messages[-1] if state.conversation.messages else None
    return last.opaque.get("daiku") if isinstance(last, AssistantMessage) else None


TASKS = Agent(
    "tasks",
    Prompt("agents/tasks"),
    tools=LOOKING,
    part=Part(
        label=Label("Task planner", "タスクプランナー"),
        description="makes the tasks of a step",
        delegate=False,
        stage=Stage(_collect_tasks),
    ),
)
TASK_LOOP = Agent(
    "task_loop",
    Prompt("agents/task_loop"),
    tools=("*",),
    part=Part(
        label=Label("Task runner", "タスクランナー"),
        description="works the tasks of a step through",
        delegate=False,
    ),
)
TASK_REPORT = Agent(
    "task_report",
    Prompt("agents/task_loop"),
    part=Part(
        label=Label("Reporter", "レポーター"),
        description="reports on tasks",
        delegate=False,
        stage=Stage(_collect_report),
    ),
)
BRINGER = Agent(
    "worktree",
    Prompt("agents/task_loop"),
    tools=("files/patch",),
    part=Part(
        label=Label("Merger", "マージ担当"),
        description="brings back what was made in a copy of the project",
        delegate=False,
    ),
)


class TaskForm(Frozen):
    """Schema of one requested task; `ActionReply` parses more variants."""

    id: str = Field(default="", description="t1, t2, …")
    operation: str = Field(description="one of those in the request")
    args: JsonObject = Field(description="its arguments")
    reasoning: str = Field(default="", description="why")


class TasksForm(Frozen):
    """Schema of the requested tasks of a step."""

    tasks: tuple[TaskForm, ...] = Field(description="in the order in which they are to be done")


class ReportForm(Frozen):
    """Schema of the requested report on tasks."""

    status: Literal["completed", "failed"] = Field(description="completed: every task and check went well")
    succeeded: int = Field(description="tasks that did")
    failed: int = Field(description="tasks that did")
    summary: str = Field(description="what exists now that did not before")
    cause: str = Field(default="", description="why it failed")
    next_action: str = Field(default="", description="what should be done next")


TASKS_TOOL = ToolSpec(
    name="report/tasks",
    description="End your work with the list of tasks.",
    parameters=schema_of(TasksForm),
    effect="none",
)
REPORT_TOOL = ToolSpec(
    name="report/result", description="Report on the tasks.", parameters=schema_of(ReportForm), effect="none"
)
SUMMARY_SHARE = 4000
"""Maximum characters of the conversation in the request for tasks."""
PERSON_SHARE = 500
LOG_SHARE = 20_000


class TasksVariables(Frozen):
    """Template variables of the request for tasks (R4.39)."""

    step_name: str
    plan_goal: str
    step_description: str
    acceptance: tuple[str, ...]
    plan: str
    conversation_summary: str
    operations: str


class TaskReportVariables(Frozen):
    """Template variables of the request for a report on tasks (R4.40)."""

    step_name: str
    plan_goal: str
    person: str
    execution_log: str


def build_tasks_request(
    plan_step: PlanStep, messages: tuple[Message, ...], operations: tuple[ToolSpec, ...]
) -> str:
    """Build the request for the tasks of a step."""
    plan, step = plan_step
    return render(
        "agents/tasks_request",
        TasksVariables(
            step_name=step.name,
            plan_goal=plan.goal,
            step_description=step.description or step.name,
            acceptance=step.acceptance,
            plan=render_checklist(plan),
            conversation_summary=truncate_middle(transcript(messages), SUMMARY_SHARE),
            operations="\n".join(_format_operation(spec) for spec in operations),
        ),
    )


def _format_operation(spec: ToolSpec) -> str:
    first = " ".join(spec.description.split()).partition(". ")[0]
    schema = json.dumps(spec.parameters, ensure_ascii=False, separators=(",", ":"))
    return f"- {wire_name(spec.name)}: {first}\n  {schema}"


def build_report_request(plan_step: PlanStep, log: str, person: str) -> str:
    """Build the request for the report on a step's tasks; `log` comes from `task_report.format_execution_log`."""
    plan, step = plan_step
    return render(
        "agents/task_loop_request",
        TaskReportVariables(
            step_name=step.name,
            plan_goal=plan.goal,
            person=truncate_middle(person, PERSON_SHARE),
            execution_log=truncate_middle(log, LOG_SHARE),
        ),
    )


def build_task_maker(resolve: Callable[[str], str | None], check: Check) -> Agent:
    """Return the agent that makes a step's tasks; a list with an unknown operation is rejected and retried."""

    def read(
        message: AssistantMessage, _messages: tuple[Message, ...], cut: bool
    ) -> AssistantMessage | Unreadable:
        if message.calls:  # it explores first
            return message
        tasks = read_tasks(message.text, resolve, check, cut=cut)
        if isinstance(tasks, Unreadable):
            return tasks
        return _build_reply(message, _format_list(tasks), TasksMade(tasks=tasks))

    return _with_role(TASKS, _build_role(TASKS_TOOL, read))


def _format_list(tasks: tuple[Task, ...]) -> str:
    return "\n".join(f"{number}. {_format_task(task)}" for number, task in enumerate(tasks, 1))


def _format_task(task: Task) -> str:
    subject = next(
        (str(task.args[key]) for key in ("path", "command", "url", "query") if key in task.args), ""
    )
    return f"{task.operation} {truncate_middle(subject, PERSON_SHARE)}".strip()


def build_task_reporter(facts: TaskReport) -> Agent:
    """Return the agent that reports on tasks; a report that contradicts `facts` is rejected and retried."""

    def read(
        message: AssistantMessage, _messages: tuple[Message, ...], cut: bool
    ) -> AssistantMessage | Unreadable:
        report = read_report(message.text, facts, cut=cut)
        if isinstance(report, Unreadable):
            return report
        words = (report.summary, report.cause, report.next_action)
        return _build_reply(message, "\n\n".join(w for w in words if w), TasksReported(report=report))

    return _with_role(TASK_REPORT, _build_role(REPORT_TOOL, read))


def _with_role(agent: Agent, role: Role) -> Agent:
    assert agent.part is not None, "a built-in agent"
    return agent.with_(part=replace(agent.part, role=role))


def _build_role(tool: ToolSpec, read: Read) -> Role:
    """Build the role that answers by `tool` or in the form that `read` parses; plain text is asked about once."""
    problem = text("roles.call_missing", tool=wire_name(tool.name))
    return Role(
        with_tool_call(tool, read), _skip_after_calls, prose=lambda _, __: Unreadable(problem), tools=(tool,)
    )


def _skip_after_calls(_messages: tuple[Message, ...]) -> AssistantMessage | None:
    return None


def _build_reply(
    message: AssistantMessage, words: str, result: TasksMade | TasksReported
) -> AssistantMessage:
    data = cast("JsonObject", result.model_dump(mode="json"))
    return AssistantMessage(text=Text(words), thinking=message.thinking, opaque={"daiku": data})

"""The lines of the files that show a work item's conversation (S2C.10–S2C.14): messages, summaries, tools, plans."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from daiku.core.calls.toolnames import wire_name
from daiku.domain.base import Frozen, JsonObject
from daiku.domain.items.item import ItemKey, ItemState
from daiku.domain.messages import AssistantMessage, Message, ToolMessage
from daiku.domain.work.plans import Plan

CHARACTERS = 4
"""Characters that count as one token."""

TaskStatus = Literal["queued", "running", "paused", "stopped", "completed", "failed"]
Role = Literal["system", "user", "assistant", "tool"]


class TaskKey(Frozen):
    """Which item, in the words of the files."""

    task_source: str
    owner: str
    repo: str
    task_type: Literal["issue", "pull_request", "merge_request", "file"]
    task_id: str


class TaskSettings(Frozen):
    """What the item was worked with."""

    llm_provider: str
    model: str
    context_length: int
    compression_threshold: float


class TaskInfo(Frozen):
    """`metadata.json`."""

    uuid: str
    task_key: TaskKey
    created_at: str
    process_id: int
    hostname: str
    config: TaskSettings
    user: str


class MessageLine(Frozen):
    """A line of `messages.jsonl`."""

    seq: int
    role: Role
    content: str
    timestamp: str
    tokens: int
    tool_name: str | None = None


class FunctionCall(Frozen):
    name: str
    arguments: str


class CallLine(Frozen):
    """A call within a line of `current.jsonl`."""

    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class CurrentLine(Frozen):
    """A line of `current.jsonl`: what the model is sent, in OpenAI's form."""

    role: Role
    content: str
    tool_calls: tuple[CallLine, ...] | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None


class TaskRequest(Frozen):
    """`request.json`: what the model is asked at this moment."""

    model: str
    messages: tuple[CurrentLine, ...]


class SummaryLine(Frozen):
    """A line of `summaries.jsonl`; the seqs are those of `messages.jsonl`."""

    id: int
    start_seq: int
    end_seq: int
    summary: str
    original_tokens: int
    summary_tokens: int
    ratio: float
    timestamp: str


class ToolLine(Frozen):
    """A line of `tools.jsonl`."""

    seq: int
    tool: str
    args: JsonObject
    result: str | None = None
    status: Literal["success", "error"]
    error: str | None = None
    duration_ms: int
    timestamp: str


class PlanLine(Frozen):
    """A line of `planning/<uuid>.jsonl`: a plan as it was made, or as it was after it changed (S2P.19)."""

    type: Literal["plan", "revision", "progress"]
    timestamp: str
    issue_id: str
    task_uuid: str
    plan: Plan


class PausedTask(Frozen):
    """`task_state.json` of an item that is paused."""

    task_key: TaskKey
    uuid: str
    user: str
    paused_at: str
    status: Literal["paused"] = "paused"
    current_phase: Literal["planning", "execution"]
    executed_action_count: int
    plan_revision_count: int
    checklist_comment_id: str
    resume_count: int


def task_key(key: ItemKey) -> TaskKey:
    """The item's key in the words of the files."""
    owner, _, repo = key.repository.rpartition("/")
    request = "merge_request" if key.source == "gitlab" else "pull_request"
    kind = request if key.kind == "request" else key.kind
    return TaskKey(task_source=key.source, owner=owner, repo=repo, task_type=kind, task_id=key.name)


def task_status(state: ItemState, *, begun: bool) -> TaskStatus:
    """How a task stands whose item is in `state` (X.26). One that waits, or was given back, goes on where it was."""
    match state:
        case "queued":
            return "paused" if begun else "queued"
        case "processing":
            return "running"
        case "paused" | "waiting":
            return "paused"
        case "done":
            return "completed"
        case "failed" | "dead":
            return "failed"
        case "stopped":
            return "stopped"


def tokens_of(text: str) -> int:
    """About how many tokens a text is."""
    return len(text) // CHARACTERS


def message_line(seq: int, message: Message, time: str) -> MessageLine:
    return MessageLine(
        seq=seq,
        role=message.role,
        content=message.text,
        timestamp=time,
        tokens=tokens_of(message.text),
        tool_name=message.tool if isinstance(message, ToolMessage) else None,
    )


def system_lines(system: str, time: str) -> tuple[MessageLine, ...]:
    """The system prompt as the first message of all; none where it is not known."""
    if not system:
        return ()
    return (MessageLine(seq=1, role="system", content=system, timestamp=time, tokens=tokens_of(system)),)


def current_lines(system: str, messages: Sequence[Message]) -> tuple[CurrentLine, ...]:
    """What the model is sent: the system prompt first, where it is known."""
    first = (CurrentLine(role="system", content=system),) if system else ()
    return (*first, *map(current_line, messages))


def current_line(message: Message) -> CurrentLine:
    match message:
        case AssistantMessage(calls=calls):
            told = tuple(
                CallLine(
                    id=call.id,
                    function=FunctionCall(
                        name=wire_name(call.tool), arguments=json.dumps(call.args, ensure_ascii=False)
                    ),
                )
                for call in calls
            )
            return CurrentLine(role="assistant", content=message.text, tool_calls=told or None)
        case ToolMessage():
            return CurrentLine(
                role="tool", content=message.text, tool_call_id=message.call_id, tool_name=message.tool
            )
        case _:
            return CurrentLine(role="user", content=message.text)

"""The lines of a work item's context files, from the chunks of its session. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, NamedTuple

from daiku.dataclass import dataclass, field
from daiku.domain.base import JsonObject
from daiku.domain.chunks import Chunk
from daiku.domain.events import AgentStart, Event, PlanEvent, ToolCallEvent, ToolResponse
from daiku.domain.held import Compacted, Pruned
from daiku.domain.items.item import ItemKey, ItemState
from daiku.domain.messages import AssistantMessage, Message, ToolMessage, Usage
from daiku.domain.tools import ToolCall
from daiku.domain.work.plans import Plan
from daiku.run.rules.calls.toolnames import wire_name
from daiku.run.rules.state.fold import apply
from daiku.run.rules.state.state import State

TaskStatus = Literal["queued", "running", "paused", "stopped", "completed", "failed"]
FileName = Literal["messages.jsonl", "summaries.jsonl", "tools.jsonl", "planning"]
"""A file to which lines are added; `planning` is `planning/<uuid>.jsonl`."""


class FileLine(NamedTuple):
    """A line to add to a context file."""

    file: FileName
    value: JsonObject


@dataclass(slots=True)
class TaskView:
    """An item after some chunks of its session.

    `last` is the highest number in `messages.jsonl`, `seqs` are the numbers of the conversation's messages,
    `args` the arguments of running calls.
    """

    uuid: str
    item: str
    last: int = 0
    state: State = State()
    seqs: tuple[int, ...] = ()
    args: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    plan: Plan | None = None
    started_at: str = ""
    model: str = ""
    llm_calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    compressions: int = 0
    revisions: int = 0

    @property
    def asks_model(self) -> bool:
        """Whether the model's reply comes next."""
        state, messages = self.state, self.state.conversation.messages
        if not state.request.asks_model or not messages or state.calls.pending or state.failure is not None:
            return False
        return state.finished is None and not isinstance(messages[-1], AssistantMessage)

    def add(self, chunk: Chunk) -> tuple[FileLine, ...]:
        """Apply the next chunk and return the lines it adds. The conversation of a nested run is its own."""
        event, time, is_nested = chunk.event, chunk.time, chunk.parent is not None
        lines: tuple[FileLine, ...] = ()
        match event:
            case AgentStart() if not is_nested:
                self.started_at, self.model = self.started_at or time, event.model or self.model
            case Usage() if event.model:
                self.llm_calls += 1
                self.tokens += event.prompt_tokens + event.completion_tokens
            case Compacted() if not is_nested:
                self.compressions += 1
                lines = self._summarize(event, time)
            case ToolCallEvent():
                self.args[event.id] = event.args
            case ToolResponse():
                self.tool_calls += 1
                lines = (self._build_tool_line(event, time),)
            case PlanEvent():
                lines = (self._build_plan_line(event.plan, time),)
            case _:
                pass
        return lines if is_nested else (*lines, *self._add_messages(event, time))

    def _add_messages(self, event: Event, time: str) -> tuple[FileLine, ...]:
        """Apply an event of the conversation and return the messages it adds."""
        before = self.state.conversation.messages
        self.state = apply(self.state, event)
        messages = self.state.conversation.messages
        if messages is before or isinstance(event, Pruned):  # the same messages, some of them shorter
            return ()
        numbers, first = {id(m): seq for m, seq in zip(before, self.seqs, strict=True)}, self.last + 1
        new = [m for m in messages if id(m) not in numbers]
        numbers |= {id(m): seq for seq, m in enumerate(new, first)}
        self.seqs, self.last = tuple(numbers[id(m)] for m in messages), self.last + len(new)
        return tuple(build_message_line(seq, build_current_line(m), time) for seq, m in enumerate(new, first))

    def _summarize(self, event: Compacted, time: str) -> tuple[FileLine, ...]:
        replaced = self.state.conversation.messages[: max(0, len(self.seqs) - event.kept)]
        if not replaced:
            return ()
        before, after = sum(estimate_tokens(m.text) for m in replaced), estimate_tokens(event.summary)
        line: JsonObject = {
            "id": self.compressions,
            "start_seq": min(self.seqs[: len(replaced)]),
            "end_seq": max(self.seqs[: len(replaced)]),
            "summary": event.summary,
            "original_tokens": before,
            "summary_tokens": after,
            "ratio": round(after / before, 4) if before else 0.0,
            "timestamp": time,
        }
        return (FileLine("summaries.jsonl", line),)

    def _build_tool_line(self, ended: ToolResponse, time: str) -> FileLine:
        line: JsonObject = {
            "seq": self.tool_calls,
            "tool": ended.tool,
            "args": self.args.pop(ended.id, {}),
            "result" if ended.ok else "error": ended.result,
            "status": "success" if ended.ok else "error",
            "duration_ms": ended.duration_ms,
            "timestamp": time,
        }
        return FileLine("tools.jsonl", line)

    def _build_plan_line(self, plan: Plan, time: str) -> FileLine:
        """Build a line for a new plan, one with other steps (`revision`), or further progress."""
        before, self.plan = self.plan, plan
        kind = "plan"
        if before is not None and before.plan_id == plan.plan_id:
            is_same = [step.name for step in before.steps] == [step.name for step in plan.steps]
            kind = "progress" if is_same else "revision"
            self.revisions += not is_same
        line: JsonObject = {
            "type": kind,
            "timestamp": time,
            "issue_id": self.item,
            "task_uuid": self.uuid,
            "plan": plan.model_dump(mode="json", exclude_none=True),
        }
        return FileLine("planning", line)


def build_task_key(key: ItemKey) -> dict[str, str]:
    """Build the item's key in the terms of the context files."""
    owner, _, repo = key.repository.rpartition("/")
    request = "merge_request" if key.source == "gitlab" else "pull_request"
    kind = request if key.kind == "request" else key.kind
    return {"task_source": key.source, "owner": owner, "repo": repo, "task_type": kind, "task_id": key.name}


def to_task_status(state: ItemState, *, was_started: bool) -> TaskStatus:
    """Return the status of a task whose item is in `state`. A waiting item, or one given back, is paused."""
    match state:
        case "queued":
            return "paused" if was_started else "queued"
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


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens: one per 4 characters."""
    return len(text) // 4


def build_message_line(seq: int, message: JsonObject, time: str) -> FileLine:
    """Build a line of `messages.jsonl` from a message in OpenAI's format."""
    text = str(message["content"])
    line: JsonObject = {"seq": seq, "role": message["role"], "content": text, "timestamp": time}
    line["tokens"] = estimate_tokens(text)
    if "tool_name" in message:
        line["tool_name"] = message["tool_name"]
    return FileLine("messages.jsonl", line)


def build_current_lines(system: str, messages: Sequence[Message]) -> tuple[JsonObject, ...]:
    """Build the lines of `current.jsonl`: the model's messages, after the system prompt if it is known."""
    first: JsonObject = {"role": "system", "content": system}
    return (*((first,) if system else ()), *map(build_current_line, messages))


def build_current_line(message: Message) -> JsonObject:
    """Build a message in OpenAI's format."""
    match message:
        case AssistantMessage():
            line: JsonObject = {"role": "assistant", "content": message.text}
            if message.calls:
                line["tool_calls"] = [_build_call_line(call) for call in message.calls]
            return line
        case ToolMessage():
            return {
                "role": "tool",
                "content": message.text,
                "tool_call_id": message.call_id,
                "tool_name": message.tool,
            }
        case _:
            return {"role": "user", "content": message.text}


def _build_call_line(call: ToolCall) -> JsonObject:
    arguments = json.dumps(call.args, ensure_ascii=False)
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": wire_name(call.tool), "arguments": arguments},
    }

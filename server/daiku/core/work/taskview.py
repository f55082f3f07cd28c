"""A work item's session as lines of its context files: a pure fold over its chunks (S2C.9, S2C.11–S2C.14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from daiku.core.state.fold import apply
from daiku.core.state.state import NOTHING, State
from daiku.core.work.tasklines import MessageLine, PlanLine, SummaryLine, ToolLine, message_line, tokens_of
from daiku.domain.chunks import Chunk
from daiku.domain.events import AgentStart, PlanEvent, ToolCallEvent, ToolResponse
from daiku.domain.held import Compacted, Pruned
from daiku.domain.messages import AssistantMessage, Message, Usage
from daiku.domain.work.plans import Plan


class Counts(NamedTuple):
    """How much the item took so far; `started_at` is when its first run began."""

    llm_calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    compressions: int = 0
    revisions: int = 0
    started_at: str = ""
    model: str = ""


class TaskView(NamedTuple):
    """The item after some chunks: its conversation, the number in `messages.jsonl` of each of its messages, and of
    the last one; the calls under way; the last plan; how much it took."""

    state: State = State()
    seqs: tuple[int, ...] = ()
    last: int = 0
    calls: Mapping[str, ToolCallEvent] = NOTHING
    plan: Plan | None = None
    counts: Counts = Counts()

    @property
    def asks_model(self) -> bool:
        """Whether the model's next reply is what comes now."""
        state, messages = self.state, self.state.conversation.messages
        if not state.request.asks_model or not messages or state.calls.pending or state.failure is not None:
            return False
        return state.finished is None and not isinstance(messages[-1], AssistantMessage)


class Added(NamedTuple):
    """The lines that one chunk adds."""

    messages: tuple[MessageLine, ...] = ()
    summaries: tuple[SummaryLine, ...] = ()
    tools: tuple[ToolLine, ...] = ()
    plans: tuple[PlanLine, ...] = ()


def add_chunk(view: TaskView, chunk: Chunk, uuid: str, item: str) -> tuple[TaskView, Added]:
    """The view after one more chunk of the item's session, and what is to be added to the files. Of nested runs
    the calls, the plans and the spending count; their conversations are their own."""
    view, tools = _count(view, chunk)
    view, plans = _planned(view, chunk, uuid, item)
    if chunk.parent is not None:
        return view, Added(tools=tools, plans=plans)
    before, after = view.state.conversation.messages, apply(view.state, chunk.event)
    summaries = _summary(view, chunk.event, chunk.time) if isinstance(chunk.event, Compacted) else ()
    shown = after.conversation.messages
    if shown is before:
        return view._replace(state=after), Added((), summaries, tools, plans)
    if isinstance(chunk.event, Pruned):  # the same messages, some of them shorter
        return view._replace(state=after), Added(tools=tools, plans=plans)
    seqs, new = _numbered(before, view.seqs, shown, view.last)
    lines = tuple(message_line(seq, message, chunk.time) for seq, message in new)
    last = lines[-1].seq if lines else view.last
    return view._replace(state=after, seqs=seqs, last=last), Added(lines, summaries, tools, plans)


def _numbered(
    before: Sequence[Message], seqs: Sequence[int], after: Sequence[Message], last: int
) -> tuple[tuple[int, ...], tuple[tuple[int, Message], ...]]:
    """The numbers of the messages as they are now, and the new ones among them with theirs."""
    known = {id(message): seq for message, seq in zip(before, seqs, strict=True)}
    numbers: list[int] = []
    new: list[tuple[int, Message]] = []
    for message in after:
        seq = known.get(id(message))
        if seq is None:
            last += 1
            seq = last
            new.append((seq, message))
        numbers.append(seq)
    return tuple(numbers), tuple(new)


def _summary(view: TaskView, event: Compacted, time: str) -> tuple[SummaryLine, ...]:
    messages = view.state.conversation.messages
    end = len(messages) - event.kept
    if end <= 0:
        return ()
    was, now = sum(tokens_of(m.text) for m in messages[:end]), tokens_of(event.summary)
    line = SummaryLine(
        id=view.counts.compressions,
        start_seq=min(view.seqs[:end]),
        end_seq=max(view.seqs[:end]),
        summary=event.summary,
        original_tokens=was,
        summary_tokens=now,
        ratio=round(now / was, 4) if was else 0.0,
        timestamp=time,
    )
    return (line,)


def _count(view: TaskView, chunk: Chunk) -> tuple[TaskView, tuple[ToolLine, ...]]:
    """The view with what the chunk adds to the counts and calls, and the line of a call that it ends."""
    counts = view.counts
    match chunk.event:
        case AgentStart(model=model) if chunk.parent is None:
            started = counts.started_at or chunk.time
            return view._replace(counts=counts._replace(started_at=started, model=model or counts.model)), ()
        case Usage() as used if used.model:
            spent = used.prompt_tokens + used.completion_tokens
            more = counts._replace(llm_calls=counts.llm_calls + 1, tokens=counts.tokens + spent)
            return view._replace(counts=more), ()
        case Compacted() if chunk.parent is None:
            return view._replace(counts=counts._replace(compressions=counts.compressions + 1)), ()
        case ToolCallEvent() as begun:
            calls = MappingProxyType({**view.calls, begun.id: begun})
            return view._replace(calls=calls), ()
        case ToolResponse() as ended:
            counts = counts._replace(tool_calls=counts.tool_calls + 1)
            begun = view.calls.get(ended.id)
            rest = MappingProxyType({key: call for key, call in view.calls.items() if key != ended.id})
            line = _tool_line(counts.tool_calls, begun, ended, chunk.time)
            return view._replace(counts=counts, calls=rest), (line,)
        case _:
            return view, ()


def _tool_line(seq: int, begun: ToolCallEvent | None, ended: ToolResponse, time: str) -> ToolLine:
    return ToolLine(
        seq=seq,
        tool=ended.tool,
        args=begun.args if begun is not None else {},
        result=ended.result if ended.ok else None,
        status="success" if ended.ok else "error",
        error=None if ended.ok else ended.result,
        duration_ms=ended.duration_ms,
        timestamp=time,
    )


def _planned(view: TaskView, chunk: Chunk, uuid: str, item: str) -> tuple[TaskView, tuple[PlanLine, ...]]:
    if not isinstance(chunk.event, PlanEvent):
        return view, ()
    plan, old, counts = chunk.event.plan, view.plan, view.counts
    if old is None or old.plan_id != plan.plan_id:
        kind = "plan"
    elif [step.name for step in old.steps] == [step.name for step in plan.steps]:
        kind = "progress"
    else:
        kind, counts = "revision", counts._replace(revisions=counts.revisions + 1)
    line = PlanLine(type=kind, timestamp=chunk.time, issue_id=item, task_uuid=uuid, plan=plan)
    return view._replace(plan=plan, counts=counts), (line,)

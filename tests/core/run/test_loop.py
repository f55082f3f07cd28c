"""The core loop: what happens in which order, and that it resumes from every prefix to the same end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from daiku.domain.base import JsonObject
from daiku.domain.chunks import decode_event, encode_event
from daiku.domain.config import Answer
from daiku.domain.errors import ContextOverflowError, Failure, LLMRequestError
from daiku.domain.events import (
    EPHEMERAL,
    ApprovalAsked,
    ApprovalDecision,
    ApprovalGiven,
    Event,
    InputAsked,
    InputGiven,
    MessageEvent,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.messages import (
    AssistantMessage,
    Message,
    ModelEvent,
    Reply,
    TextDelta,
    ToolMessage,
    Usage,
    UserMessage,
)
from daiku.domain.runs import RunLimits
from daiku.domain.tools import ToolCall, ToolResult, ToolSpec
from daiku.guard.rules.policy import Verdict
from daiku.run.rules import loop
from daiku.run.rules.decide import Rules
from daiku.run.rules.ports import ApprovalPreview
from daiku.run.rules.state.fold import fold
from daiku.run.rules.state.machine import Recorder
from daiku.run.rules.state.state import State
from daiku.texts.text import NO_TEXT, Text
from tests.cases import for_each

SPECS = {
    "files/read": ToolSpec(name="files/read", description="", parameters={}, effect="read", parallel=True),
    "files/write": ToolSpec(name="files/write", description="", parameters={}, effect="edit"),
    "shell/run": ToolSpec(name="shell/run", description="", parameters={}, effect="command"),
    "user/ask": ToolSpec(name="user/ask", description="", parameters={}, effect="ask"),
}
ANSWERS: dict[str, Answer] = {"read": "allow", "edit": "ask", "command": "deny"}


def said(text: str = "", *calls: ToolCall) -> Reply:
    message = AssistantMessage(text=Text(text), calls=calls)
    return Reply(message, Usage(prompt_tokens=10, completion_tokens=2), "stop")


def call(id_: str, tool: str, **args: str) -> ToolCall:
    return ToolCall(id=id_, tool=tool, args=dict(args))


@dataclass
class World:
    """A script for the model, a log of what tools really did."""

    replies: Sequence[Reply | Exception]
    decision: ApprovalDecision = "allow_once"
    ran: list[str] = field(default_factory=list[str])
    requests: list[tuple[Message, ...]] = field(default_factory=list[tuple[Message, ...]])
    failing: frozenset[str] = frozenset()
    agent: str = "coordinator"
    compact_at: int = 0
    tries: bool = False
    tried: ToolResult | Text = NO_TEXT
    together: int = 0
    most: int = 0

    @property
    def rules(self) -> Rules:
        return Rules(spec=SPECS.get, verdict=self.verdict, compact_at=self.compact_at)

    def verdict(self, call: ToolCall, tainted: bool) -> Verdict:
        effect = SPECS[call.tool].effect
        answer = ANSWERS[effect]
        return Verdict(answer, Text(f"{effect} is {answer}"), "edit", effect, tries=self.tries)

    def paused(self) -> bool:
        return False

    async def reply(self, state: State) -> AsyncIterator[ModelEvent]:
        self.requests.append(state.conversation.messages)
        step = self.replies[sum(isinstance(m, AssistantMessage) for m in state.conversation.messages)]
        if isinstance(step, Exception):
            raise step
        if step.message.text:
            yield TextDelta(step.message.text)
        yield step

    async def call(self, call: ToolCall, record: Recorder) -> ToolResult:
        self.together += 1
        self.most = max(self.most, self.together)
        await asyncio.sleep(0)
        self.ran.append(call.id)
        self.together -= 1
        return ToolResult(ok=call.id not in self.failing, text=f"{call.tool} done")

    async def preview(self, call: ToolCall, record: Recorder) -> ApprovalPreview | ToolResult:
        return ApprovalPreview(Text(f"preview of {call.id}"), Text("edits"))

    async def settle(self, call: ToolCall, record: Recorder) -> ToolResult | None:
        return None

    async def trial(self, call: ToolCall, record: Recorder) -> ToolResult | Text:
        return self.tried

    async def approval(self, question: ApprovalAsked) -> ApprovalGiven:
        return ApprovalGiven(approval_id=question.approval_id, decision=self.decision)

    async def answer(self, question: InputAsked) -> InputGiven:
        return InputGiven(input_id=question.input_id, text="blue")

    async def summarise(self, messages: tuple[Message, ...]) -> tuple[str, Usage | None]:
        return f"{len(messages)} messages", Usage(prompt_tokens=50, completion_tokens=5)


START = RunStarted(prompt="mend it", limits=RunLimits(max_rounds=20))


def play(world: World, history: Sequence[Event] = (START,)) -> list[Event]:
    """All durable events: `history` and what the loop added."""
    written: list[Event] = list(history)

    def write(events: tuple[Event, ...]) -> tuple[Event, ...]:
        written.extend(e for e in events if e.type not in EPHEMERAL)
        return events

    asyncio.run(loop.run(Recorder(fold(history), write), world))
    return written


TEN_TOOLS = [
    said("look", call("1", "files/read"), call("2", "files/read"), call("3", "files/write")),
    said("ask", call("4", "user/ask", question="Which colour?"), call("5", "files/write")),
    said("more", call("6", "shell/run"), call("7", "files/read"), call("8", "files/write")),
    said("last", call("9", "files/write"), call("10", "files/read")),
    said("Done."),
]


def kinds(events: Sequence[Event]) -> list[str]:
    return [e.type for e in events]


@dataclass
class Plain(World):
    """A world whose tools find something that they show with line numbers."""

    args: list[JsonObject] = field(default_factory=list[JsonObject])

    async def call(self, call: ToolCall, record: Recorder) -> ToolResult:
        self.args.append(call.args)
        return ToolResult(ok=True, text="1 | x = 1", plain="x = 1\n")


def test_a_call_gets_the_plain_text_of_the_one_that_it_refers_to_and_only_then_is_it_kept() -> None:
    writes = ToolCall(id="2", tool="files/write", args={"content": {"$ref": "1.text"}})
    world = Plain([said("", call("1", "files/read"), writes, call("3", "files/read")), said("Done.")])
    events = play(world)
    assert world.args[1] == {"content": "x = 1\n"}
    data = {e.id: e.data for e in events if isinstance(e, ToolResponse)}
    assert data == {"1": {"plain": "x = 1\n"}, "2": None, "3": None}


def test_a_run_goes_through_approval_and_ends_once() -> None:
    world = World([said("look", call("1", "files/read"), call("2", "files/write")), said("Done.")])
    assert kinds(play(world)) == [
        "run_started",
        "message",
        "usage",
        "tool_call",
        "tool_response",
        "approval_asked",
        "approval_given",
        "tool_call",
        "tool_response",
        "message",
        "usage",
        "agent_end",
        "run_finished",
    ]
    assert world.ran == ["1", "2"]


def test_every_prefix_resumes_to_the_same_end_and_no_tool_runs_twice() -> None:
    full = play(World(TEN_TOOLS))
    stored = [(e.type, encode_event(e)) for e in full]
    for cut in range(1, len(full)):
        history = [decode_event(t, d) for t, d in stored[:cut]]
        ran_before = [e.id for e in history if isinstance(e, ToolCallEvent)]
        world = World(TEN_TOOLS)
        whole = play(world, history)
        end = whole[-1]
        assert isinstance(end, RunFinished), cut
        assert (end.status, end.text) == ("completed", "Done."), cut
        assert not set(ran_before) & set(world.ran), cut
        called = [e.id for e in whole if isinstance(e, ToolCallEvent)]
        answered = [e.id for e in whole if isinstance(e, ToolResponse)]
        assert sorted(called) == sorted(answered) == sorted(str(i) for i in range(1, 11)), cut
        assert kinds(whole).count("run_finished") == 1


def test_an_interrupted_call_is_told_to_the_model() -> None:
    history: list[Event] = [
        START,
        MessageEvent(role="assistant", text=Text(""), calls=(call("1", "files/write"),)),
        ToolCallEvent(id="1", tool="files/write", args={}),
    ]
    world = World([said(), said("I looked again.")])
    play(world, history)
    last = world.requests[-1][-1]
    assert isinstance(last, ToolMessage)
    assert not last.ok
    assert "interrupted" in last.text
    assert world.ran == []


def test_a_refused_call_is_answered_and_the_run_goes_on() -> None:
    world = World([said("x", call("1", "shell/run"), call("2", "files/write")), said("Ended.")])
    world.decision = "reject_once"
    events = play(world)
    responses = [e for e in events if isinstance(e, ToolResponse)]
    assert [(r.id, r.ok) for r in responses] == [("1", False), ("2", False)]
    assert "rejected" in responses[1].result
    assert world.ran == []
    assert isinstance(events[-1], RunFinished)
    assert events[-1].text == "Ended."


def test_read_only_calls_of_one_reply_run_side_by_side_and_others_in_order() -> None:
    """R1.5, R1.30: calls of one reply run at the same time where that is safe."""
    world = World(
        [said("", *(call(str(i), "files/read") for i in range(5)), call("w", "files/write")), said("Done.")]
    )
    play(world)
    assert world.most == 5
    assert world.ran[-1] == "w"


def test_results_come_before_what_was_said_meanwhile() -> None:
    history = [
        START,
        MessageEvent(role="assistant", text=Text(""), calls=(call("1", "files/read"),)),
        MessageEvent(role="user", text=Text("also the tests")),
    ]
    world = World([said(), said("Yes.")])
    play(world, history)
    assert [type(m).__name__ for m in world.requests[-1]] == [
        "UserMessage",
        "AssistantMessage",
        "ToolMessage",
        "UserMessage",
    ]


def test_what_is_said_while_the_model_speaks_is_read_before_the_run_ends() -> None:
    history: list[Event] = [
        START,
        MessageEvent(role="user", text=Text("wait")),
        MessageEvent(role="assistant", text=Text("Done."), seen=1),
    ]
    world = World([said("Done."), said("I waited.")])
    events = play(world, history)
    assert world.requests[-1][-1] == UserMessage(text="wait")
    assert isinstance(events[-1], RunFinished)
    assert events[-1].text == "I waited."


@for_each(
    ("limits", "word"),
    [
        (RunLimits(max_rounds=3, max_tool_errors=0), "rounds"),
        (RunLimits(max_tokens=30, max_tool_errors=0), "tokens"),
        (RunLimits(max_rounds=0, max_tool_errors=2), "tool error limit"),
    ],
)
def test_a_limit_ends_the_run_and_says_which(limits: RunLimits, word: str) -> None:
    world = World([said("", call(str(i), "files/read")) for i in range(99)])
    world.failing = frozenset(str(i) for i in range(99))
    events = play(world, [RunStarted(prompt="x", limits=limits)])
    assert isinstance(events[-1], RunFinished)
    assert events[-1].status == "limit"
    assert word in str(events[-3])


def test_rejections_are_not_errors_in_a_row() -> None:
    world = World([said("", *(call(str(i), "files/write") for i in range(5))), said("I understand.")])
    world.decision = "reject_once"
    events = play(world, [RunStarted(prompt="x", limits=RunLimits(max_tool_errors=2))])
    assert isinstance(events[-1], RunFinished)
    assert events[-1].status == "completed"


def test_an_error_of_the_model_ends_the_run_as_failed() -> None:
    wrong = LLMRequestError(Failure(kind="bad_request", message=Text("no such model")))
    events = play(World([wrong]))
    assert kinds(events)[-3:] == ["error", "agent_end", "run_finished"]
    assert isinstance(events[-1], RunFinished)
    assert events[-1].status == "failed"


def test_a_context_overflow_condenses_and_goes_on() -> None:
    overflow = ContextOverflowError(Failure(kind="context_overflow", message=Text("too long")))
    world = World([])
    replies: list[Reply | Exception] = [
        said("a", call("1", "files/read")),
        said("b", call("2", "files/read")),
        said("c", call("3", "files/read")),
        overflow,
    ]
    done = said("Done.")

    async def reply(state: State) -> AsyncIterator[ModelEvent]:
        count = state.spending.rounds
        step = replies[count] if count < 4 and "Summary" not in str(state.conversation.messages[0]) else done
        if isinstance(step, Exception):
            raise step
        yield step

    world.reply = reply
    events = play(world)
    assert "compacted" in kinds(events)
    assert isinstance(events[-1], RunFinished)
    assert events[-1].status == "completed"


def test_an_overflow_that_condensing_cannot_mend_fails() -> None:
    overflow = ContextOverflowError(Failure(kind="context_overflow", message=Text("too long")))
    events = play(World([overflow]))
    assert isinstance(events[-1], RunFinished)
    assert events[-1].status == "failed"


@for_each(
    ("tried", "asks"),
    [
        (ToolResult(ok=True, text="seen", data={"output": "seen"}), False),
        (ToolResult(ok=False, text="no", data={"output": ""}), False),
        (Text("it writes a.txt"), True),
        (NO_TEXT, True),
    ],
)
def test_a_trial_that_wrote_nothing_is_the_result_and_any_other_is_asked_about(
    tried: ToolResult | Text, asks: bool
) -> None:
    """A23.7: the user is told what it writes."""
    world = World([said("", call("c1", "files/write", path="a")), said("Done.")], tries=True, tried=tried)
    events = play(world)
    asked = [event for event in events if isinstance(event, ApprovalAsked)]
    assert bool(asked) == asks
    assert world.ran == (["c1"] if asks else [])
    assert all(str(tried) in event.why for event in asked)
    answered = next(event for event in events if isinstance(event, ToolResponse))
    assert answered.ok == (asks or (isinstance(tried, ToolResult) and tried.ok))


def test_nothing_is_tried_unless_the_verdict_says_so() -> None:
    world = World(
        [said("", call("c1", "files/write", path="a")), said("Done.")], tried=ToolResult(ok=True, text="seen")
    )
    assert any(isinstance(event, ApprovalAsked) for event in play(world))

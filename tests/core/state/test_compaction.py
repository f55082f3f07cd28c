"""Compaction: what must outlive ten of them does, and a summary is shorter than what it replaces."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.events import Event, MessageEvent, Notice, PlanEvent, RunFinished, RunStarted
from daiku.domain.held import Compacted, RulesText
from daiku.domain.messages import (
    AssistantMessage,
    Message,
    ModelEvent,
    Reply,
    ToolMessage,
    Usage,
    UserMessage,
)
from daiku.domain.runs import RunLimits
from daiku.domain.tools import ToolCall, ToolResult
from daiku.domain.work.plans import Plan, Step
from daiku.run.rules import loop
from daiku.run.rules.decide import Rules
from daiku.run.rules.state.condense import find_keep_start
from daiku.run.rules.state.context import (
    character_count,
    rough_tokens,
    rules_message,
    summary_message,
    summary_or_fallback,
    transcript,
)
from daiku.run.rules.state.fold import fold
from daiku.run.rules.state.machine import Recorder
from daiku.run.rules.state.state import State
from daiku.texts.text import Text
from tests.core.run.test_loop import World, call, said

NEEDLE = re.compile(r"needle-\d+")
RULES = RulesText(path="shop/AGENTS.md", text="Use tabs.\nNever touch «legacy».")
PLAN = Plan(
    name="shop",
    goal="a shop",
    summary="",
    status="in_progress",
    steps=(Step(name="cart", description=""), Step(name="till", description="")),
)


@dataclass
class Long(World):
    """A run of sixty turns whose window is full every six; its summariser keeps exact names."""

    order: list[str] = field(default_factory=list[str])

    async def reply(self, state: State) -> AsyncIterator[ModelEvent]:
        self.requests.append(state.conversation.messages)
        if state.spending.rounds >= 66:
            yield said("Done.")
            return
        turn = state.spending.rounds
        message = AssistantMessage(
            text=Text(f"turn {turn}"), calls=(call(f"{turn}", "files/read", path=f"{turn}.py"),)
        )
        tokens = 100 * len(state.conversation.messages)
        yield Reply(message, Usage(prompt_tokens=tokens, completion_tokens=0), "tool_calls")

    async def call(self, call: ToolCall, record: Recorder) -> ToolResult:
        padding = "words of a file that is read\n" * 30
        return ToolResult(ok=True, text=f"{padding}needle-{call.id}\n{padding}")

    async def summarise(self, messages: tuple[Message, ...]) -> tuple[str, Usage | None]:
        text = transcript(messages, 2000)
        return " ".join(dict.fromkeys(NEEDLE.findall(text))), Usage(prompt_tokens=7, completion_tokens=1)


def test_needles_rules_request_and_open_steps_outlive_ten_compactions() -> None:
    world = Long([], compact_at=1200)
    events: list[Event] = []

    def write(new: tuple[Event, ...]) -> tuple[Event, ...]:
        events.extend(new)
        return new

    start = [
        RunStarted(prompt="mend «the till»", limits=RunLimits(max_rounds=99, max_repeats=0)),
        PlanEvent(plan=PLAN),
        Notice(level="info", text=Text("Rules"), rules=(RULES,)),
    ]
    end = asyncio.run(loop.run(Recorder(fold(start), write), world))
    compactions = [e for e in events if isinstance(e, Compacted)]
    assert len(compactions) >= 10
    last = "\n".join(m.text for m in world.requests[-1])
    kept = {n for n in range(66) if f"needle-{n}" in NEEDLE.findall(last)}
    assert len(kept) >= 0.99 * 66
    assert RULES.text in last
    assert "mend «the till»" in last
    assert all(step.step_id in last for step in PLAN.steps)
    assert isinstance(events[-1], RunFinished)
    assert all(0 < e.after_tokens < 20_000 for e in compactions)
    assert "Files read until then: " in last
    assert "60.py" in compactions[-1].files_read
    assert end.spending.usage.completion_tokens >= len(compactions)  # the summaries are paid for too


def test_every_request_after_a_compaction_pairs_calls_with_results() -> None:
    world = Long([], compact_at=1200)
    start = RunStarted(prompt="x", limits=RunLimits(max_rounds=99, max_repeats=0))
    asyncio.run(loop.run(Recorder(fold([start]), lambda new: new), world))
    for messages in world.requests:
        called = [c.id for m in messages if isinstance(m, AssistantMessage) for c in m.calls]
        answered = [m.call_id for m in messages if isinstance(m, ToolMessage)]
        assert called == answered


def test_what_is_said_during_a_summary_is_not_lost() -> None:
    world = Long([], compact_at=1200)
    record = Recorder(fold([RunStarted(prompt="x", limits=RunLimits(max_repeats=0))]), lambda new: new)
    first = True
    inner = world.summarise

    async def summarise(messages: tuple[Message, ...]) -> tuple[str, Usage | None]:
        nonlocal first
        if first:
            first = False
            record(MessageEvent(role="user", text=Text("also the door"), agent="user"))
        return await inner(messages)

    world.summarise = summarise
    asyncio.run(loop.run(record, world))
    assert any("also the door" in m.text for messages in world.requests for m in messages)


def test_a_summary_that_is_longer_than_what_it_replaces_is_refused() -> None:
    old = (UserMessage(text="mend it"), AssistantMessage(text=Text("I read a.py and b.py. " * 40)))
    assert summary_or_fallback("short", old) == "short"
    for bad in ("", "  \n", "blah " * 5000, "n" * int(character_count(old) * 0.9)):
        made = summary_or_fallback(bad, old)
        assert made != bad
        assert len(made) < character_count(old)
        assert "mend it" in made


MESSAGES = st.lists(
    st.one_of(
        st.text(max_size=400).map(lambda t: UserMessage(text=t)),
        st.text(max_size=400).map(lambda t: AssistantMessage(text=Text(t))),
    ),
    min_size=1,
    max_size=12,
)


@given(MESSAGES, st.text(max_size=3000))
def test_what_replaces_messages_is_never_much_longer(old: list[Message], summary: str) -> None:
    assert len(summary_or_fallback(summary, old)) <= max(character_count(old), 400)


@given(st.lists(st.booleans(), min_size=3, max_size=30), st.integers(1, 800))
def test_what_is_kept_never_begins_with_a_result(kinds: list[bool], budget: int) -> None:
    messages: list[Message] = [
        ToolMessage(call_id="1", tool="t", ok=True, text="word " * 60)
        if k
        else AssistantMessage(text=Text("x"))
        for k in (False, *kinds)
    ]
    start = find_keep_start(messages, budget, rough_tokens)
    assert not isinstance(messages[start], ToolMessage)
    assert any(isinstance(m, AssistantMessage) for m in messages[start:])


def test_finished_plans_are_not_carried_on() -> None:
    done = PLAN.model_copy(update={"status": "completed"})
    assert "Open plan" in summary_message("s", "", (PLAN,)).text
    assert "Open plan" not in summary_message("s", "", (done,)).text


def test_rules_are_not_part_of_what_is_summarised() -> None:
    assert RULES.text not in transcript([rules_message((RULES,)), UserMessage(text="x")])


def test_an_unknown_window_is_condensed_on_overflow_only() -> None:
    world = Long([], compact_at=0)
    events: list[Event] = []

    def write(new: tuple[Event, ...]) -> tuple[Event, ...]:
        events.extend(new)
        return new

    start = RunStarted(prompt="x", limits=RunLimits(max_rounds=99, max_repeats=0))
    asyncio.run(loop.run(Recorder(fold([start]), write), world))
    assert not any(isinstance(e, Compacted) for e in events)
    assert Rules(spec=lambda _: None, verdict=world.verdict).compact_at == 0
    assert any(isinstance(e, Usage) for e in events)

"""Properties of the fold: total, incremental, and the conversation stays one that providers accept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.chunks import decode_event, encode_event
from daiku.domain.events import (
    Event,
    MessageEvent,
    Notice,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.held import Compacted, Pruned, ShortenedResult
from daiku.domain.messages import AssistantMessage, ToolMessage
from daiku.domain.tools import Effect, ToolCall
from daiku.run.rules.state.condense import ContextWindow, Reading, plan_condensing
from daiku.run.rules.state.fold import apply, fold
from daiku.run.rules.state.state import State
from daiku.texts.text import Text

ids = st.sampled_from([f"c{i}" for i in range(6)])
words = st.text(max_size=8)
calls = st.lists(
    st.builds(ToolCall, id=ids, tool=st.just("files/read")), max_size=3, unique_by=lambda c: c.id
)
events = st.one_of(
    st.builds(RunStarted, prompt=words),
    st.builds(MessageEvent, role=st.just("user"), text=words),
    st.builds(MessageEvent, role=st.just("assistant"), text=words, calls=calls.map(tuple)),
    st.builds(ToolCallEvent, id=ids, tool=st.just("files/read"), args=st.just({})),
    st.builds(ToolResponse, id=ids, tool=st.just("files/read"), ok=st.booleans(), result=words),
    st.builds(Compacted, summary=words, kept=st.integers(0, 3)),
    st.builds(
        Pruned,
        results=st.lists(
            st.builds(
                lambda at, id_, text: ShortenedResult(at=at, call_id=id_, text=text),
                st.integers(-2, 20),
                ids,
                words,
            ),
            max_size=3,
        ).map(tuple),
    ),
    st.builds(Notice, level=st.just("info"), text=words),
    st.builds(RunFinished, status=st.sampled_from(["completed", "cancelled", "failed", "limit"])),
)


@given(st.lists(events, max_size=30), st.integers(0, 30))
def test_folding_in_two_parts_is_folding_at_once(history: list[Event], cut: int) -> None:
    assert fold(history[cut:], fold(history[:cut])) == fold(history)


@given(st.lists(events, max_size=30))
def test_a_stored_history_folds_to_the_same_state(history: list[Event]) -> None:
    stored = [decode_event(e.type, encode_event(e)) for e in history]
    assert fold(stored) == fold(history)


@st.composite
def conversations(draw: st.DrawFn) -> list[Event]:
    """Histories as the loop writes them: calls are answered in any order, people speak at any time."""
    history: list[Event] = [RunStarted(prompt="go")]
    number = 0
    for _ in range(draw(st.integers(0, 5))):
        made = [ToolCall(id=f"k{number + i}", tool="files/read") for i in range(draw(st.integers(0, 3)))]
        number += len(made)
        history.append(MessageEvent(role="assistant", text=Text("x"), calls=tuple(made)))
        for done in draw(st.permutations(made)):
            if draw(st.booleans()):
                history.append(MessageEvent(role="user", text=Text("meanwhile")))
            history.append(ToolCallEvent(id=done.id, tool=done.tool, args={}))
            if draw(st.integers(0, 9)) == 0:
                history.append(RunFinished(status="cancelled"))
                history.append(RunStarted(prompt="again"))
                break
            history.append(ToolResponse(id=done.id, tool=done.tool, ok=True, result="r"))
    return history


@given(conversations())
def test_results_follow_their_calls_with_nothing_in_between(history: list[Event]) -> None:
    state = State()
    for event in history:
        state = apply(state, event)
        if state.calls.pending:
            continue
        waiting: set[str] = set()
        for message in state.conversation.messages:
            match message:
                case AssistantMessage():
                    assert not waiting
                    waiting = {c.id for c in message.calls}
                case ToolMessage():
                    assert message.call_id in waiting
                    waiting.remove(message.call_id)
                case _:
                    assert not waiting
        assert not waiting


@given(conversations(), st.integers(10, 400), st.booleans())
def test_a_conversation_that_was_condensed_still_pairs_calls_with_results(
    history: list[Event], limit: int, refused: bool
) -> None:
    state = fold(history)
    if state.calls.pending:
        return
    effects: dict[str, Effect] = {"files/read": "read"}
    window = ContextWindow(limit, lambda: 5, lambda m: 30 * len(m), Reading(lambda call: call, effects.get))
    how = plan_condensing(state, window, refused=refused)
    if how is None:
        return
    if how.pruned is not None:
        state = apply(state, how.pruned)
    if how.kept is not None:
        assert how.kept < len(state.conversation.messages)
        state = apply(state, Compacted(summary="s", kept=how.kept))
    called = [c.id for m in state.conversation.messages if isinstance(m, AssistantMessage) for c in m.calls]
    answered = [m.call_id for m in state.conversation.messages if isinstance(m, ToolMessage)]
    assert sorted(called) == sorted(answered)

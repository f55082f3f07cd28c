"""How the conversation of a work item is condensed: above 0.7 of the window, and the newest five messages stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.events import Compacted
from daiku.domain.messages import AssistantMessage, Message, ToolMessage, UserMessage
from daiku.domain.tools import ToolCall
from daiku.run.request import RunRequest
from daiku.run.rules.state.condense import (
    WORK_KEPT,
    WORK_SHARE,
    ContextWindow,
    Reading,
    is_full,
    plan_condensing,
)
from daiku.run.rules.state.state import Conversation, State
from daiku.texts.text import Text
from tests.runs.playing import Watch
from tests.runs.windowed import Played, app_over

LIMIT = 10_000


def window(limit: int, kept: int = WORK_KEPT) -> ContextWindow:
    return ContextWindow(
        limit, lambda: 100, lambda messages: sum(len(m.text) for m in messages), _reading(), kept
    )


def _reading() -> Reading:
    return Reading(lambda call: call, lambda _: "read")


def conversation(results: list[int], size: int = 500) -> tuple[Message, ...]:
    """A request, then replies with so many results each."""
    found: list[Message] = [UserMessage(text="mend it")]
    for number, count in enumerate(results):
        calls = tuple(
            ToolCall(id=f"c{number}-{n}", tool="files/read", args={"path": f"{n}"}) for n in range(count)
        )
        found.append(AssistantMessage(text=Text("I look."), calls=calls))
        found += [ToolMessage(call_id=c.id, tool=c.tool, ok=True, text="x" * size) for c in calls]
    return tuple(found)


def test_the_threshold_is_seven_tenths_of_the_window_and_five_messages_are_kept() -> None:
    """S2C.18: `compression_threshold` and `keep_recent_messages`."""
    assert (WORK_SHARE, WORK_KEPT) == (0.7, 5)


def test_a_conversation_is_full_above_the_limit_and_not_at_it() -> None:
    """S2C.16: strictly greater."""
    at = Conversation(messages=(UserMessage(text="x" * (LIMIT - 100)),))
    above = Conversation(messages=(UserMessage(text="x" * (LIMIT - 99)),))
    assert not is_full(at, window(LIMIT))
    assert is_full(above, window(LIMIT))


@given(
    st.lists(st.integers(0, 4), min_size=8, max_size=20), st.lists(st.integers(0, 1), min_size=3, max_size=3)
)
def test_the_newest_five_stay_with_the_reply_whose_results_they_begin_with(
    old: list[int], newest: list[int]
) -> None:
    """S2C.17: no result is cut off from its call."""
    messages = conversation([2, 2, 2, *old, *newest], size=500)
    limit = sum(len(m.text) for m in messages)
    how = plan_condensing(State(conversation=Conversation(messages=messages)), window(limit))
    assert how is not None
    assert how.kept is not None
    assert how.kept >= WORK_KEPT
    kept = messages[len(messages) - how.kept :]
    assert not isinstance(kept[0], ToolMessage)
    if (
        how.kept > WORK_KEPT
    ):  # they would have begun with a result: its reply and the results before it stay too
        assert isinstance(messages[-WORK_KEPT], ToolMessage)
        assert all(isinstance(message, ToolMessage) for message in kept[1 : how.kept - WORK_KEPT])


def test_where_the_newest_five_fill_the_window_themselves_less_is_kept() -> None:
    """S2C.17: a summary must make room."""
    messages = conversation([1] * 6, size=4000)
    how = plan_condensing(State(conversation=Conversation(messages=messages)), window(LIMIT))
    assert how is not None
    assert how.kept is None or how.kept < WORK_KEPT


async def test_an_items_run_sums_up_above_seven_tenths_and_goes_on_from_summary_and_five(
    tmp_path: Path,
) -> None:
    """S2C.16, S2C.17: the summary comes first, then the five messages as they were; another run waits for 0.8."""
    shares = {mode: await _share_at_first_summary(tmp_path / mode, mode) for mode in ("work", "all")}
    assert 0.7 < shares["work"] <= 0.8 < shares["all"]


async def _share_at_first_summary(folder: Path, mode: Any) -> float:
    (folder / "project").mkdir(parents=True)
    for number in range(90):
        (folder / f"project/{number}.txt").write_text(f"{number}: " + "words of a file " * 80)
    steps = [[("files/read", {"path": f"{number}.txt"})] for number in range(90)]
    played = Played(steps, window=30_000)
    app, watch = app_over(folder, played, window=30_000), Watch()
    try:
        result = await app.runs.run(RunRequest("read them", approvals=mode), watch)
    finally:
        await app.aclose()
    assert result.status == "completed"
    first = next(c.event for c in watch.chunks if isinstance(c.event, Compacted))
    if mode == "work":
        assert first.kept in (WORK_KEPT, WORK_KEPT + 1)
        after = next(r for r in played.requests if "Summary of the conversation" in r.messages[0].text)
        assert len(after.messages) == 1 + first.kept
        before = played.requests[played.requests.index(after) - 1]
        assert (
            after.messages[1 : 1 + first.kept - 2] == before.messages[len(before.messages) - first.kept + 2 :]
        )
    return first.before_tokens / 30_000

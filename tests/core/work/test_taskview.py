"""The lines of context files, worked out from events: what a summary covers, what counts, which form lines have."""

from __future__ import annotations

from typing import Any, get_args

from daiku.domain.base import JsonObject
from daiku.domain.chunks import Chunk, encode_event
from daiku.domain.events import (
    AgentStart,
    Event,
    MessageEvent,
    PlanEvent,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.held import Compacted, Pruned, ShortenedResult
from daiku.domain.items.item import ItemKey, ItemState, read_key
from daiku.domain.messages import Usage
from daiku.domain.tools import ToolCall
from daiku.domain.work.plans import Plan, Step
from daiku.items.rules.tasklines import (
    FileLine,
    FileName,
    TaskView,
    build_current_line,
    build_current_lines,
    build_task_key,
    to_task_status,
)
from daiku.texts.text import Text
from tests.cases import for_each

TIME = "2026-01-02T03:04:05.000Z"
LONG = "x" * 400


def play(*events: Event, parent: str | None = None) -> tuple[TaskView, list[tuple[FileLine, ...]]]:
    view, added = TaskView("u-1", "files:mend"), list[tuple[FileLine, ...]]()
    for seq, event in enumerate(events, 1):
        chunk = Chunk(seq, TIME, "ses_1", "run_1", "coordinator", event, encode_event(event), parent)
        added.append(view.add(chunk))
    return view, added


def lines_of(file: FileName, *steps: tuple[FileLine, ...]) -> list[JsonObject]:
    return [line.value for step in steps for line in step if line.file == file]


def called(number: int) -> tuple[Event, ...]:
    """A reply with one call, and its result."""
    call = ToolCall(id=f"call_{number}", tool="files/read", args={"path": f"{number}.txt"})
    said = MessageEvent(role="assistant", text=Text(f"reply {number}"), calls=(call,))
    return (
        said,
        Usage(model="scripted/x", prompt_tokens=10, completion_tokens=2),
        ToolCallEvent(id=call.id, tool=call.tool, args=call.args),
        ToolResponse(id=call.id, tool=call.tool, ok=True, outcome="done", result=Text(LONG), duration_ms=7),
    )


START = (RunStarted(prompt="mend it", model="scripted/x"), AgentStart(model="scripted/x"))


def test_a_summary_names_the_messages_that_it_stands_for_and_the_history_stays_whole() -> None:
    """S2C.11, S2C.13: seqs are those of `messages.jsonl`, which the summary itself joins as a new message."""
    view, added = play(*START, *called(1), *called(2), *called(3), Compacted(summary="s" * 40, kept=2))
    assert view.seqs == (8, 6, 7)
    (line,) = lines_of("summaries.jsonl", added[-1])
    assert (line["id"], line["start_seq"], line["end_seq"]) == (1, 1, 5)
    assert isinstance(line["original_tokens"], int)
    assert line["original_tokens"] >= 200
    assert (line["summary_tokens"], line["summary"]) == (10, "s" * 40)
    assert line["ratio"] == round(10 / line["original_tokens"], 4)
    assert [each["seq"] for each in lines_of("messages.jsonl", *added)] == list(range(1, 9))
    assert view.compressions == 1


def test_results_that_were_shortened_are_the_same_messages() -> None:
    """S2C.11: append-only; a shorter text of the same result is no second message."""
    short = Pruned(results=(ShortenedResult(at=2, call_id="call_1", text="cut"),))
    view, added = play(*START, *called(1), *called(2), short)
    assert view.seqs == (1, 2, 3, 4, 5)
    assert not added[-1]
    assert view.state.conversation.messages[2].text == "cut"


def test_what_a_nested_run_calls_and_uses_counts_and_its_words_are_its_own() -> None:
    """S2C.9, S2C.14: calls and tokens of the whole item."""
    view, added = play(*called(1), parent="run_0")
    assert (view.llm_calls, view.tokens, view.tool_calls) == (1, 12, 1)
    assert not lines_of("messages.jsonl", *added)
    (line,) = lines_of("tools.jsonl", added[-1])
    assert (line["seq"], line["args"], line["duration_ms"]) == (1, {"path": "1.txt"}, 7)


def test_the_model_is_asked_where_no_call_is_open_and_the_last_word_is_not_its_own() -> None:
    """S2C.15"""
    events = (*START, *called(1), MessageEvent(role="assistant", text=Text("Done.")))
    asked = [play(*events[:length])[0].asks_model for length in range(len(events) + 1)]
    assert asked == [False, True, True, False, False, False, True, False]


def test_a_plan_is_a_line_and_so_is_every_change_of_it() -> None:
    """S2C.5, S2C.21 (`planning/`): a plan with other steps is a revision, one that gets on is progress."""
    plan = Plan(name="p", goal="g", steps=(Step(name="one"),))
    on = plan.model_copy(update={"status": "executing"})
    more = plan.model_copy(update={"steps": (*plan.steps, Step(name="two"))})
    view, added = play(*START, PlanEvent(plan=plan), PlanEvent(plan=on), PlanEvent(plan=more))
    lines = lines_of("planning", *added)
    assert [line["type"] for line in lines] == ["plan", "progress", "revision"]
    assert {(line["task_uuid"], line["issue_id"]) for line in lines} == {("u-1", "files:mend")}
    assert view.revisions == 1


def test_a_line_of_the_conversation_has_the_form_of_openai() -> None:
    """S2C.12: role and content, the name of a tool for its result alone, calls with their results."""
    view, _ = play(*START, *called(1))
    lines = [build_current_line(message) for message in view.state.conversation.messages]
    assert [set(line) for line in lines] == [
        {"role", "content"},
        {"role", "content", "tool_calls"},
        {"role", "content", "tool_call_id", "tool_name"},
    ]
    calls: Any = lines[1]["tool_calls"]
    assert calls[0]["function"] == {"name": "files__read", "arguments": '{"path": "1.txt"}'}
    assert not build_current_lines("", ())


@for_each(
    ("item", "kind", "owner", "repo"),
    [
        ("github:owner/name#12", "issue", "owner", "name"),
        ("github:owner/name!12", "pull_request", "owner", "name"),
        ("gitlab:group/sub/name#12", "issue", "group/sub", "name"),
        ("gitlab:group/name!12", "merge_request", "group", "name"),
        ("files:12", "file", "", ""),
    ],
)
def test_every_kind_of_item_has_its_key(item: str, kind: str, owner: str, repo: str) -> None:
    """S2K.1: what was four classes is one value, which is read from its name and written back to it."""
    key = read_key(item)
    assert key is not None
    assert str(key) == item
    assert build_task_key(key) == {
        "task_source": item.partition(":")[0],
        "owner": owner,
        "repo": repo,
        "task_type": kind,
        "task_id": "12",
    }
    assert ItemKey.model_validate_json(key.model_dump_json()) == key


def test_every_state_of_an_item_is_a_status_of_its_task() -> None:
    """S2C.7: running, completed, failed; and what the specification lacks: paused and stopped."""
    found = {state: to_task_status(state, was_started=True) for state in get_args(ItemState)}
    assert found == {
        "queued": "paused",
        "processing": "running",
        "paused": "paused",
        "waiting": "paused",
        "done": "completed",
        "failed": "failed",
        "dead": "failed",
        "stopped": "stopped",
    }
    assert to_task_status("queued", was_started=False) == "queued"

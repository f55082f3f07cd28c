"""The trace: one line per agent, tool and handoff, with tokens and times."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from daiku.domain.base import JsonObject
from daiku.domain.chunks import Chunk, encode_event
from daiku.domain.events import (
    Delta,
    Event,
    HandoffEnd,
    HandoffStart,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.messages import Usage
from daiku.texts.text import Text
from daiku.trace.rules.genai import DEPTH, TEXT_LIMIT, WHOLE_LIMIT, truncate_json
from daiku.trace.rules.lines import as_jsonl, trace_lines


def chunk(
    seq: int, event: Event, run: str = "run_a", agent: str = "coordinator", parent: str | None = None
) -> Chunk:
    time = f"2026-01-01T00:00:{seq:02}.000Z"
    return Chunk(seq, time, "ses_1", run, agent, event, encode_event(event), parent)


CHUNKS = [
    chunk(1, RunStarted(prompt="go")),
    chunk(2, Delta(text="x")),
    chunk(3, Usage(prompt_tokens=10, completion_tokens=2)),
    chunk(4, HandoffStart.model_validate({"from": "coordinator", "to": "coder", "request": "write it"})),
    chunk(5, RunStarted(prompt="write it"), "run_b", "coder", "run_a"),
    chunk(6, Usage(prompt_tokens=5, completion_tokens=1), "run_b", "coder", "run_a"),
    chunk(7, ToolCallEvent(id="c", tool="files/write", args={}), "run_b", "coder", "run_a"),
    chunk(
        8,
        ToolResponse(id="c", tool="files/write", ok=True, result="y" * 9000, duration_ms=7),
        "run_b",
        "coder",
        "run_a",
    ),
    chunk(9, RunFinished(status="completed", text=Text("written")), "run_b", "coder", "run_a"),
    chunk(10, HandoffEnd.model_validate({"from": "coordinator", "to": "coder", "result": "written"})),
    chunk(11, RunFinished(status="limit")),
]


def test_each_span_has_its_line_with_its_own_tokens() -> None:
    """R1.55: the six kinds."""
    lines = trace_lines(CHUNKS)
    assert [(line.event, line.agent, line.tool, line.tok_prompt, line.tok_completion) for line in lines] == [
        ("agent_start", "coordinator", None, 0, 0),
        ("handoff_start", "coordinator", "coder", 10, 2),
        ("agent_start", "coder", None, 0, 0),
        ("tool_start", "coder", "files/write", 5, 1),
        ("tool_end", "coder", "files/write", 5, 1),
        ("agent_end", "coder", None, 5, 1),
        ("handoff_end", "coordinator", "coder", 10, 2),
        ("agent_end", "coordinator", None, 10, 2),
    ]
    assert [line.duration_ms for line in lines] == [0, 0, 0, 0, 7, 4000, 6000, 10000]
    assert lines[-1].result == "limit"


def test_the_result_of_a_tool_is_its_data_as_json_else_its_text() -> None:
    """R1.98: `result` with new_text and change_map; every line has every field."""
    data: JsonObject = {"new_text": "# Title\n", "change_map": [{"op": "replace", "start": 0, "end": 3}]}
    with_data = ToolResponse(id="c", tool="document/draft", ok=True, result=Text("Done."), data=data)
    lines = trace_lines([chunk(1, with_data), chunk(2, with_data.model_copy(update={"data": None}))])
    assert [line.result for line in lines] == [data, "Done."]
    for line in as_jsonl(CHUNKS).splitlines():
        assert list(json.loads(line)) == [
            *("event", "time", "session", "agent", "tool"),
            *("tok_prompt", "tok_completion", "duration_ms", "result"),
        ]
    assert json.loads(as_jsonl(CHUNKS).splitlines()[0])["time"] == "2026-01-01T00:00:01.000Z"


def test_what_is_cut_of_a_result_is_marked_in_its_place() -> None:
    long = "y" * (TEXT_LIMIT + 7)
    many: list[JsonValue] = ["z" * 100] * 5000
    data: JsonObject = {"output": long, "lines": many, "last": 1}
    response = ToolResponse(id="c", tool="shell/run", ok=True, result=Text(""), data=data)
    [line] = trace_lines([chunk(1, response)])
    assert isinstance(line.result, dict)
    assert line.result["output"] == "y" * TEXT_LIMIT + "[… 7 characters cut]"
    shown = line.result["lines"]
    assert isinstance(shown, list)
    left_out = 5000 - (len(shown) - 1)
    assert shown[-1] == f"[… {left_out} items cut]"
    assert line.result["…"] == "[… 1 items cut]"
    assert len(line.jsonl()) < 2 * WHOLE_LIMIT


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda e: st.lists(e) | st.dictionaries(st.text(), e),
    )
)
def test_what_is_small_is_whole(value: JsonValue) -> None:
    assert truncate_json(value) == value or len(json.dumps(value)) > 10_000 or _deep(value)


def _deep(value: JsonValue, at: int = 0) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return at > DEPTH or any(_deep(each, at + 1) for each in inner)


def test_an_agent_without_start_on_record_still_ends() -> None:
    """Journals of earlier versions have no agent_start and no agent_end."""
    [line] = trace_lines([chunk(1, RunFinished(status="completed", text=Text("ok")))])
    assert (line.event, line.result, line.duration_ms) == ("agent_end", "ok", 0)


def test_a_handoff_that_hands_something_over_shows_it() -> None:
    back = {"from": "a", "to": "b", "result": "written", "run": "run_b"}
    line = trace_lines([chunk(1, HandoffEnd.model_validate(back))])[0]
    assert (line.event, line.tool, line.result) == ("handoff_end", "b", "written")

"""The trace: one line per agent, tool and handoff, with tokens and times."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

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
from daiku.trace.export import RESULT_LIMIT, TraceRecorder, as_jsonl, trace_lines, write_trace


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


def test_long_results_are_cut() -> None:
    assert max(len(line.result or "") for line in trace_lines(CHUNKS)) == RESULT_LIMIT


def test_what_is_added_run_by_run_is_what_is_written_at_once(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    for part in (
        CHUNKS,
        [chunk(20, RunStarted(prompt="more"), "run_c"), chunk(21, RunFinished(status="completed"), "run_c")],
    ):
        tracing = TraceRecorder()
        for one in part:
            tracing(one)
        tracing.append_to(tmp_path / "traces", "ses_1")
    grown = (tmp_path / "traces" / "ses_1.jsonl").read_text(encoding="utf-8")
    assert len(grown.splitlines()) == 10
    assert grown.startswith(as_jsonl(CHUNKS))


def test_the_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    before = os.umask(0)
    try:
        path = write_trace(tmp_path, "ses_1", CHUNKS)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for line in path.read_text(encoding="utf-8").splitlines():
        assert json.loads(line)["session"] == "ses_1"

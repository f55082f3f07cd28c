"""The public TraceLogger: with a Runner, and called with the chunks of a stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daiku import Agent, Runner, TraceLogger, tool
from daiku.testing import FakeLLM
from tests.trace.normalised import compare_with_golden
from tests.trace.telemetry.collectors import http_collector, values


@tool
def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


CALC = Agent("calc", "Calculate.", tools=[add])


def model() -> FakeLLM:
    return FakeLLM({"tool": "add", "args": {"a": 1, "b": 2}}, "3")


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


async def test_a_runner_writes_its_trace_where_it_is_told(tmp_path: Path) -> None:
    """R1.15, R1.98: one line an event, the tool's data as JSON."""
    async with Runner(model=model(), trace=tmp_path / "trace.jsonl") as runner:
        assert (await runner.run(CALC, "1 + 2")).text == "3"
    lines = lines_of(tmp_path / "trace.jsonl")
    assert [line["event"] for line in lines] == ["agent_start", "tool_start", "tool_end", "agent_end"]
    assert lines[2]["result"] == {"sum": 3}
    assert lines[3]["result"] == "3"
    compare_with_golden("library", (tmp_path / "trace.jsonl").read_text(encoding="utf-8"))


async def test_one_logger_serves_many_runners_and_stays_open(tmp_path: Path) -> None:
    with http_collector() as collected, TraceLogger(tmp_path, otlp_endpoint=collected.address) as trace:
        for _ in range(3):
            async with Runner(model=model(), trace=trace) as runner:
                await runner.run(CALC, "1 + 2")
        assert len(list(tmp_path.iterdir())) == 3
        trace.close()
        assert len(collected.spans) == 12
        assert len({span.trace_id for span in collected.spans}) == 3
        tools = [values(span) for span in collected.spans if span.name == "execute_tool add"]
        assert {told["gen_ai.agent.name"] for told in tools} == {"calc"}


async def test_a_logger_takes_the_chunks_of_a_stream(tmp_path: Path) -> None:
    async with Runner(model=model()) as runner:
        with TraceLogger(tmp_path / "trace.jsonl") as trace:
            async for chunk in runner.stream(CALC, "1 + 2"):
                trace(chunk)
    assert [line["event"] for line in lines_of(tmp_path / "trace.jsonl")] == [
        *("agent_start", "tool_start", "tool_end"),
        "agent_end",
    ]


async def test_settings_set_the_endpoint(tmp_path: Path) -> None:
    with http_collector() as collected:
        settings = {"trace": {"otlp_endpoint": collected.address}}
        async with Runner(model=model(), settings=settings) as runner:
            await runner.run(CALC, "1 + 2")
        assert len(collected.spans) == 4


def test_a_wrong_trace_is_named() -> None:
    with pytest.raises(TypeError, match="`trace` is a TraceLogger or a path, not int"):
        Runner(trace=3)  # pyright: ignore[reportArgumentType]  # on purpose
    with pytest.raises(ValueError, match="otlp_endpoint"):
        TraceLogger(otlp_endpoint="nowhere")

"""Nested runs are bounded as top ones are: loops, rounds, actions of one reply; and the work goes on above them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daiku.domain.chunks import Chunk
from daiku.domain.errors import Failure
from daiku.domain.events import MessageEvent, RunFinished, ToolCallEvent, ToolResponse
from daiku.domain.runs import RunLimits, RunResult
from daiku.run.request import RunRequest
from tests.runs.playing import Watch, make_app

Json = dict[str, Any]
HAND_OVER = {"tool": "agent/handoff", "args": {"agent": "coordinator", "request": "LOOP"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    for name in "abc":
        (project / f"{name}.txt").write_text(f"marker {name}\n")
    return tmp_path


def read(path: str) -> Json:
    return {"tool": "files/read", "args": {"path": path}}


def edit(old: str, new: str) -> Json:
    return {"tool": "files/edit", "args": {"path": "a.txt", "edits": [{"search": old, "replace": new}]}}


async def nested(folder: Path, lines: list[Json], limits: RunLimits) -> tuple[RunResult, list[Chunk]]:
    """A run that hands over to one that plays `lines`, and goes on when that is back."""
    lines = [{"when": "LOOP" if i == 0 else "marker", **line} for i, line in enumerate(lines)]
    app = make_app(folder, {"calls": [HAND_OVER], "when": "go"}, *lines, {"text": "It is over."})
    watch = Watch()
    result = await app.runs.run(RunRequest("go", approvals="all", limits=limits), watch)
    await app.aclose()
    return result, watch.chunks


REMINDED = "None of your last 3 replies"
"""What a model is told before its fourth reply where nothing could be carried out."""

LOOPS: dict[str, list[Json]] = {
    "same result": [{"calls": [read("a.txt")]}] * 9,
    "same failure": [
        {**({"when": REMINDED} if n == 3 else {}), "calls": [read("marker-missing.txt")]} for n in range(9)
    ],
    "alternating": [{"calls": [read("a.txt")]}, {"calls": [read("b.txt")]}] * 5,
    "same text": [
        {
            **({"when": REMINDED} if n == 3 else {}),
            "text": "Let me look.",
            "calls": [{"tool": f"none/marker{n}", "args": {}}],
        }
        for n in range(9)
    ],
    "reverted edits": [{"calls": [edit("marker a", "marker x")]}, {"calls": [edit("marker x", "marker a")]}]
    * 5,
}


@pytest.mark.parametrize("kind", LOOPS)
async def test_five_kinds_of_loops_end_a_nested_run_within_three_repeats(folder: Path, kind: str) -> None:
    result, chunks = await nested(folder, LOOPS[kind], RunLimits(max_tool_errors=0))
    assert (result.status, result.text) == ("completed", "It is over.")
    inside = [c.event for c in chunks if c.parent is not None]
    assert [e.status for e in inside if isinstance(e, RunFinished)] == ["limit"]
    back = next(c.event for c in chunks if isinstance(c.event, ToolResponse) and c.parent is None)
    assert not back.ok
    assert f"got stuck in a loop ({kind})" in back.result
    turns = sum(isinstance(e, ToolCallEvent) for e in inside)
    assert turns <= (8 if kind == "alternating" else 4), "the first time, and three repeats"


async def test_rounds_are_counted_together(folder: Path) -> None:
    lines: list[Json] = [{"calls": [read(f"{name}.txt")]} for name in "abc"] * 4
    result, chunks = await nested(folder, lines, RunLimits(max_rounds=3, max_repeats=0))
    assert result.status == "limit"
    assert sum(c.type == "message" and '"role":"assistant"' in c.data for c in chunks) == 3
    assert sum(c.type == "run_finished" for c in chunks) == 2


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("most", [8, 9, 13])
async def test_every_run_of_a_tree_has_its_last_word_within_the_rounds_of_the_whole(
    folder: Path, most: int, depth: int
) -> None:
    down = [
        {
            "calls": [{"tool": "agent/handoff", "args": {"agent": "coordinator", "request": f"go {n + 1}"}}],
            "when": f"go {n}",
        }
        for n in range(depth)
    ]
    reads = [
        {"calls": [read(f"{'abc'[n % 3]}.txt")], "when": "marker" if n else f"go {depth}"}
        for n in range(most)
    ]
    last = {"text": "Left: the rest.", "when": "This is your last reply"}
    app, watch = make_app(folder, *down, *reads, last), Watch()
    limits = RunLimits(max_rounds=most, max_repeats=0)
    result = await app.runs.run(RunRequest("go 0", approvals="all", limits=limits), watch)
    await app.aclose()
    said = [e for c in watch.chunks if isinstance(e := c.event, MessageEvent) and e.role == "assistant"]
    assert len(said) == most, "every round is used, and none more"
    assert [e.text for e in said if not e.calls] == ["Left: the rest."] * (depth + 1)
    assert (result.status, result.text) == ("limit", "Left: the rest.")
    errors = [e.message for c in watch.chunks if isinstance(e := c.event, Failure)]
    assert set(errors) == {f"The round limit was reached ({most} rounds)."}


async def test_who_has_one_round_from_the_start_does_with_it_what_it_can(folder: Path) -> None:
    app = make_app(
        folder,
        *({"calls": [read("a.txt")], "when": "marker" if n else "go"} for n in range(2)),
        {"calls": [HAND_OVER], "when": "marker"},
        {"text": "Done within it.", "when": "LOOP"},
        {"text": "All is done.", "when": "This is your last reply"},
    )
    watch, limits = Watch(), RunLimits(max_rounds=5, max_repeats=0)
    await app.runs.run(RunRequest("go", approvals="all", limits=limits), watch)
    await app.aclose()
    inside = [c.event for c in watch.chunks if c.parent is not None and isinstance(c.event, RunFinished)]
    assert [(e.status, e.text) for e in inside] == [("completed", "Done within it.")]


async def test_of_a_long_list_only_so_many_actions_are_carried_out(folder: Path) -> None:
    lines = [{"calls": [read(f"{name}.txt") for name in "abc"]}, {"text": "I read two."}]
    result, chunks = await nested(folder, lines, RunLimits(max_actions=2))
    assert result.status == "completed"
    answers = [c.event for c in chunks if isinstance(c.event, ToolResponse) and c.parent is not None]
    assert [a.ok for a in answers] == [True, True, False]
    assert "at most 2 are run" in answers[2].result

"""Models that fail for a while, promise or fall silent: they are helped, and never end as if they had done it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.chunks import Chunk
from daiku.domain.events import MessageEvent, ToolResponse
from daiku.domain.runs import RunLimits, RunResult
from daiku.run.request import RunRequest
from tests.runs.playing import Watch, make_app

Json = dict[str, Any]
RIGHT = {"path": "a.py", "edits": [{"search": "return a - b", "replace": "return a + b"}]}


async def play(folder: Path, *lines: Json, limits: RunLimits | None = None) -> tuple[RunResult, list[Chunk]]:
    project = folder / "project"
    project.mkdir(exist_ok=True)
    (project / "a.py").write_text("def add(a, b):\n    return a - b\n")
    app = make_app(folder, *lines)
    watch = Watch()
    result = await app.runs.run(RunRequest("mend a.py", approvals="all", limits=limits or RunLimits()), watch)
    await app.aclose()
    return result, watch.chunks


def reminders(chunks: list[Chunk]) -> list[str | None]:
    said = (c.event for c in chunks)
    return [e.reminder for e in said if isinstance(e, MessageEvent) and e.role == "user" and e.reminder]


def call(tool: str, args: Json) -> Json:
    return {"calls": [{"tool": tool, "args": args}]}


def wrong(n: int) -> Json:
    return call("files/edit", {"path": "a.py", "wrong_key": f"try {n}"})


DONE = {"text": "add adds now."}


@pytest.mark.parametrize("fails", range(8))
async def test_a_model_that_fails_and_then_is_right_ends_well(tmp_path: Path, fails: int) -> None:
    result, chunks = await play(tmp_path, *(wrong(n) for n in range(fails)), call("files/edit", RIGHT), DONE)
    assert (result.status, result.text) == ("completed", "add adds now.")
    assert (tmp_path / "project/a.py").read_text().endswith("return a + b\n")
    assert reminders(chunks) == (["errors"] if fails >= 3 else [])


async def test_at_the_eighth_failure_in_a_row_the_model_has_the_last_word(tmp_path: Path) -> None:
    words = {"text": "I could not edit a.py; the line to change is line 2."}
    result, chunks = await play(tmp_path, *(wrong(n) for n in range(8)), words, DONE)
    assert (result.status, result.text) == ("limit", words["text"])
    assert result.error is not None
    assert "tool error limit" in result.error.message
    assert reminders(chunks) == ["errors", "last_word"]


async def test_calls_of_the_last_word_are_not_run(tmp_path: Path) -> None:
    result, chunks = await play(tmp_path, *(wrong(n) for n in range(8)), call("files/edit", RIGHT), DONE)
    assert result.status == "limit"
    assert (tmp_path / "project/a.py").read_text().endswith("return a - b\n")
    answers = [c.event for c in chunks if isinstance(c.event, ToolResponse)]
    assert [a.outcome for a in answers] == ["failed"] * 8 + ["not_run"]


async def test_an_edit_that_was_answered_with_the_lines_as_they_stand_is_progress(tmp_path: Path) -> None:
    near = [
        call("files/edit", {"path": "a.py", "edits": [{"search": f"    return a - b{c}", "replace": "x"}]})
        for c in "cdefghijkl"
    ]
    result, chunks = await play(tmp_path, *near, call("files/edit", RIGHT), DONE)
    assert result.status == "completed"
    assert reminders(chunks) == []


@pytest.mark.parametrize("reply", [{"text": ""}, {"text": "I'll now read the file and fix the bug."}])
async def test_silence_and_promises_are_asked_about_once_and_never_complete_a_run(
    tmp_path: Path, reply: Json
) -> None:
    result, chunks = await play(tmp_path, reply, call("files/edit", RIGHT), DONE)
    assert result.status == "completed"
    assert reminders(chunks) == ["unfinished"]
    twice, chunks = await play(tmp_path, reply, reply, DONE)
    assert (twice.status, reminders(chunks)) == ("failed", ["unfinished"])
    assert twice.error is not None
    assert twice.error.kind == "format"


async def test_the_model_is_told_ten_rounds_before_the_end_and_hands_over_with_the_last(
    tmp_path: Path,
) -> None:
    (tmp_path / "project").mkdir()
    for n in range(30):
        (tmp_path / f"project/f{n}").write_text(f"{n}\n")
    reads = [call("files/read", {"path": f"f{n}"}) for n in range(23)]
    words = {"text": "Read 23 files; f23 to f29 are left."}
    limits = RunLimits(max_rounds=24, max_repeats=0)
    result, chunks = await play(tmp_path, *reads, words, DONE, limits=limits)
    assert (result.status, result.text) == ("limit", words["text"])
    assert reminders(chunks) == ["rounds", "last_word"]
    replies = [c for c in chunks if isinstance(c.event, MessageEvent) and c.event.role == "assistant"]
    assert len(replies) == 24


def test_the_bounds_are_those_that_were_promised() -> None:
    limits = RunLimits()
    assert (limits.max_rounds, limits.max_tool_errors) == (250, 8)
    assert json.loads(limits.model_dump_json(by_alias=True))["maxRounds"] == 250

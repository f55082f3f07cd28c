"""A long output is a part and a name: the line in its middle is one step away, and nothing else is opened by it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from daiku.domain.chunks import Chunk
from daiku.domain.events import ApprovalAsked, ToolResponse
from daiku.run.request import RunRequest
from tests.runs.playing import Watch, make_app, shell

Json = dict[str, Any]
PRINT = "for i in $(seq 1 6000); do if [ $i = 3210 ]; then echo 'planted: the till is ajar'; else echo line $i of a long log; fi; done"
DONE: Json = {"text": "Seen."}


def call(tool: str, **args: Any) -> Json:
    return {"calls": [{"tool": tool, "args": args}]}


def responses(chunks: list[Chunk]) -> list[ToolResponse]:
    return [c.event for c in chunks if isinstance(c.event, ToolResponse)]


async def play(folder: Path, *lines: Json) -> tuple[Watch, str]:
    (folder / "project").mkdir(exist_ok=True)
    app, watch = make_app(folder, *lines, DONE, command="allow"), Watch()
    result = await app.runs.run(RunRequest("go", approvals="all"), watch)
    await app.aclose()
    return watch, result.session_id


async def git(folder: Path, *words: str) -> str:
    process = await asyncio.create_subprocess_exec("git", *words, cwd=folder, stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].decode()


async def test_a_line_in_the_middle_of_6000_is_one_step_away(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    await git(tmp_path / "project", "init", "-q")
    found = call("search/text", pattern="planted: .*", path="output:for-i")
    read = call("files/read", path="output:for-i", start_line=3209, end_line=3211)
    watch, _ = await play(tmp_path, {"calls": [shell(PRINT)]}, found, read)
    ran, searched, shown = responses(watch.chunks)
    assert "planted" not in ran.result
    assert len(ran.result) < 31_000
    assert 'kept as "output:for-i"' in ran.result
    assert "search__text" in ran.result
    assert ran.data is not None
    assert ran.data["whole"] == "output:for-i"
    assert searched.result == "output:for-i:3210: planted: the till is ajar"
    assert "3210 | planted: the till is ajar" in shown.result
    assert await git(tmp_path / "project", "status", "--porcelain") == ""


async def test_a_failure_in_the_middle_is_shown_at_once(tmp_path: Path) -> None:
    watch, _ = await play(
        tmp_path, {"calls": [shell(PRINT.replace("planted: the", "FAILED tests/test_till.py - the"))]}
    )
    (ran,) = responses(watch.chunks)
    assert "\nFAILED tests/test_till.py - the till is ajar\n" in ran.result


async def test_a_call_says_how_much_it_wants_to_see(tmp_path: Path) -> None:
    calls = [
        {"tool": "shell/run", "args": {"command": PRINT, "max_output": n}} for n in (500, 50_000, 60_000)
    ]
    watch, _ = await play(tmp_path, *({"calls": [each]} for each in calls))
    little, much, too_much = responses(watch.chunks)
    assert len(little.result) < 2500
    assert "planted" in much.result
    assert len(much.result) > 100_000
    assert much.data is not None
    assert "whole" not in much.data
    assert (too_much.ok, too_much.outcome) == (False, "failed")


async def test_an_output_of_another_session_or_none_is_refused_in_words(tmp_path: Path) -> None:
    await play(tmp_path, {"calls": [shell(PRINT)]})
    watch, _ = await play(
        tmp_path,
        call("files/read", path="output:for-i"),
        call("search/text", pattern="planted", path="output:for-i"),
        call("files/read", path="output:../daiku"),
    )
    assert [r.ok for r in responses(watch.chunks)] == [False, False, False]
    assert "Run the command again" in responses(watch.chunks)[0].result


async def test_reading_an_output_asks_nobody_and_everything_else_is_judged_as_before(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("x")
    app = make_app(tmp_path, {"calls": [shell(PRINT)]}, call("files/read", path="output:for-i"), DONE)
    watch = Watch()
    await app.runs.run(RunRequest("go", approvals="all"), watch)
    assert not any(isinstance(c.event, ApprovalAsked) for c in watch.chunks)
    assert all(r.ok for r in responses(watch.chunks))
    await app.aclose()


async def test_a_later_run_of_the_session_still_has_it(tmp_path: Path) -> None:
    _, session = await play(tmp_path, {"calls": [shell(PRINT)]})
    (tmp_path / "project").mkdir(exist_ok=True)
    played = (DONE, DONE)  # by the run before
    app = make_app(tmp_path, *played, call("search/text", pattern="PLANTED", path="output:for-i"), DONE)
    watch = Watch()
    await app.runs.run(RunRequest("and?", session=session, approvals="all"), watch)
    (found,) = responses(watch.chunks)
    assert "planted: the till is ajar" in found.result
    await app.aclose()


async def test_a_command_that_takes_too_long_is_told_what_to_do(tmp_path: Path) -> None:
    watch, _ = await play(
        tmp_path, {"calls": [{"tool": "shell/run", "args": {"command": "sleep 5", "timeout": 0.2}}]}
    )
    (ran,) = responses(watch.chunks)
    assert "longer timeout" in ran.result
    assert "background: true" in ran.result

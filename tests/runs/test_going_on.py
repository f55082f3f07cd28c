"""Half an answer is never an answer, and a run that was stopped before it was done can be gone on with."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from daiku.app import App
from daiku.domain.events import ApprovalAsked, Delta, MessageEvent, Notice, PlanEvent, RunFinished, RunStarted
from daiku.domain.messages import AssistantMessage
from daiku.domain.runs import RunLimits, RunResult
from daiku.domain.tools import ToolCall
from daiku.run.recorded.history import events_of
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from daiku.run.rules.state.fold import fold
from tests.runs.nested.test_team import CODER, TWO_STEPS, by
from tests.runs.playing import Watch, make_app, shell

ANSWER = "This answer comes in pieces, and each of them is shown at once as it comes."
SLOW: dict[str, Any] = {"text": ANSWER, "delay_ms": 30}
BROKEN = {"text": ANSWER, "error": {"kind": "auth", "message": "The key is wrong."}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path


async def shown(watch: Watch, pieces: int) -> str:
    """What is shown of the answer once there are so many pieces of it."""
    async with asyncio.timeout(20):
        while True:
            texts = [c.event.text for c in watch.chunks if isinstance(c.event, Delta)]
            if len(texts) >= pieces:
                return "".join(texts)
            await asyncio.sleep(0.002)


async def interrupted(app: App, how: str, pieces: int) -> tuple[str, str, RunResult]:
    """A run of which the answer was cut off; its id, what was shown, its result."""
    watch = Watch()
    limits = RunLimits(max_seconds=1) if how == "time" else None
    task = asyncio.create_task(app.runs.run(RunRequest("Tell me", limits=limits), watch))
    seen = await shown(watch, pieces)
    run = watch.chunks[0].run
    if how == "restart":
        await app.runs.stop_all()
    elif how == "cancel":
        await app.runs.cancel(run)
    elif how == "caller":
        task.cancel()
    (done,) = await asyncio.gather(task, return_exceptions=True)
    if isinstance(done, BaseException):
        done = await app.runs.cancel(run)
    return run, seen, done


@pytest.mark.slow  # a sweep over interruptions
@pytest.mark.parametrize("pieces", [1, 2, 5])
@pytest.mark.parametrize("how", ["restart", "cancel", "caller", "time", "error"])
async def test_half_an_answer_is_a_draft_and_the_model_is_asked_again(
    folder: Path, how: str, pieces: int
) -> None:
    """A script plays the same line again as long as nothing was said behind its place."""
    first = BROKEN if how == "error" else {**SLOW, "delay_ms": 400} if how == "time" else SLOW
    app = make_app(folder, first, {"text": "The whole answer."})
    whole = ANSWER if how == "restart" else "The whole answer."
    run, seen, result = await interrupted(app, how, pieces if how != "time" else 1)
    assert result.status == {"restart": "paused", "time": "limit", "error": "failed"}.get(how, "cancelled")
    assert result.text == ""
    chunks = app.journal.chunks(result.session_id)
    said = [c.event for c in chunks if isinstance(c.event, MessageEvent)]
    assert [(m.partial, m.text.startswith(seen)) for m in said] == [(True, True)]
    assert not any(isinstance(c.event, RunFinished) and c.event.status == "completed" for c in chunks)
    again = await app.runs.resume(run, Watch())
    assert (again.status, again.text) == ("completed", whole)
    assert again.session_id == result.session_id
    assert (again.run_id == run) is (how == "restart")
    after = app.journal.chunks(result.session_id)
    last = [c.event for c in after if isinstance(c.event, MessageEvent)][-1]
    assert (last.partial, last.text) == (False, whole)
    assert (await replay(after)).difference is None
    await app.aclose()


async def test_a_draft_is_known_to_the_next_request_but_not_to_the_same_one(folder: Path) -> None:
    app = make_app(folder, SLOW, {"text": "The whole answer."})
    _, seen, result = await interrupted(app, "cancel", 2)
    state = fold(events_of(app.journal.chunks(result.session_id)))
    (kept,) = [m.text for m in state.conversation.messages if isinstance(m, AssistantMessage)]
    assert kept.startswith(seen)
    await app.aclose()
    (folder / "home/daiku.db").unlink()
    app = make_app(folder, SLOW, {"text": "The whole answer."})
    _, _, result = await interrupted(app, "restart", 2)
    state = fold(events_of(app.journal.chunks(result.session_id)))
    assert not [m for m in state.conversation.messages if isinstance(m, AssistantMessage)]
    await app.aclose()


LOOK = {"calls": [shell("echo hi")]}


@pytest.mark.parametrize(
    ("lines", "limits", "status"),
    [
        ([LOOK], RunLimits(max_rounds=1), "limit"),
        ([LOOK, LOOK], RunLimits(max_rounds=2), "limit"),
        ([LOOK], RunLimits(max_tokens=1), "limit"),
        ([LOOK, LOOK, LOOK], RunLimits(max_repeats=2), "limit"),
        ([{"text": "x", "error": {"kind": "auth", "message": "no", "times": 1}}], None, "failed"),
        ([LOOK, {"text": "x", "error": {"kind": "not_found", "message": "no", "times": 1}}], None, "failed"),
    ],
)
async def test_what_ended_before_it_was_done_goes_on_in_its_conversation(
    folder: Path, lines: list[dict[str, Any]], limits: RunLimits | None, status: str
) -> None:
    app = make_app(folder, *lines, {"text": "Now it is done."}, command="allow")
    first = await app.runs.run(RunRequest("Look at it.", limits=limits), Watch())
    assert first.status == status
    watch = Watch()
    again = await app.runs.resume(first.run_id, watch)
    assert again.status == "completed"
    assert again.text == "Now it is done."
    assert again.session_id == first.session_id
    (started,) = [c.event for c in watch.chunks if isinstance(c.event, RunStarted)]
    assert started.prompt == "Look at it."
    ends = [c for c in app.journal.chunks(first.session_id) if isinstance(c.event, RunFinished)]
    assert len({c.run for c in ends}) == len(ends) == 2
    await app.aclose()


async def test_a_finished_run_repeats_its_result_and_nothing_happens(folder: Path) -> None:
    app = make_app(folder, {"text": "Done."}, {"text": "Not asked for."})
    first = await app.runs.run(RunRequest("do it"), Watch())
    before = len(app.journal.chunks(first.session_id))
    watch = Watch()
    assert await app.runs.resume(first.run_id, watch) == first
    assert (watch.chunks, len(app.journal.chunks(first.session_id))) == ([], before)
    await app.aclose()


async def test_a_run_that_others_followed_repeats_its_result(folder: Path) -> None:
    app = make_app(folder, LOOK, {"text": "Another."}, {"text": "Not asked for."}, command="allow")
    first = await app.runs.run(RunRequest("do it", limits=RunLimits(max_rounds=1)), Watch())
    await app.runs.run(RunRequest("and now?", session=first.session_id), Watch())
    again = await app.runs.resume(first.run_id, Watch())
    assert (again.run_id, again.status, again.text) == (first.run_id, first.status, first.text)
    await app.aclose()


@pytest.mark.slow  # a sweep over interruptions
@pytest.mark.parametrize("rounds", range(1, 9))
async def test_the_work_of_a_plan_goes_on_with_that_plan_and_does_nothing_twice(
    folder: Path, rounds: int
) -> None:
    app = make_app(folder, *TWO_STEPS, {"text": "The rest is left.", "when": "This is your last reply"})
    limits = RunLimits(max_rounds=rounds)
    watch = Watch()
    request = RunRequest("greet me", agent="team", approvals="all", limits=limits)
    result = await app.runs.run(request, watch)
    assert result.status == "limit"
    lines = (*TWO_STEPS, by(CODER, text="No change: it stands."))
    (folder / "script.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    again = await app.runs.resume(result.run_id, watch, "all")
    assert again.status == "completed", again.error
    plans = {c.event.plan.plan_id for c in watch.chunks if isinstance(c.event, PlanEvent)}
    assert len(plans) == 1 or rounds == 1
    assert again.plan is not None
    assert (again.plan.done, again.plan.total, again.plan.open) == (2, 2, 0)
    assert sorted(p.name for p in (folder / "project").iterdir()) == ["a.txt", "b.txt"]
    await app.aclose()


@pytest.mark.parametrize("room", [3, 5, 9])
async def test_after_a_full_disk_it_goes_on_once_there_is_room(folder: Path, room: int) -> None:
    app = make_app(folder, {"text": "y" * 60_000}, {"text": "Done."}, {"text": "Done."})
    db = app.journal._db  # a full disk, without one
    pages = db.first("PRAGMA page_count")[0]
    db.write(f"PRAGMA max_page_count = {pages + room}")
    first = await app.runs.run(RunRequest("go"), Watch())
    assert first.status == "failed"
    assert first.error is not None
    assert "the disk is full" in first.error.message
    db.write("PRAGMA max_page_count = 100000")
    again = await app.runs.resume(first.run_id, Watch())
    assert again.status == "completed"
    await app.aclose()


async def test_calls_that_a_run_was_handed_go_on_with_those_that_are_left(folder: Path) -> None:
    app = make_app(folder, {"text": "Not asked for."}, command="allow")
    calls = tuple(shell(command) for command in ("echo 1 >> a", "echo 2 >> a; sleep 9", "echo 3 >> a"))
    given = tuple(ToolCall(tool=c["tool"], args=c["args"]) for c in calls)
    watch = Watch()
    task = asyncio.create_task(
        app.runs.run(RunRequest("go", calls=given, agent="runner", approvals="all"), watch)
    )
    file = folder / "project/a"
    async with asyncio.timeout(20):
        while not file.exists() or "2" not in file.read_text():
            await asyncio.sleep(0.01)
    await app.runs.cancel(watch.chunks[0].run)
    first = await task
    assert first.status == "cancelled"
    task = asyncio.create_task(app.runs.resume(first.run_id, watch, "all"))
    async with asyncio.timeout(20):
        while file.read_text().count("2") < 2:
            await asyncio.sleep(0.01)
    assert file.read_text().split() == ["1", "2", "2"]
    await app.runs.cancel(watch.chunks[-1].run)
    await task
    await app.aclose()


async def test_after_a_kill_the_person_is_told_that_what_was_being_written_is_not_on_record(
    folder: Path,
) -> None:
    """As after kill -9: the journal holds the start of the run and nothing of the answer."""
    app = make_app(folder, {"text": "The whole answer."})
    session = app.journal.add_session(str(folder / "project"))
    app.journal.writer(session).write("run_1", None, "coordinator", [RunStarted(prompt="Tell me")])
    app.journal.note_status(session, "running")
    watch = Watch()
    result = await app.runs.resume("run_1", watch)
    assert (result.run_id, result.status, result.text) == ("run_1", "completed", "The whole answer.")
    assert [
        c.event.text for c in watch.chunks if isinstance(c.event, Notice) and "not on record" in c.event.text
    ]
    again = Watch()
    await app.runs.resume("run_1", again)
    assert again.chunks == []
    await app.aclose()


async def test_a_run_that_was_paused_lost_nothing_and_nobody_is_told_so(folder: Path) -> None:
    app = make_app(folder, {"text": "The whole answer."})
    session = app.journal.add_session(str(folder / "project"))
    app.journal.writer(session).write("run_1", None, "coordinator", [RunStarted(prompt="Tell me")])
    app.journal.note_status(session, "paused")
    watch = Watch()
    assert (await app.runs.resume("run_1", watch)).status == "completed"
    assert [c.event for c in watch.chunks if isinstance(c.event, Notice)] == []
    await app.aclose()


async def test_a_question_that_is_left_open_stands_as_waiting_and_can_be_cancelled(folder: Path) -> None:
    app = make_app(
        folder, {"calls": [shell("touch made")]}, {"calls": [shell("touch more")]}, {"text": "Done."}
    )
    watch = Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("do it"), watch))
    asked = await watch.until("approval_asked")
    session, run = asked.session, asked.run
    assert app.journal.get_session(session).status == "waiting"
    watch.forget()
    assert isinstance(asked.event, ApprovalAsked)
    await app.runs.approve(run, asked.event.approval_id, "allow_once")
    await watch.until("tool_call")
    assert app.journal.get_session(session).status in ("running", "waiting")
    await watch.until("approval_asked")
    assert app.journal.get_session(session).status == "waiting"
    await app.runs.cancel(run)
    assert (await task).status == app.journal.get_session(session).status == "cancelled"
    await app.aclose()


async def test_a_question_whose_process_ended_stands_as_interrupted(folder: Path) -> None:
    app = make_app(
        folder, {"calls": [{"tool": "user/ask", "args": {"question": "Which?"}}]}, {"text": "Done."}
    )
    watch = Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("do it"), watch))
    asked = await watch.until("input_asked")
    assert app.journal.get_session(asked.session).status == "waiting"
    await app.runs.stop_all()
    await task
    assert app.journal.get_session(asked.session).status == "interrupted"
    await app.aclose()


async def test_a_run_beside_another_one_in_the_same_folder_is_told_so(folder: Path) -> None:
    app = make_app(folder, {"calls": [shell("touch made")], "when": "first"}, {"text": "Done."})
    watch, beside = Watch(), Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("first"), watch))
    asked = await watch.until("approval_asked")
    await app.runs.run(RunRequest("second"), beside)
    told = [c.event.text for c in beside.chunks if isinstance(c.event, Notice)]
    assert [text for text in told if "Another run is under way" in text and "first" in text]
    await app.runs.cancel(asked.run)
    await task
    alone = Watch()
    await app.runs.run(RunRequest("third"), alone)
    assert not [c for c in alone.chunks if isinstance(c.event, Notice) and "Another run" in c.event.text]
    await app.aclose()

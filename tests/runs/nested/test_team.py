"""The team works a plan: planner, researcher, coder, runner, checks, repair, re-planning, report."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from daiku.app import App
from daiku.domain.chunks import Chunk
from daiku.domain.errors import Failure
from daiku.domain.events import (
    ApprovalAsked,
    Edit,
    HandoffEnd,
    HandoffStart,
    InputAsked,
    MessageEvent,
    PlanEvent,
    RunFinished,
    ToolCallEvent,
)
from daiku.domain.messages import Usage
from daiku.domain.runs import ApprovalMode, RunLimits, RunResult
from daiku.domain.work.handovers import Brief
from daiku.domain.work.plans import Plan, Step
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from daiku.run.rules.state.fold import apply
from daiku.run.rules.state.machine import MakeCall
from daiku.run.rules.state.state import State
from daiku.team.rules.moves import next_move
from daiku.team.rules.record import GO_ON, STOP
from daiku.texts.text import render
from tests.runs.playing import Watch, make_app

Line = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path


def write(path: str, content: str) -> Line:
    return {"tool": "files/write", "args": {"path": path, "content": content}}


def propose(*steps: Line, goal: str = "Greet") -> Line:
    return {"tool": "plan/propose", "args": {"goal": goal, "steps": list(steps)}}


def step(name: str, *checks: str, after: tuple[str, ...] = ()) -> Line:
    return {"name": name, "description": f"Do {name}", "acceptance": list(checks), "depends_on": list(after)}


PLANNER = "now you plan"
RESEARCHER = "now you research"
CODER = "now you write code"
RUNNER = "now you run commands"
REPORTER = "now you report"
AT_1, AT_2, AT_3 = (f"later one:\nStep {number}:" for number in (1, 2, 3))
AGAIN = "This step is not done yet"


def by(agent: str, **line: Any) -> Line:
    return {"agent": agent, **line}


def planned(*steps: Line, **line: Any) -> tuple[Line, Line]:
    """The planner's two replies: the plan, then its words."""
    return by(PLANNER, calls=[propose(*steps)], **line), by(PLANNER, text="That is the plan.")


NOTHING_TO_LOOK_UP = by(RESEARCHER, text='{"queries": [], "ask_user": ""}')
RUNS_NOTHING = by(RUNNER, text='{"commands": []}')


def planned_at_first(*steps: Line) -> tuple[Line, ...]:
    """The planner's two replies and the researcher's, where what is planned anew is played by other lines."""
    return (
        by(PLANNER, calls=[propose(*steps)], when="The user asked"),
        by(PLANNER, text="That is the plan.", when="draft"),
        NOTHING_TO_LOOK_UP,
    )


def reported(text: str = "All is done.") -> Line:
    return by(REPORTER, text=json.dumps({"text": text, "claims": []}))


async def work(
    app: App, text: str = "greet me", approvals: ApprovalMode = "all", watch: Watch | None = None
) -> tuple[RunResult, Watch]:
    watch = watch or Watch()
    result = await app.runs.run(RunRequest(text, agent="team", approvals=approvals), watch)
    return result, watch


def left_open(result: RunResult, *, done: int, total: int, failed: int) -> bool:
    """Whether the run failed because its plan is not done, and says how far it is."""
    assert (result.status, result.error and result.error.kind) == ("failed", "plan")
    assert result.plan is not None
    assert (result.plan.done, result.plan.total, result.plan.failed) == (done, total, failed)
    return result.plan.open == total - done - failed


def handed(watch: Watch) -> list[str]:
    """Whom the team handed over to, in order."""
    return [c.event.to for c in watch.chunks if isinstance(c.event, HandoffStart)]


def last_plan(watch: Watch) -> Plan:
    return [c.event.plan for c in watch.chunks if isinstance(c.event, PlanEvent)][-1]


def commands(watch: Watch) -> list[str]:
    called = (c.event for c in watch.chunks if isinstance(c.event, ToolCallEvent))
    return [str(e.args["command"]) for e in called if e.tool == "shell/run"]


async def test_a_plan_of_two_steps_is_worked_checked_and_reported(folder: Path) -> None:
    app = make_app(
        folder,
        *planned(step("Write a", "grep -q one a.txt"), step("Write b", "grep -q two b.txt", after=("1",))),
        NOTHING_TO_LOOK_UP,
        by(CODER, calls=[write("a.txt", "one\n")], when=AT_1),
        by(CODER, text="Wrote a.txt.", when="Made a.txt"),
        by(CODER, calls=[write("b.txt", "two\n")], when=AT_2),
        by(CODER, text="Wrote b.txt.", when="Made b.txt"),
        RUNS_NOTHING,
        reported(),
    )
    result, watch = await work(app)
    assert result.status == "completed", result
    assert handed(watch) == ["planner", "researcher", "coder", "runner", "coder", "runner", "reporter"]
    assert [s.status for s in last_plan(watch).steps] == ["completed", "completed"]
    assert (folder / "project/a.txt").read_text() == "one\n"
    before, after = ["grep -q one a.txt"], ["grep -q two b.txt"] * 2
    assert commands(watch) == [*before * 2, *after, "grep -q one a.txt"]  # each before its step and after it
    assert "its checks pass" in result.text
    await app.aclose()


def edit(path: str, old: str, new: str) -> Line:
    return {"tool": "files/edit", "args": {"path": path, "edits": [{"search": old, "replace": new}]}}


async def test_a_failing_check_is_repaired_with_its_exit_code_and_output(folder: Path) -> None:
    check = "grep one a.txt || { echo no one here >&2; exit 3; }"
    app = make_app(
        folder,
        *planned(step("Write a", check)),
        NOTHING_TO_LOOK_UP,
        by(CODER, calls=[edit("a.txt", "two", "one")], when="exit code 3:"),
        by(CODER, calls=[write("a.txt", "two\n")], when=AT_1),
        by(CODER, text="Wrote it.", when="Made a.txt"),
        by(CODER, text="Put it right.", when="Changed a.txt"),
        RUNS_NOTHING,
        reported(),
    )
    result, watch = await work(app)
    assert result.status == "completed"
    repair = [c.event for c in watch.chunks if isinstance(c.event, HandoffStart) and c.event.to == "coder"][1]
    assert "exit code 3" in repair.request
    assert "no one here" in repair.request
    assert [s.status for s in last_plan(watch).steps] == ["completed"]
    assert handed(watch) == ["planner", "researcher", "coder", "runner", "coder", "runner", "reporter"]
    await app.aclose()


async def test_repair_is_bounded_then_the_rest_is_planned_anew_and_what_is_done_is_kept(folder: Path) -> None:
    app = make_app(
        folder,
        by(
            PLANNER,
            calls=[propose(step("Write a", "test -e a.txt"), step("Possible", "test -e a.txt"))],
            when="“Impossible” failed",
        ),
        by(
            PLANNER,
            calls=[propose(step("Write a", "test -e a.txt"), step("Impossible", "false"))],
            when="asked: greet me",
        ),
        by(PLANNER, text="That is the plan.", when="draft"),
        NOTHING_TO_LOOK_UP,
        by(CODER, calls=[write("a.txt", "a\n")], when="later one:\nStep 1: Write a"),
        by(CODER, text="Wrote a.txt.", when="Made a.txt"),
        by(CODER, text="No change: nothing to write."),
        RUNS_NOTHING,
        reported(),
    )
    result, watch = await work(app)
    assert result.status == "completed", result
    plan = last_plan(watch)
    assert [(s.name, s.status) for s in plan.steps] == [("Write a", "completed"), ("Possible", "completed")]
    first = next(c.event.plan for c in watch.chunks if isinstance(c.event, PlanEvent))
    assert (plan.plan_id, plan.steps[0].step_id) == (first.plan_id, first.steps[0].step_id)
    assert handed(watch).count("planner") == 2
    assert commands(watch).count("false") == 3  # once, and after each of two repairs
    assert (folder / "project/a.txt").exists()
    await app.aclose()


@pytest.mark.parametrize(("repairs", "replans"), [(0, 0), (1, 0), (0, 1)])
async def test_how_often_it_is_tried_again_is_the_persons_choice(
    folder: Path, repairs: int, replans: int
) -> None:
    app = make_app(
        folder,
        *planned_at_first(step("Do it", "false")),
        by(CODER, text="No change: all done!"),
        RUNS_NOTHING,
        reported("All is done."),
    )
    watch = Watch()
    limits = RunLimits(max_repairs=repairs, max_replans=replans)
    await app.runs.run(RunRequest("go", agent="team", approvals="all", limits=limits), watch)
    await app.aclose()
    assert handed(watch).count("planner") == 1 + replans
    assert handed(watch).count("coder") == (1 + repairs) * (1 + replans)
    assert [s.status for s in last_plan(watch).steps] == ["failed"]


async def test_after_two_plannings_anew_it_ends_with_what_is_missing_said(folder: Path) -> None:
    app = make_app(
        folder,
        *planned_at_first(step("Do it", "false")),
        by(CODER, text="No change: all done!"),
        RUNS_NOTHING,
        reported("All is done."),
    )
    result, watch = await work(app)
    assert left_open(result, done=0, total=1, failed=1)
    assert handed(watch).count("planner") == 3
    assert commands(watch).count("false") == 9
    assert [s.status for s in last_plan(watch).steps] == ["failed"]
    assert result.text.startswith(
        "Not finished:\n- step “Do it” (failed): `false` ended with exit code 1\n\n"
    )
    assert "The reporter says (not checked):\n\nAll is done.\n" in result.text
    assert "is done:" not in result.text
    await app.aclose()


async def test_a_check_that_a_later_step_broke_is_found_at_the_end_and_put_right(folder: Path) -> None:
    app = make_app(
        folder,
        *planned(step("Write a", "grep -q one a.txt"), step("Write b", "test -e b.txt")),
        NOTHING_TO_LOOK_UP,
        by(CODER, calls=[write("a.txt", "one\n")], when=AT_1),
        by(CODER, calls=[write("b.txt", "b\n"), write("a.txt", "broken\n")], when=AT_2),
        by(CODER, calls=[write("a.txt", "one\n")], when="not finished yet"),
        by(CODER, text="Wrote it.", when="a.txt"),
        RUNS_NOTHING,
        reported(),
    )
    result, watch = await work(app)
    assert (folder / "project/a.txt").read_text() == "one\n", result
    assert commands(watch)[-1] == "test -e b.txt" or commands(watch)[-1] == "grep -q one a.txt"
    assert "its checks pass" in result.text
    assert "fails now" not in result.text
    await app.aclose()


async def test_unfinished_lines_are_given_back_to_the_coder(folder: Path) -> None:
    app = make_app(
        folder,
        *planned(step("Write a", "test -e a.py")),
        NOTHING_TO_LOOK_UP,
        by(CODER, calls=[write("a.py", "def f():\n    raise NotImplementedError\n")], when=AT_1),
        by(CODER, text="Wrote it.", when="Made a.py"),
        by(CODER, calls=[edit("a.py", "raise NotImplementedError", "return 1")], when="unfinished line"),
        by(CODER, text="Filled it in.", when="Changed a.py"),
        RUNS_NOTHING,
        reported(),
    )
    result, _ = await work(app)
    assert result.status == "completed"
    assert (folder / "project/a.py").read_text() == "def f():\n    return 1\n"
    assert "Not finished" not in result.text
    await app.aclose()


ONE_STEP = (
    *planned(step("Write a", "test -e a.txt")),
    NOTHING_TO_LOOK_UP,
    by(CODER, calls=[write("a.txt", "a\n")], when=AT_1),
    by(CODER, text="Wrote a.txt.", when="Made a.txt"),
    RUNS_NOTHING,
    reported(),
)


async def test_a_plan_that_the_person_does_not_approve_is_not_worked(folder: Path) -> None:
    app = make_app(folder, *ONE_STEP)
    watch = Watch()
    task = asyncio.create_task(work(app, approvals="ask", watch=watch))
    asked = (await watch.until("approval_asked")).event
    assert isinstance(asked, ApprovalAsked)
    assert asked.kind == "plan"
    await app.runs.approve(watch.chunks[0].run, asked.approval_id, "reject_once", "not today")
    result, _ = await task
    assert left_open(result, done=0, total=1, failed=0)
    assert "not approved" in result.text
    assert "not today" in result.text
    assert handed(watch) == ["planner"]
    assert not list((folder / "project").iterdir())
    await app.aclose()


async def test_an_edit_that_the_person_rejects_stops_the_team(folder: Path) -> None:
    app = make_app(folder, *ONE_STEP, by(CODER, text="No change: as you wish.", when="rejected"))
    watch = Watch()
    task = asyncio.create_task(work(app, approvals="ask", watch=watch))
    seen: set[str] = set()
    async with asyncio.timeout(20):
        while not task.done():
            for chunk in tuple(watch.chunks):
                event = chunk.event
                if isinstance(event, ApprovalAsked) and event.approval_id not in seen:
                    seen.add(event.approval_id)
                    decision = "allow_once" if event.kind == "plan" else "reject_once"
                    await app.runs.approve(chunk.run, event.approval_id, decision)
            await asyncio.sleep(0.01)
    result, _ = await task
    assert left_open(result, done=0, total=1, failed=0)
    assert "You rejected" in result.text
    assert handed(watch)[-1] == "coder"
    assert not list((folder / "project").iterdir())
    await app.aclose()


TWO_STEPS = (
    *planned(step("Write a", "test -e a.txt"), step("Write b", "test -e b.txt")),
    NOTHING_TO_LOOK_UP,
    by(CODER, calls=[write("a.txt", "one\n")], when=AT_1),
    by(CODER, text="Wrote a.txt.", when="Made a.txt"),
    by(CODER, calls=[write("b.txt", "two\n")], when=AT_2),
    by(CODER, text="Wrote b.txt.", when="Made b.txt"),
    RUNS_NOTHING,
    reported(),
)


async def answered(
    app: App, watch: Watch, task: asyncio.Task[Any], word: str, language: str = "en"
) -> list[str]:
    """Allow everything, answer every question with `word`; the questions as they are read in `language`."""
    seen: dict[str, str] = {}
    async with asyncio.timeout(20):
        while not task.done():
            for chunk in tuple(watch.chunks):
                event = chunk.event
                if isinstance(event, ApprovalAsked) and event.approval_id not in seen:
                    seen[event.approval_id] = ""
                    await app.runs.approve(chunk.run, event.approval_id, "allow_once")
                elif isinstance(event, InputAsked) and event.input_id not in seen:
                    seen[event.input_id] = render(event.question, language)
                    await app.runs.answer(chunk.run, event.input_id, word)
            await asyncio.sleep(0.01)
    return [question for question in seen.values() if question]


@pytest.mark.parametrize("word", [GO_ON, STOP])
async def test_after_a_step_the_person_is_asked_before_the_next(folder: Path, word: str) -> None:
    app = make_app(folder, *TWO_STEPS)
    watch = Watch()
    task = asyncio.create_task(work(app, approvals="ask", watch=watch))
    questions = await answered(app, watch, task, word)
    result, _ = await task
    assert questions == ["Step “Write a” is done. Go on with step 2, “Write b”?"]
    assert (folder / "project/b.txt").exists() == (word == GO_ON)
    assert ("You stopped here: 1 of 2 steps are done." in result.text) == (word == STOP)
    await app.aclose()


async def test_with_everything_granted_nobody_is_asked(folder: Path) -> None:
    app = make_app(folder, *TWO_STEPS)
    _, watch = await work(app)
    assert not [c for c in watch.chunks if c.type in ("approval_asked", "input_asked")]
    await app.aclose()


async def test_in_plan_mode_the_team_only_plans(folder: Path) -> None:
    app = make_app(folder, *TWO_STEPS)
    watch = Watch()
    result = await app.runs.run(RunRequest("greet me", agent="team", mode="plan", approvals="all"), watch)
    assert left_open(result, done=0, total=2, failed=0)
    assert handed(watch) == ["planner"]
    assert not list((folder / "project").iterdir())
    await app.aclose()


async def test_a_plan_without_checks_is_done_by_word_and_the_report_says_so(folder: Path) -> None:
    app = make_app(
        folder,
        *planned(step("Write a")),
        NOTHING_TO_LOOK_UP,
        by(CODER, calls=[write("a.txt", "one\n")], when=AT_1),
        by(CODER, text="Wrote a.txt.", when="Made a.txt"),
        RUNS_NOTHING,
        reported(),
    )
    result, watch = await work(app)
    assert [s.status for s in last_plan(watch).steps] == ["completed"]
    assert "not proven" in result.text
    await app.aclose()


async def test_a_planner_without_a_plan_is_asked_again_and_then_fails(folder: Path) -> None:
    app = make_app(folder, *(by(PLANNER, text=f"Words {n}.") for n in range(40)), by(CODER, text="never"))
    result, watch = await work(app)
    assert result.status == "failed"
    assert result.error is not None
    assert "No plan could be made" in result.error.message
    assert handed(watch) == ["planner"]
    await app.aclose()


async def test_a_model_that_cannot_be_asked_ends_the_team_with_that_failure(folder: Path) -> None:
    app = make_app(
        folder, *planned(step("Write a")), by(RESEARCHER, error={"kind": "auth", "message": "bad key"})
    )
    result, watch = await work(app)
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.kind == "auth"
    assert watch.types()[-1] == "run_finished"
    await app.aclose()


async def test_usage_of_the_stages_is_the_teams(folder: Path) -> None:
    app = make_app(folder, *ONE_STEP)
    result, watch = await work(app)
    ends = [c.event for c in watch.chunks if isinstance(c.event, RunFinished) and c.parent is not None]
    assert result.usage.prompt_tokens == sum(e.usage.prompt_tokens for e in ends) > 0
    backs = [c.event for c in watch.chunks if isinstance(c.event, HandoffEnd)]
    assert sum(b.usage.prompt_tokens for b in backs if b.usage) == result.usage.prompt_tokens
    await app.aclose()


async def until_a_stage_asks(app: App, watch: Watch) -> Chunk:
    """Agree to the plan, and wait for the first question of the stage that begins its work."""
    plan = (await watch.until("approval_asked")).event
    assert isinstance(plan, ApprovalAsked)
    await app.runs.approve(watch.chunks[0].run, plan.approval_id, "allow_once")
    async with asyncio.timeout(20):
        while sum(c.type == "approval_asked" for c in watch.chunks) < 2:
            await asyncio.sleep(0.01)
    return [c for c in watch.chunks if c.type == "approval_asked"][1]


async def test_pausing_while_a_stage_waits_for_the_person_pauses_at_once_and_asks_again(folder: Path) -> None:
    app, watch = make_app(folder, *ONE_STEP), Watch()
    task = asyncio.create_task(work(app, approvals="ask", watch=watch))
    asked = await until_a_stage_asks(app, watch)
    run = watch.chunks[0].run
    assert asked.parent == run
    paused = await app.runs.pause(run)
    assert paused.status == "paused"
    assert (await task)[0].status == "paused"
    assert app.runs.running() == ()

    again = Watch()
    resumed = asyncio.create_task(app.runs.resume(run, again))
    shown = await again.until("approval_asked")
    assert shown.event == asked.event
    await answered(app, again, resumed, GO_ON)
    result = await resumed
    assert result.status == "completed"
    assert (folder / "project/a.txt").read_text() == "a\n"
    edits = [c for c in (*watch.chunks, *again.chunks) if isinstance(c.event, Edit)]
    assert len(edits) == 1
    assert result.usage.prompt_tokens == sum(
        c.event.usage.prompt_tokens
        for c in app.journal.chunks(result.session_id)
        if isinstance(c.event, RunFinished) and c.parent is not None
    )
    await app.aclose()


async def test_an_approval_that_is_given_while_the_run_is_paused_is_found(folder: Path) -> None:
    app, watch = make_app(folder, *ONE_STEP), Watch()
    task = asyncio.create_task(work(app, approvals="ask", watch=watch))
    asked = (await until_a_stage_asks(app, watch)).event
    assert isinstance(asked, ApprovalAsked)
    run = watch.chunks[0].run
    await app.runs.pause(run)
    await task
    await app.runs.approve(run, asked.approval_id, "allow_once")
    again = Watch()
    resumed = asyncio.create_task(app.runs.resume(run, again))
    await answered(app, again, resumed, GO_ON)
    assert asked.approval_id not in {
        c.event.approval_id for c in again.chunks if isinstance(c.event, ApprovalAsked)
    }
    assert (folder / "project/a.txt").exists()
    await app.aclose()


async def test_one_step_alone_is_worked_when_it_is_asked_for(folder: Path) -> None:
    app = make_app(
        folder,
        NOTHING_TO_LOOK_UP,
        by(CODER, calls=[write("b.txt", "two\n")], when=AT_2),
        by(CODER, text="Wrote b.txt.", when="Made b.txt"),
        RUNS_NOTHING,
    )
    steps = (Step(name="Write a"), Step(name="Write b", acceptance=("grep -q two b.txt",)))
    plan = await app.runs.keep_plan(Plan(name="Greet", goal="Greet", status="approved", steps=steps), None)
    session = app.journal.session_of_plan(plan.plan_id)[0]
    brief = Brief(request="Greet", plan=plan, step_id=steps[1].step_id)
    watch = Watch()
    result = await app.runs.run(
        RunRequest("Greet", session=session, agent="team", approvals="all", brief=brief), watch
    )
    assert result.status == "completed", result
    assert handed(watch) == ["researcher", "coder", "runner"]
    assert [s.status for s in last_plan(watch).steps] == ["pending", "completed"]
    await app.aclose()


async def test_the_team_speaks_the_persons_language(folder: Path) -> None:
    app = make_app(folder, *TWO_STEPS, locale="ja")
    watch = Watch()
    task = asyncio.create_task(work(app, approvals="ask", watch=watch))
    questions = await answered(app, watch, task, "ここで止める", "ja")
    result, _ = await task
    assert questions == ["ステップ「Write a」が完了しました。次にステップ 2「Write b」に進みますか？"]
    result = result.in_language("ja")
    assert result.text.startswith("ここで止めました: 2 ステップ中 1 完了。")
    assert "- ステップ 1「Write a」は完了し、確認に合格しています。" in result.text
    assert not (folder / "project/b.txt").exists()
    await app.aclose()


async def test_every_move_of_the_team_follows_from_its_state_alone(folder: Path) -> None:
    app = make_app(folder, *TWO_STEPS)
    result, watch = await work(app)
    own = [c for c in watch.chunks if c.parent is None]
    state, moves = State(), 0
    for chunk in own:
        event = chunk.event
        if isinstance(event, MessageEvent) and event.role == "assistant":
            move = next_move(state, "all")
            assert not isinstance(move, Failure)
            calls = (move.call,) if isinstance(move, MakeCall) else ()
            assert move.text == event.text
            assert [(c.tool, c.args) for c in calls] == [(c.tool, c.args) for c in event.calls]
            moves += 1
        state = apply(state, event)
    assert moves > 10
    assert (await replay(app.journal.chunks(result.session_id))).difference is None
    await app.aclose()


async def test_what_the_person_says_meanwhile_reaches_who_is_at_work(folder: Path) -> None:
    app = make_app(folder, *ONE_STEP)
    watch = Watch()
    said = asyncio.Event()

    def listen(chunk: Chunk) -> None:
        watch(chunk)
        if chunk.agent == "coder" and chunk.type == "run_started" and not said.is_set():
            said.set()
            tasks.append(asyncio.ensure_future(app.runs.steer(watch.chunks[0].run, "Use tabs.")))

    tasks: list[asyncio.Future[None]] = []
    await app.runs.run(RunRequest("greet me", agent="team", approvals="all"), listen)
    await asyncio.gather(*tasks)
    heard = [
        c.agent for c in watch.chunks if isinstance(c.event, MessageEvent) and c.event.text == "Use tabs."
    ]
    assert heard == ["team", "coder"]
    await app.aclose()


async def test_another_agent_may_hand_its_plan_to_the_team(folder: Path) -> None:
    steps = [step("Write a", "test -e a.txt")]
    app = make_app(
        folder,
        {"calls": [propose(*steps)], "when": "go"},
        *ONE_STEP[2:],
        {"calls": [{"tool": "agent/handoff", "args": {"agent": "team", "request": "Work the plan."}}]},
        {"text": "The team did it."},
    )
    watch = Watch()
    result = await app.runs.run(RunRequest("go", approvals="all"), watch)
    assert (result.status, result.text) == ("completed", "The team did it.")
    assert handed(watch) == ["team", "researcher", "coder", "runner", "reporter"]
    assert not [c for c in watch.chunks if c.event.type == "notice"]  # the coordinator knows that it is done
    back = [c.event for c in watch.chunks if isinstance(c.event, HandoffEnd)][-1]
    assert back.plans[-1].status == "completed"
    assert back.deeds is not None
    assert [f.path for f in back.deeds.files] == ["a.txt"]
    await app.aclose()


async def waits_for_an_edit(app: App, watch: Watch) -> asyncio.Task[Any]:
    """A team whose plan was approved and whose coder waits for the person's word on its edit."""
    task = asyncio.create_task(work(app, approvals="ask", watch=watch))
    plan = (await watch.until("approval_asked")).event
    assert isinstance(plan, ApprovalAsked)
    await app.runs.approve(watch.chunks[0].run, plan.approval_id, "allow_once")
    async with asyncio.timeout(20):
        while sum(c.type == "approval_asked" for c in watch.chunks) < 2:
            await asyncio.sleep(0.01)
    return task


async def test_a_team_that_is_cancelled_keeps_what_its_stages_did_and_used(folder: Path) -> None:
    app = make_app(folder, *ONE_STEP)
    watch = Watch()
    task = await waits_for_an_edit(app, watch)
    await app.runs.cancel(watch.chunks[0].run)
    result, _ = await task
    assert result.status == "cancelled"
    used = (c.event for c in watch.chunks if isinstance(c.event, Usage))
    assert result.usage.prompt_tokens == sum(e.prompt_tokens for e in used) > 0
    starts = [c.run for c in watch.chunks if c.type == "run_started"]
    ends = [c.run for c in watch.chunks if c.type == "run_finished"]
    assert sorted(starts) == sorted(ends)
    assert (await replay(app.journal.chunks(result.session_id))).difference is None
    await app.aclose()


async def test_a_server_that_ends_leaves_the_team_to_be_resumed_where_it_waited(folder: Path) -> None:
    app = make_app(folder, *ONE_STEP)
    watch = Watch()
    task = await waits_for_an_edit(app, watch)
    run = watch.chunks[0].run
    await app.aclose()
    await task
    assert [c.type for c in watch.chunks].count("run_finished") == 2  # planner and researcher

    again = make_app(folder, *ONE_STEP)
    shown = Watch()
    resumed = asyncio.create_task(again.runs.resume(run, shown))
    assert (await shown.until("approval_asked")).parent == run
    await answered(again, shown, resumed, GO_ON)
    result = await resumed
    assert result.status == "completed"
    assert (folder / "project/a.txt").read_text() == "a\n"
    await again.aclose()


async def test_a_team_that_was_cut_short_is_ended_whole_on_record(folder: Path) -> None:
    app = make_app(folder, *ONE_STEP)
    watch = Watch()
    task = await waits_for_an_edit(app, watch)
    run = watch.chunks[0].run
    await app.aclose()
    await task
    again = make_app(folder, *ONE_STEP)
    assert (await again.runs.cancel(run)).status == "cancelled"
    chunks = again.journal.chunks(watch.chunks[0].session)
    starts = [c.run for c in chunks if c.type == "run_started"]
    assert sorted(starts) == sorted(c.run for c in chunks if c.type == "run_finished")
    await again.aclose()

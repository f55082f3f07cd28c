"""What a team takes for proof, how often it tries, and what every stage of it is told of the person."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from daiku.app import App
from daiku.domain.chunks import Chunk
from daiku.domain.events import InputAsked, PlanEvent, RunStarted, ToolCallEvent
from daiku.domain.runs import RunLimits, RunResult
from daiku.domain.work.handovers import Brief
from daiku.domain.work.plans import Plan, Step
from daiku.run.request import RunRequest
from tests.runs.nested.test_team import (
    AT_1,
    CODER,
    NOTHING_TO_LOOK_UP,
    PLANNER,
    RESEARCHER,
    RUNS_NOTHING,
    by,
    commands,
    handed,
    last_plan,
    planned,
    planned_at_first,
    propose,
    reported,
    step,
    work,
    write,
)
from tests.runs.playing import Watch, make_app

Line = dict[str, Any]
COORDINATOR = "You work inside a person's project"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path


def claims(result: RunResult) -> list[str]:
    return [line for line in result.text.splitlines() if line.startswith("- ")]


def told(watch: Watch, agent: str) -> list[str]:
    """What the runs of `agent` were told, in order."""
    starts = ((c.agent, c.event) for c in watch.chunks)
    return [e.told for name, e in starts if name == agent and isinstance(e, RunStarted)]


def writing_a(check: str) -> tuple[Line, ...]:
    """A plan of one step with that check, whose coder writes a.txt."""
    return (
        *planned(step("Write a", check)),
        NOTHING_TO_LOOK_UP,
        by(CODER, calls=[write("a.txt", "a\n")], when=AT_1),
        by(CODER, text="Wrote a.txt.", when="Made a.txt"),
        RUNS_NOTHING,
        reported(),
    )


# ---- checks before the work


async def test_a_step_that_is_met_before_any_work_needs_no_coder(folder: Path) -> None:
    (folder / "project/a.txt").write_text("one\n")
    app = make_app(folder, *planned(step("Write a", "test -f a.txt")), NOTHING_TO_LOOK_UP, reported())
    result, watch = await work(app)
    assert last_plan(watch).status == "completed"
    assert "coder" not in handed(watch)
    assert (
        "- Step 1, “Write a”, was met before any work: its checks pass. (`test -f a.txt`: exit code 0)"
        in claims(result)
    )
    await app.aclose()


async def test_a_check_that_runs_a_program_and_passes_before_the_work_takes_no_coder_away(
    folder: Path,
) -> None:
    """It may have passed all along: the coder works, and the report says what the check is worth."""
    check = "python3 -c 'import os'"
    app = make_app(folder, *writing_a(check))
    result, watch = await work(app)
    assert commands(watch)[:2] == [check, check]
    assert "coder" in handed(watch)
    [line] = [line for line in claims(result) if line.startswith("- Step 1")]
    assert "is done, but its checks do not prove it" in line
    assert "it passed before the work as well" in line
    await app.aclose()


async def test_a_check_that_was_red_and_is_green_after_the_edit_proves_the_step(folder: Path) -> None:
    app = make_app(folder, *writing_a("test -f a.txt"))
    result, watch = await work(app)
    assert commands(watch) == ["test -f a.txt", "test -f a.txt"]
    assert "- Step 1, “Write a”, is done: its checks pass. (`test -f a.txt`: exit code 0)" in claims(result)
    await app.aclose()


@pytest.mark.parametrize(
    ("check", "before", "after", "remark"),
    [
        ("sh check.sh", "test -f a.txt\n", "exit 0\n", "the work changed what it is made of"),
        (
            "python3 -m unittest test_a",
            "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): open('a.txt')\n",
            "",
            "it ran no test",
        ),
    ],
)
async def test_a_check_that_the_step_itself_emptied_is_told(
    folder: Path, check: str, before: str, after: str, remark: str
) -> None:
    name = check.rsplit(maxsplit=1)[-1] if check.endswith(".sh") else "test_a.py"
    (folder / "project" / name).write_text(before)
    app = make_app(
        folder,
        *planned(step("Write a", check + " || [ $? = 5 ]" if "unittest" in check else check)),
        NOTHING_TO_LOOK_UP,
        by(CODER, calls=[write(name, after or "# nothing\n")], when=AT_1),
        by(CODER, calls=[write(name, after or "# nothing\n")], when="is there already"),
        by(CODER, text="Wrote it.", when="Changed "),
        RUNS_NOTHING,
        reported(),
    )
    result, _ = await work(app)
    [line] = [line for line in claims(result) if line.startswith("- Step 1")]
    assert remark in line
    assert "its checks pass." not in line
    await app.aclose()


async def test_checks_decide_even_where_the_coders_turn_ended_badly(folder: Path) -> None:
    app = make_app(
        folder,
        *planned(step("Write a", "test -f a.txt")),
        NOTHING_TO_LOOK_UP,
        by(CODER, calls=[write("a.txt", "a\n")], when=AT_1),
        *[by(CODER, calls=[write("../out.txt", f"{n}\n")]) for n in range(12)],
        reported(),
    )
    watch = Watch()
    await app.runs.run(
        RunRequest("greet me", agent="team", approvals="all", limits=RunLimits(max_tool_errors=2)), watch
    )
    assert last_plan(watch).status == "completed"
    assert handed(watch).count("coder") == 1
    await app.aclose()


async def test_a_check_has_its_own_time_limit(folder: Path) -> None:
    timed = step("Write a", "(5 min) sh slow.sh", "sh usual.sh")
    app = make_app(
        folder,
        *planned(timed),
        NOTHING_TO_LOOK_UP,
        by(CODER, text="No change: done."),
        RUNS_NOTHING,
        reported(),
    )
    watch = Watch()
    limits = RunLimits(check_seconds=77, max_repairs=0, max_replans=0)
    await app.runs.run(RunRequest("x", agent="team", approvals="all", limits=limits), watch)
    called = (c.event for c in watch.chunks if isinstance(c.event, ToolCallEvent))
    seconds = {(e.args["command"], e.args["timeout"]) for e in called if e.tool == "shell/run"}
    assert seconds == {("sh slow.sh", 300), ("sh usual.sh", 77)}
    await app.aclose()


@pytest.mark.slow  # it waits for a time limit
async def test_a_check_that_takes_too_long_is_no_fault_of_the_code(folder: Path) -> None:
    app = make_app(
        folder,
        *planned(step("Write a", "(1 s) sleep 5")),
        NOTHING_TO_LOOK_UP,
        by(CODER, text="No change: done."),
        RUNS_NOTHING,
        reported(),
    )
    watch = Watch()
    limits = RunLimits(max_repairs=0, max_replans=0)
    result = await app.runs.run(RunRequest("x", agent="team", approvals="all", limits=limits), watch)
    assert "- step “Write a” (failed): `sleep 5` did not end in time" in result.text
    await app.aclose()


# ---- one budget of attempts


@pytest.mark.parametrize(("most", "calls"), [(10, 12), (5, 6), pytest.param(0, 27, marks=pytest.mark.slow)])
async def test_a_form_that_cannot_be_kept_costs_one_budget_of_attempts(
    folder: Path, most: int, calls: int
) -> None:
    app = make_app(
        folder,
        *planned_at_first(step("Do it", "test -f never")),
        *[by(CODER, text="File: `a.py`:\n```py\nx = 1")] * 60,
        reported(),
    )
    watch = Watch()
    limits = RunLimits(max_attempts=most)
    result = await app.runs.run(RunRequest("make it", agent="team", approvals="all", limits=limits), watch)
    retries = [
        c
        for c in watch.chunks
        if c.agent == "coder" and c.type == "notice" and "Error occurred" in str(c.event)
    ]
    coders = handed(watch).count("coder")
    assert len(retries) + coders == calls
    assert "step “Do it” (failed)" in result.text
    if most:
        moves = [c.event for c in watch.chunks if isinstance(c.event, PlanEvent)]
        assert moves[-1].plan.status == "failed"
        texts = [str(c.event) for c in watch.chunks if c.agent == "team" and c.type == "message"]
        assert any(f"its {most} attempts are used up" in text for text in texts)
    await app.aclose()


# ---- a plan made anew


async def test_a_check_that_a_plan_made_anew_leaves_out_is_told_and_stands_in_the_report(
    folder: Path,
) -> None:
    app = make_app(
        folder,
        by(PLANNER, calls=[propose(step("By hand", "test -d ../project"))], when="“Impossible” failed"),
        by(PLANNER, calls=[propose(step("Impossible", "test -f never"))], when="asked: greet me"),
        by(PLANNER, text="That is the plan.", when="draft"),
        NOTHING_TO_LOOK_UP,
        by(CODER, text="No change: nothing to write."),
        RUNS_NOTHING,
        reported(),
    )
    result, watch = await work(app)
    assert last_plan(watch).dropped_checks == ("test -f never",)
    notices = [str(c.event) for c in watch.chunks if c.type == "notice"]
    assert any("Removed checks: `test -f never`" in text for text in notices)
    assert "Checks that are in the plan no more: `test -f never`." in result.text
    assert "Check: `test -f never`" in told(watch, "planner")[1]
    await app.aclose()


# ---- what the person said


async def test_every_stage_knows_what_the_person_said_in_the_conversation(folder: Path) -> None:
    app = make_app(folder, by(COORDINATOR, text="I will."), *writing_a("test -f a.txt"))
    first = await app.runs.run(RunRequest("always use port 4711", approvals="all"), Watch())
    watch = Watch()
    request = RunRequest("make the server", session=first.session_id, agent="team", approvals="all")
    await app.runs.run(request, watch)
    for agent in ("planner", "researcher", "coder", "runner", "reporter"):
        [text] = told(watch, agent)
        assert text.count("always use port 4711") == 1, agent
    await app.aclose()


@pytest.mark.parametrize("agent", ["researcher", "coder", "runner", "reporter"])
async def test_a_stage_knows_its_session_whatever_door_it_is_asked_by(folder: Path, agent: str) -> None:
    app = make_app(folder, {"text": "I will.", "when": "4711"}, {"text": "No change: no."})
    watch = Watch()
    first = await app.runs.run(RunRequest("always use port 4711", approvals="all"), watch)
    plan = Plan(name="Server", goal="serve", steps=(Step(name="Open the port"),))
    await app.runs.keep_plan(plan, first.session_id)
    await app.runs.run(
        RunRequest("write step 1", session=first.session_id, agent=agent, approvals="all"), watch
    )
    [text] = told(watch, agent)
    assert "always use port 4711" in text
    if agent != "runner":
        assert "Open the port" in text
    await app.aclose()


ASKS = by(RESEARCHER, text=json.dumps({"queries": [], "ask_user": "Which database should I use?"}))


async def asked(app: App, approvals: Any, answer: str = "") -> tuple[RunResult, Watch]:
    watch = Watch()

    def listen(chunk: Chunk) -> None:
        watch(chunk)
        if isinstance(chunk.event, InputAsked) and answer:
            task = app.runs.answer(chunk.run, chunk.event.input_id, answer)
            answers.append(asyncio.ensure_future(task))

    answers: list[Any] = []
    result = await app.runs.run(RunRequest("store it", agent="team", approvals=approvals), listen)
    return result, watch


STORES = (
    *planned(step("Write a", "test -f a.txt")),
    ASKS,
    by(CODER, calls=[write("a.txt", "a\n")], when=AT_1),
    by(CODER, text="Wrote a.txt.", when="Made a.txt"),
    RUNS_NOTHING,
    reported(),
)


async def test_the_researchers_question_reaches_the_person_and_the_answer_every_later_stage(
    folder: Path,
) -> None:
    app = make_app(folder, *STORES)
    result, watch = await asked(app, "all", "SQLite, please.")
    assert [e.question for c in watch.chunks if isinstance(e := c.event, InputAsked)] == [
        "Which database should I use?"
    ]
    for agent in ("coder", "runner", "reporter"):
        assert "SQLite, please." in told(watch, agent)[0], agent
    assert "Nobody was there" not in result.text
    await app.aclose()


async def test_where_nobody_is_there_an_assumption_is_made_and_stated(folder: Path) -> None:
    app = make_app(folder, ASKS, by(CODER, text="No change: it is there."), RUNS_NOTHING, reported())
    plan = Plan(name="Store", goal="store it", status="approved", steps=(Step(name="Write a"),))
    first = await app.runs.keep_plan(plan, None)
    watch = Watch()
    request = RunRequest(
        "store it", agent="team", approvals="none", brief=Brief(request="store it", plan=first)
    )
    result = await app.runs.run(request, watch)
    assert (
        "Nobody was there to answer “Which database should I use?”: the most usual was assumed."
        in result.text
    )
    assert "Nobody was there to answer this question" in told(watch, "coder")[0]
    await app.aclose()


# ---- the report


async def test_what_a_reporter_claims_in_its_free_text_does_not_stand_unmarked(folder: Path) -> None:
    app = make_app(
        folder,
        *planned(step("Write a", "test -f never")),
        NOTHING_TO_LOOK_UP,
        by(CODER, text="No change: nothing."),
        RUNS_NOTHING,
        reported(
            "It was about a file. Fixed the security hole; all 500 tests pass; deployed. All of it works."
        ),
    )
    watch = Watch()
    limits = RunLimits(max_repairs=0, max_replans=0)
    result = await app.runs.run(RunRequest("x", agent="team", approvals="all", limits=limits), watch)
    head, _, said = result.text.partition("The reporter says (not checked):\n\n")
    assert head == "Not finished:\n- step “Write a” (failed): `test -f never` ended with exit code 1\n\n"
    assert said.startswith(
        "It was about a file. Fixed the security hole; all 500 tests pass; deployed. All of it works.\n\n"
        "- Step 1, “Write a”, failed. (`test -f never`: exit code 1)"
    )
    await app.aclose()

"""A step's tasks: made, worked through in order, reported on; never twice, and only as far as it goes well."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from daiku.app import App, build
from daiku.domain.chunks import Chunk
from daiku.domain.config import SandboxSettings
from daiku.domain.events import ApprovalAsked, PlanEvent, RunFinished, ToolCallEvent, ToolResponse
from daiku.domain.work.plans import Plan, Step
from daiku.models.table import LLMSettings
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from daiku.settings.config import Config
from daiku.workspace.disk import DiskWorkspace
from tests.runs.playing import Watch, make_app
from tests.runs.test_kill import World, config, killed_in_child

Json = dict[str, Any]
DONE = {
    "status": "completed",
    "succeeded": 2,
    "failed": 0,
    "summary": "Both are there.",
    "next_action": "Go on.",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path


def call(tool: str, **args: Any) -> Json:
    return {"tool": tool, "args": args}


def main(*calls: Json, text: str = "", **more: Any) -> Json:
    """A reply of the coordinator."""
    return {"text": text, "calls": list(calls), "agent": "You work inside", **more}


def propose(*steps: Json) -> Json:
    return main(call("plan/propose", goal="A game", steps=list(steps)))


def step(name: str, **more: Any) -> Json:
    return {"name": name, "description": f"Do {name}", **more}


def write(path: str, content: str = "x\n") -> Json:
    return {"operation": "file_ops.write", "args": {"path": path, "content": content}}


def shell(command: str) -> Json:
    return {"operation": "shell/run", "args": {"command": command}}


def tasks(*made: Json) -> Json:
    return {"text": json.dumps({"tasks": list(made)}), "agent": "break one step"}


def report(**said: Any) -> Json:
    return {"text": json.dumps({**DONE, **said}), "agent": "report on tasks"}


def plan_of(chunks: Sequence[Chunk]) -> Plan:
    return [c.event for c in chunks if isinstance(c.event, PlanEvent) and c.parent is None][-1].plan


def answer(chunks: Sequence[Chunk], tool: str) -> ToolResponse:
    return next(
        c.event for c in reversed(chunks) if isinstance(c.event, ToolResponse) and c.event.tool == tool
    )


def statuses(step: Step) -> list[str]:
    return [task.status for task in step.task_list]


async def test_a_list_is_made_kept_worked_and_reported(folder: Path) -> None:
    app = make_app(
        folder,
        propose(step("Set up"), step("Core", depends_on=["1"])),
        main(call("plan/approve")),
        main(call("task_tool.generate_list", step_id="1")),
        tasks(write("package.json", "{}\n"), shell("cat package.json > copy.json")),
        main(call("task_loop.run", step_id="1")),
        report(),
        main(text="Step 1 is done. Shall I go on?"),
    )
    watch = Watch()
    result = await app.runs.run(RunRequest("go", approvals="all"), watch)
    assert (result.status, result.text) == ("completed", "Step 1 is done. Shall I go on?"), result
    assert (folder / "project/copy.json").read_text() == "{}\n"
    plan = plan_of(watch.chunks)
    assert [s.status for s in plan.steps] == ["completed", "pending"]
    assert plan.status == "in_progress"
    assert [(t.operation, t.status) for t in plan.steps[0].task_list] == [
        ("files/write", "completed"),
        ("shell/run", "completed"),
    ]
    told = answer(watch.chunks, "task_loop/run")
    assert told.ok
    assert json.loads(told.result.partition("\n\n")[0]) == {**DONE, "cause": ""}
    assert "1 of 2 steps completed" in told.result
    seen = [statuses(e.plan.steps[0]) for e in (c.event for c in watch.chunks) if isinstance(e, PlanEvent)]
    assert ["in_progress", "pending"] in seen
    assert ["completed", "in_progress"] in seen
    assert (await replay(app.journal.chunks(result.session_id))).difference is None
    await app.aclose()


async def test_a_list_and_a_report_may_come_as_calls(folder: Path) -> None:
    made = call("report__tasks", tasks=[write("package.json", "{}\n"), shell("true")])
    wrong = {"calls": [call("report__result", **{**DONE, "succeeded": 7})], "agent": "report on tasks"}
    chunks, _ = await run(
        folder,
        PLAN,
        APPROVE,
        MAKE,
        {"calls": [call("files/list"), made], "agent": "break one step"},
        {"calls": [made], "agent": "break one step"},
        WORK,
        wrong,
        {"calls": [call("report.result", **DONE)], "agent": "report on tasks"},
        END,
    )
    assert (folder / "project/package.json").read_text() == "{}\n"
    told = answer(chunks, "task_loop/run")
    assert json.loads(told.result.partition("\n\n")[0]) == {**DONE, "cause": ""}
    notices = "\n".join(c.data for c in chunks if c.type == "notice")
    assert "succeeded" in notices, "a report that differs from the log is asked for again"


async def run(folder: Path, *lines: Json, approvals: Any = "all", **more: Any) -> tuple[list[Chunk], str]:
    """The chunks of a run that plays `lines` to a proposed plan of two steps, and its closing words."""
    app = make_app(folder, *lines)
    watch = Watch()
    result = await app.runs.run(RunRequest("go", approvals=approvals, **more), watch)
    assert (await replay(app.journal.chunks(result.session_id))).difference is None
    await app.aclose()
    assert result.status == "completed", result
    return watch.chunks, result.text


PLAN = propose(step("Set up"), step("Core", depends_on=["1"]))
APPROVE = main(call("plan/approve"))
MAKE = main(call("task/generate_list", step_id="1"))
WORK = main(call("task_loop/run", step_id="1"))
END = main(text="The end.")


@pytest.mark.slow
async def test_the_first_failure_stops_and_a_second_run_goes_on_where_it_was(folder: Path) -> None:
    chunks, _ = await run(
        folder,
        PLAN,
        APPROVE,
        MAKE,
        tasks(
            shell("echo one >> log.txt"),
            shell("echo two >> log.txt; test -f switch || { echo no switch >&2; exit 3; }"),
            shell("echo three >> log.txt"),
        ),
        WORK,
        report(status="failed", succeeded=1, failed=1, cause="no switch", next_action="Make it."),
        main(call("files/write", path="switch", content="on\n")),
        WORK,
        report(succeeded=3),
        END,
    )
    assert (folder / "project/log.txt").read_text().split() == ["one", "two", "two", "three"]
    first = next(
        c.event for c in chunks if isinstance(c.event, ToolResponse) and c.event.tool == "task_loop/run"
    )
    assert not first.ok
    assert json.loads(first.result.partition("\n\n")[0])["cause"] == "no switch"
    broken = [e.plan.steps[0] for e in (c.event for c in chunks) if isinstance(e, PlanEvent)]
    assert any(
        statuses(s) == ["completed", "failed", "pending"] and s.status == "in_progress" for s in broken
    )
    failed = next(t for s in broken for t in s.task_list if t.status == "failed")
    assert "no switch" in (failed.result or "")
    plan = plan_of(chunks)
    assert (statuses(plan.steps[0]), plan.steps[0].status) == (["completed"] * 3, "completed")


async def test_a_report_that_contradicts_the_log_is_asked_for_again(folder: Path) -> None:
    lie = report(succeeded=2)
    right = report(status="failed", succeeded=0, failed=1, cause="exit code 3", next_action="Look.")
    chunks, _ = await run(
        folder, PLAN, APPROVE, MAKE, tasks(shell("exit 3"), shell("true")), WORK, lie, right, END
    )
    told = answer(chunks, "task_loop/run")
    assert json.loads(told.result.partition("\n\n")[0])["cause"] == "exit code 3"
    assert any('"status" must be "failed"' in c.data.replace("\\", "") for c in chunks if c.type == "notice")


async def test_where_no_model_makes_a_report_there_is_a_plain_one(folder: Path) -> None:
    prose = {"text": "All went well, I think.", "agent": "report on tasks"}
    chunks, _ = await run(
        folder, PLAN, APPROVE, MAKE, tasks(shell("true"), shell("echo bad; exit 4")), WORK, *[prose] * 5, END
    )
    told = json.loads(answer(chunks, "task_loop/run").result.partition("\n\n")[0])
    assert (told["status"], told["succeeded"], told["failed"]) == ("failed", 1, 1)
    assert "shell/run failed" in told["cause"]
    assert told["next_action"]


async def test_a_list_with_an_unknown_operation_is_asked_for_again(folder: Path) -> None:
    chunks, _ = await run(
        folder,
        PLAN,
        MAKE,
        {"text": "I would make some files.", "agent": "break one step"},
        tasks({"operation": "file_ops.wriet", "args": {}}),
        tasks({"operation": "plan_tool.propose", "args": {"goal": "x"}}),
        tasks({"operation": "file_ops.write_file", "args": {"path": "a.txt"}}),
        tasks(write("a.txt")),
        END,
    )
    notices = "\n".join(c.data for c in chunks if c.type == "notice")
    for problem in ("no JSON", "There is no tool", "plan__propose cannot be a task", "content"):
        assert problem in notices, notices
    made = answer(chunks, "task/generate_list")
    assert made.ok
    assert not (folder / "project/a.txt").exists(), "making a list does nothing yet"
    assert [t.operation for t in plan_of(chunks).steps[0].task_list] == ["files/write"]


async def test_a_task_may_use_what_an_earlier_one_came_to(folder: Path) -> None:
    first = {"id": "t1", "operation": "shell/run", "args": {"command": "printf 41; exit 0"}}
    second = {"operation": "files/write", "args": {"path": "a.txt", "content": {"$ref": "t1.data.output"}}}
    lost = {"operation": "files/write", "args": {"path": "b.txt", "content": {"$ref": "t1.data.nothing"}}}
    chunks, _ = await run(
        folder, PLAN, APPROVE, MAKE, tasks(first, second, lost), WORK,
        report(status="failed", succeeded=2, failed=1, cause="no such result", next_action="x"), END,
    )  # fmt: skip
    assert (folder / "project/a.txt").read_text() == "41"
    assert not (folder / "project/b.txt").exists()
    assert "does not match any result" in (plan_of(chunks).steps[0].task_list[2].result or "")


OTHERS = [pytest.param(path, marks=pytest.mark.slow) for path in ("t1", "t1.data.output")]  # the same way


@pytest.mark.parametrize("path", ["t1.text", *OTHERS])
async def test_work_that_goes_on_uses_what_an_earlier_task_found_and_not_how_it_was_shown(
    folder: Path, path: str
) -> None:
    """A listing has line numbers, and what a command printed its exit code above it."""
    once = "test -f twice || { touch twice; exit 3; }\n"
    text = once + "".join(f"echo {'long ' * 9}{number} >> out.txt\n" for number in range(60))
    (folder / "project/in.txt").write_text(text)
    read = {"operation": "files/read", "args": {"path": "in.txt"}}
    first = shell("cat in.txt") if path.endswith("output") else read
    second = shell("") | {"args": {"command": {"$ref": path}}}
    failed = report(status="failed", succeeded=1, failed=1, cause="exit code 3", next_action="Again.")
    chunks, _ = await run(
        folder, PLAN, APPROVE, MAKE, tasks({**first, "id": "t1"}, second), WORK, failed, WORK, report(), END
    )
    assert statuses(plan_of(chunks).steps[0]) == ["completed", "completed"]
    assert (folder / "project/out.txt").read_text().count("\n") == 60


async def test_a_result_that_is_too_long_to_keep_is_not_used_in_part(folder: Path) -> None:
    (folder / "project/in.txt").write_text("a line of many\n" * 3000)
    first = {"id": "t1", "operation": "files/read", "args": {"path": "in.txt"}}
    copy = {"operation": "files/write", "args": {"path": "sub/out.txt", "content": {"$ref": "t1.text"}}}
    (folder / "project/sub").write_text("in the way\n")
    failed = report(status="failed", succeeded=1, failed=2, cause="sub is a file", next_action="Again.")
    chunks, _ = await run(
        folder,
        PLAN,
        APPROVE,
        MAKE,
        tasks(first, copy, shell("rm sub; exit 1")),
        WORK,
        failed,
        WORK,
        failed,
        END,
    )
    assert "does not match any result" in (plan_of(chunks).steps[0].task_list[1].result or "")
    assert not (folder / "project/sub/out.txt").exists()


async def test_a_goal_alone_goes_to_the_planner(folder: Path) -> None:
    goal_only = main(call("plan_tool.propose", goal="Make a game"))
    steps = [step("Set up"), step("Core", depends_on=["1"])]
    planner = "now you plan"
    chunks, _ = await run(
        folder,
        goal_only,
        {"calls": [call("plan_tool.propose", goal="More of the same")], "agent": planner},
        {"calls": [call("plan/propose", goal="Make a game", steps=steps)], "agent": planner},
        {"text": "Two steps.", "agent": planner},
        END,
    )
    made = answer(chunks, "plan/propose")
    assert made.ok
    assert "Two steps." in made.result
    assert [s.name for s in plan_of(chunks).steps] == ["Set up", "Core"]
    assert len({c.run for c in chunks}) == 2, "a planner without steps does not hand over to itself"


async def test_work_on_a_draft_asks_for_the_plan_first(folder: Path) -> None:
    app = make_app(folder, PLAN, MAKE, tasks(write("a.txt")), WORK, report(succeeded=1), END)
    watch = Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go"), watch))
    asked = (await watch.until("approval_asked")).event
    assert isinstance(asked, ApprovalAsked)
    assert (asked.kind, asked.tool) == ("plan", "plan/approve")
    assert "Set up" in asked.preview
    assert not (folder / "project/a.txt").exists()
    watch.forget()
    await app.runs.approve(app.runs.running()[0], asked.approval_id, "allow_once")
    asked = (await watch.until("approval_asked")).event
    assert isinstance(asked, ApprovalAsked)
    assert (asked.kind, asked.tool) == ("edit", "files/write")
    await app.runs.approve(app.runs.running()[0], asked.approval_id, "allow_once")
    assert (await task).status == "completed"
    assert (folder / "project/a.txt").exists()
    plan = plan_of(watch.chunks)
    assert (plan.status, plan.steps[0].status, statuses(plan.steps[0])) == (
        "in_progress",
        "completed",
        ["completed"],
    )
    await app.aclose()


async def test_nothing_of_a_draft_runs_where_the_person_says_no_or_nobody_is_there(folder: Path) -> None:
    chunks, _ = await run(folder, PLAN, MAKE, tasks(write("a.txt")), WORK, END, approvals="none")
    assert not (folder / "project/a.txt").exists()
    told = answer(chunks, "task_loop/run")
    assert "not approved" in told.result
    plan = plan_of(chunks)
    assert (plan.status, plan.steps[0].status, statuses(plan.steps[0])) == ("draft", "pending", ["pending"])


async def test_a_list_of_ones_own_is_registered_apart_and_ends_no_step(folder: Path) -> None:
    chunks, _ = await run(
        folder,
        PLAN,
        APPROVE,
        main(call("task_loop.run", task_list=[write("a.txt"), shell("cat a.txt >> b.txt")])),
        report(),
        END,
    )
    plans = {c.event.plan.plan_id: c.event.plan for c in chunks if isinstance(c.event, PlanEvent)}
    mine, own = plans.values()
    assert {(step.status, step.task_list) for step in mine.steps} == {("pending", ())}
    assert (own.name, own.status, statuses(own.steps[0])) == (
        "Tasks",
        "completed",
        ["completed", "completed"],
    )
    assert (folder / "project/b.txt").read_text() == "x\n"
    assert "no part of plan" in answer(chunks, "task_loop/run").result
    [standing] = [c.event.plan for c in chunks if isinstance(c.event, RunFinished) and c.parent is None]
    assert standing is not None
    assert (standing.plan_id, standing.done) == (mine.plan_id, 0)


async def test_a_list_of_ones_own_may_refer_to_its_own_tasks(folder: Path) -> None:
    first = {"id": "t1", "operation": "shell/run", "args": {"command": "printf 7"}}
    second = {"operation": "files/write", "args": {"path": "a.txt", "content": {"$ref": "t1.data.output"}}}
    await run(folder, PLAN, APPROVE, main(call("task_loop.run", task_list=[first, second])), report(), END)
    assert (folder / "project/a.txt").read_text() == "7"


async def test_work_that_fails_again_and_again_is_no_tool_error_but_still_ends(folder: Path) -> None:
    bad = report(status="failed", succeeded=0, failed=1, cause="exit code 3", next_action="Try again.")
    again = [main(call("task_loop/run", step_id="1")), bad]
    app = make_app(folder, PLAN, APPROVE, MAKE, tasks(shell("exit 3")), *again * 6, END)
    watch = Watch()
    result = await app.runs.run(RunRequest("go", approvals="all"), watch)
    await app.aclose()
    assert result.status == "limit"
    assert result.error is not None
    assert "got stuck in a loop (same failure)" in result.error.message
    loops = [c for c in watch.chunks if c.type == "tool_call" and '"task_loop/run"' in c.data]
    assert len(loops) == 4, "the first, and three repeats"


async def test_a_list_without_any_plan_is_registered_too(folder: Path) -> None:
    chunks, _ = await run(
        folder, main(call("task_loop.run", task_list=[write("a.txt")])), report(succeeded=1), END
    )
    plan = plan_of(chunks)
    assert (plan.status, plan.goal, statuses(plan.steps[0])) == ("completed", "go", ["completed"])


@pytest.mark.slow
async def test_a_step_is_completed_only_when_its_checks_pass(folder: Path) -> None:
    plan = propose(step("Set up", acceptance=["grep -q right a.txt"]), step("Core"))
    chunks, _ = await run(
        folder,
        plan,
        APPROVE,
        MAKE,
        tasks(write("a.txt", "wrong\n")),
        WORK,
        report(status="failed", succeeded=1, cause="the check failed", next_action="Mend it."),
        main(call("files/write", path="a.txt", content="right\n")),
        WORK,
        report(succeeded=1),
        END,
    )
    answers = [
        c.event for c in chunks if isinstance(c.event, ToolResponse) and c.event.tool == "task_loop/run"
    ]
    assert [a.ok for a in answers] == [False, True]
    assert "“Set up” is in_progress" in answers[0].result
    assert plan_of(chunks).steps[0].status == "completed"
    checks = [c.event for c in chunks if isinstance(c.event, ToolCallEvent) and c.event.tool == "shell/run"]
    assert [c.args["command"] for c in checks] == ["grep -q right a.txt"] * 2


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([PLAN, APPROVE, WORK], "has no tasks yet"),
        ([PLAN, APPROVE, main(call("task_loop/run", step_id="2"))], "has to wait for: Set up"),
        ([PLAN, APPROVE, main(call("task_loop/run", step_id="9"))], "No plan has a step"),
        ([main(call("task_loop/run"))], "needs `step_id`"),
        ([main(call("task_loop/run", task_list=[{"operation": "nothing/like_this"}]))], "There is no tool"),
        ([main(call("task/generate_list", step_id="1"))], "No plan has a step"),
    ],
)
async def test_what_cannot_be_begun_says_why(folder: Path, lines: list[Json], why: str) -> None:
    chunks, _ = await run(folder, *lines, END)
    last = [c.event for c in chunks if isinstance(c.event, ToolResponse)][-1]
    assert not last.ok
    assert why in last.result
    assert not [c for c in chunks if c.parent is not None]


async def test_in_plan_mode_tasks_are_made_but_not_worked(folder: Path) -> None:
    chunks, _ = await run(folder, PLAN, MAKE, tasks(write("a.txt")), WORK, END, mode="plan")
    assert answer(chunks, "task/generate_list").ok
    assert "act mode" in answer(chunks, "task_loop/run").result
    assert list((folder / "project").iterdir()) == []


class TaskWorld(World):
    """Four tasks with an effect each, made, worked and reported on."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        made = [shell(f"echo {i} >> effects.txt") for i in range(4)]
        work = main(call("task_loop/run", step_id="1"))
        report_ = report(succeeded=4)
        lines = [PLAN, MAKE, tasks(*made), work, report_, main(text=TASKS_END)]
        # A task that was cut off counts as failed: then the person's next word would be "go on".
        lines += [
            report(status="failed", succeeded=n, failed=1, cause="cut off", next_action="again")
            for n in range(4)
        ]
        path = folder / "tasks.jsonl"
        path.write_text("\n".join(json.dumps(line) for line in lines))
        self.config = config(path)


TASKS_END = "All four are done."


@pytest.mark.slow(seconds=50)
# The test forks processes and kills them, which Windows cannot do.
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and kill -9")
def test_killed_anywhere_no_task_runs_twice_and_the_plan_knows_what_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = TaskWorld(tmp_path / "whole")
    assert asyncio.run(whole.run()).status == "completed"
    total = len(whole.chunks())
    assert total > 40
    cut_off = 0
    for die_at in range(1, total):
        world = TaskWorld(tmp_path / str(die_at))
        assert killed_in_child(world, die_at), die_at
        result = asyncio.run(world.resume())
        assert (result.status, result.text) == ("completed", TASKS_END), die_at
        effects = world.effects()
        assert not effects or max(effects.values()) == 1, (die_at, effects)
        chunks = world.chunks()
        states = statuses(plan_of(chunks).steps[0])
        interrupted = [c for c in chunks if c.type == "tool_response" and "was interrupted" in c.data]
        cut_off += bool(interrupted)
        if interrupted:
            assert states.count("failed") == 1, (die_at, states)
            assert states.count("completed") <= len(effects) <= states.count("completed") + 1
        else:
            assert states == ["completed"] * 4, (die_at, states)
            assert len(effects) == 4, (die_at, effects)
        ends = [c.run for c in chunks if c.type == "run_finished"]
        assert len(ends) == len(set(ends)) == len({c.run for c in chunks}), die_at
    assert cut_off == 4, "once for each task"


async def left_waiting(folder: Path) -> tuple[Watch, ApprovalAsked]:
    """A run that waits for a word on its first task, let go of as by a restart."""
    app = make_app(
        folder, PLAN, APPROVE, MAKE, tasks(shell("echo 1 >> log.txt")), WORK, report(succeeded=1), END
    )
    watch = Watch()
    task = asyncio.create_task(app.runs.run(RunRequest("go"), watch))
    plan = (await watch.until("approval_asked")).event
    assert isinstance(plan, ApprovalAsked)
    await app.runs.approve(app.runs.running()[0], plan.approval_id, "allow_once")
    async with asyncio.timeout(20):
        while sum(c.type == "approval_asked" for c in watch.chunks) < 2:
            await asyncio.sleep(0.01)
    await app.aclose()
    await asyncio.gather(task, return_exceptions=True)
    asked = [c.event for c in watch.chunks if isinstance(c.event, ApprovalAsked)][-1]
    assert asked.tool == "shell/run"
    return watch, asked


def again(folder: Path) -> App:
    config = Config(
        llm=LLMSettings(model=f"scripted/{folder / 'script.jsonl'}"), sandbox=SandboxSettings(mode="off")
    )
    return build(config, workspace=DiskWorkspace((folder / "project",)), home=folder / "home")


async def test_a_task_may_be_allowed_while_nobody_runs_it_and_is_gone_on_with(folder: Path) -> None:
    watch, asked = await left_waiting(folder)
    asking = next(c.run for c in watch.chunks if c.event == asked)
    app = again(folder)
    await app.runs.approve(asking, asked.approval_id, "allow_once")
    result = await app.runs.resume(watch.chunks[0].run, Watch())
    assert (result.status, result.text) == ("completed", "The end.")
    assert (folder / "project/log.txt").read_text() == "1\n"
    await app.aclose()


async def test_a_new_request_ends_the_tasks_that_an_old_one_left(folder: Path) -> None:
    watch, _ = await left_waiting(folder)
    app = again(folder)
    result = await app.runs.run(RunRequest("something else", session=watch.chunks[0].session), watch)
    assert result.status == "completed", result
    ends = [c.run for c in app.journal.chunks(result.session_id) if c.type == "run_finished"]
    assert len(ends) == len({c.run for c in watch.chunks})
    assert not (folder / "project/log.txt").exists()
    await app.aclose()

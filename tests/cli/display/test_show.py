"""What a person sees of a run: every line says whose it is, nothing stands there twice."""

from __future__ import annotations

import io
from typing import Any

import pytest

from daiku.domain.chunks import Chunk
from daiku.domain.events import (
    Delta,
    Edit,
    Event,
    HandoffEnd,
    HandoffStart,
    MessageEvent,
    PlanEvent,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    ToolOutput,
    ToolResponse,
)
from daiku.domain.held import Lesson, Todo, TodoItem
from daiku.domain.messages import Usage
from daiku.domain.tools import Outcome, ToolCall
from daiku.domain.work.patches import FileStat
from daiku.domain.work.plans import Plan, Step
from daiku.fronts.cli.display.show import Show, usage_text
from daiku.fronts.cli.display.term import Terminal
from daiku.texts.text import Text, text
from tests.cases import for_each

DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-one\n+two\n"


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("COLUMNS", "80")


def seen(*events: Event, omits_answer: bool = False) -> list[str]:
    """Return the lines on a terminal without colours."""
    stream = io.StringIO()
    show = Show(Terminal(stream, live=False, colours=False), omits_answer=omits_answer)
    for number, event in enumerate(events, 1):
        show(Chunk(number, "2026-01-01T00:00:00.000Z", "s", "r", "coordinator", event, "{}"))
    return stream.getvalue().split("\n")[:-1]


def called(id_: str, tool: str, **args: Any) -> ToolCallEvent:
    return ToolCallEvent(id=id_, tool=tool, args=args)


def responded(id_: str, tool: str, result: str, *, ok: bool = True, took: int = 0) -> ToolResponse:
    return ToolResponse(id=id_, tool=tool, ok=ok, result=result, duration_ms=took)


def test_calls_side_by_side_each_have_one_line_with_their_name() -> None:
    calls = [called(i, "files/read", path=f"{i}.py") for i in "abc"]
    answers = [
        responded("a", "files/read", "1 | one\n2 | two"),
        responded("b", "files/read", "There is no file b.py.", ok=False),
        responded("c", "files/read", "1 | one", took=1500),
    ]
    assert seen(*calls, *answers) == [
        "✓ Read a.py 2 lines",
        "✗ Read b.py",
        "    There is no file b.py.",
        "✓ Read c.py 1 | one · 1.5 s",
    ]


def test_a_command_stands_above_its_output_and_the_end_of_it_is_kept() -> None:
    text = "".join(f"line {n}\n" for n in range(1, 41))
    lines = seen(
        called("a", "shell/run", command="make"),
        ToolOutput(id="a", text=text),
        responded("a", "shell/run", f"Exit code 2 after 0.1 s.\n{text}", ok=False),
    )
    assert lines[0] == "● Run make"
    assert lines[1:13] == [f"  │ line {n}" for n in range(1, 13)]
    assert lines[13:] == [
        "  │ … 23 more lines",
        *[f"  │ line {n}" for n in range(36, 41)],
        "  ✗ Exit code 2 after 0.1 s.",
    ]


def test_output_of_two_commands_at_once_says_whose_it_is() -> None:
    assert seen(
        called("a", "shell/run", command="one"),
        called("b", "shell/run", command="two"),
        ToolOutput(id="b", text="of two\n"),
        ToolOutput(id="a", text="of one\n"),
        responded("a", "shell/run", "Exit code 0."),
        responded("b", "shell/run", "Exit code 0."),
    ) == ["● Run one", "● Run two", "  │ of two", "● Run one", "  │ of one", "  ✓", "✓ Run two"]


def test_an_edit_is_told_once_with_its_diff() -> None:
    stat = FileStat(path="a.py", kind="edit", added=1, removed=1)
    assert seen(
        called("a", "files/edit", path="a.py"),
        Edit(files=(stat,), checkpoint_id="c", call_id="a", diff=DIFF),
        responded("a", "files/edit", "Changed a.py (+1 -1)"),
    ) == ["✓ Edit a.py +1 -1", *(f"    {line}" for line in DIFF.splitlines())]


def test_a_patch_of_several_files_names_each() -> None:
    stats = (FileStat(path="a.py", kind="create", added=2), FileStat(path="b.py", kind="delete", removed=3))
    assert seen(
        called("a", "files/patch", patch="*** Begin Patch\n…"),
        Edit(files=stats, checkpoint_id="c", call_id="a"),
        responded("a", "files/patch", "Changed 2 files."),
    ) == ["✓ Patch", "    a.py +2 -0 new", "    b.py +0 -3 deleted"]


def test_a_plan_speaks_for_the_call_that_made_it() -> None:
    plan = Plan(name="Mend", goal="g", steps=(Step(name="Look"),))
    lines = seen(
        called("a", "plan/propose", goal="g"), PlanEvent(plan=plan), responded("a", "plan/propose", "# Mend")
    )
    assert lines == ["Plan: Mend (0 of 1 done)", "  ☐ Look"]


def test_of_a_plan_that_was_shown_only_what_changes_is_told() -> None:
    look, mend = Step(name="Look"), Step(name="Mend it")
    plan = Plan(name="Mend", goal="g", steps=(look, mend))
    looked = look.model_copy(update={"status": "completed"})
    begun = mend.model_copy(update={"status": "in_progress"})
    lines = seen(
        PlanEvent(plan=plan),
        PlanEvent(plan=plan.model_copy(update={"status": "approved"})),
        PlanEvent(plan=plan.model_copy(update={"status": "approved"})),
        PlanEvent(plan=plan.model_copy(update={"status": "in_progress", "steps": (looked, mend)})),
        PlanEvent(plan=plan.model_copy(update={"status": "in_progress", "steps": (looked, begun)})),
        PlanEvent(plan=plan.model_copy(update={"status": "completed", "steps": (looked,)})),
    )
    assert lines == [
        *("Plan: Mend (0 of 2 done)", "  ☐ Look", "  ☐ Mend it"),
        "Plan approved: Mend",
        *("Plan: Mend (1 of 2 done)", "  ☑ Look"),
        "  ▶ Mend it",
        *("Plan: Mend (1 of 1 done)", "  ☑ Look"),
    ]


def test_what_is_said_and_what_is_done_stand_apart() -> None:
    call = called("a", "files/read", path="a.py")
    assert seen(
        Delta(text="First I look."),
        MessageEvent(role="assistant", text=Text("First I look."), agent="coordinator"),
        call,
        responded("a", "files/read", "1 | one\n2 | two"),
        Delta(text="Done."),
        MessageEvent(role="assistant", text=Text("Done."), agent="coordinator"),
    ) == ["First I look.", "", "✓ Read a.py 2 lines", "", "Done."]


@pytest.mark.parametrize(
    ("end", "shown"),
    [
        ("Done.", ["I look.", "✓ Read a.py 1 | one", "Half."]),
        ("", ["I look.", "✓ Read a.py 1 | one", "Half.", "Done."]),
    ],
)
def test_an_answer_that_is_written_elsewhere_is_not_shown(end: str, shown: list[str]) -> None:
    def says(words: str, *calls: ToolCall) -> list[Event]:
        return [Delta(text=words), MessageEvent(role="assistant", text=Text(words), agent="a", calls=calls)]

    lines = seen(
        *says("I look.", ToolCall(id="a", tool="files/read", args={"path": "a.py"})),
        called("a", "files/read", path="a.py"),
        responded("a", "files/read", "1 | one"),
        *says("Half."),
        MessageEvent(role="user", text=Text("Go on."), reminder="objection"),
        *says("Done."),
        RunFinished(status="completed", text=Text(end)),
        omits_answer=True,
    )
    assert [line for line in lines if line] == shown


def test_a_script_that_plays_the_model_says_so() -> None:
    assert seen(RunStarted(prompt="p", mode="act", model="scripted/demo")) == [
        "scripted/demo (a script is playing, no model answers) · act"
    ]


@for_each(
    ("outcome", "result", "shown"),
    [
        ("unattended", text("run.nobody_approves"), "承認する人がいません。"),
        (
            "rejected",
            text("team.call_rejected_because", message="no"),
            "この呼び出しは拒否されました。理由: no",
        ),
        ("failed", "Nobody is there to approve this.", "Nobody is there to approve this."),
    ],
)
def test_why_a_call_was_not_made_is_said_in_the_persons_language_and_a_programs_words_stay(
    outcome: Outcome, result: str, shown: str
) -> None:
    answer = ToolResponse(id="a", tool="files/write", ok=False, outcome=outcome, result=result)
    assert seen(called("a", "files/write", path="a"), answer.in_language("ja"))[-1].strip() == shown


def test_a_stage_of_a_team_is_where_it_goes_and_where_it_comes_from() -> None:
    handed, between = {"agent": "coder", "request": "Mend it"}, {"from": "team", "to": "coder"}
    assert seen(
        called("a", "agent/handoff", **handed),
        HandoffStart.model_validate(between | {"request": "Mend it"}),
        HandoffEnd.model_validate(between | {"result": "Done."}),
        responded("a", "agent/handoff", "Done.", took=2000),
        called("b", "agent/handoff", **handed),
        responded("b", "agent/handoff", "The budget is used up.", ok=False),
    ) == ["→ coder: Mend it", "← coder", "✗ Hand off coder", "    The budget is used up."]


def test_a_script_uses_no_tokens_of_anybody() -> None:
    used = {"prompt_tokens": 46_620, "completion_tokens": 7}
    assert usage_text(Usage(model="scripted/demo", **used), 1.5) == "1.5 s"
    assert usage_text(Usage(model="scripted/demo", **used)) == ""
    assert "46,620" in usage_text(Usage(model="openai/lab", **used), 1.5)


def test_a_todo_list_is_shown_whole_once_and_then_what_has_changed_of_it() -> None:
    read, mend = TodoItem(title="Read a.py", status="in_progress"), TodoItem(title="Mend it")
    done = read.model_copy(update={"status": "completed"})
    lines = seen(
        called("a", "todo/write", items=[]),
        Todo(items=(read, mend)),
        responded("a", "todo/write", "0 done, 1 in progress, 1 to do."),
        Todo(items=(done, mend)),
        Todo(items=(done, mend)),
        Todo(items=(done, mend, TodoItem(title="Run the tests"))),
        Todo(items=()),
    )
    assert lines == [
        *("To-do list (0 of 2 done)", "  ▶ Read a.py", "  ☐ Mend it"),
        *("To-do list (1 of 2 done)", "  ☑ Read a.py"),
        *("To-do list (1 of 3 done)", "  ☑ Read a.py", "  ☐ Mend it", "  ☐ Run the tests"),
    ]


def test_a_run_says_how_many_lessons_it_was_told_and_how_many_it_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = Lesson(id="bat-00001", version=1, text="make check")
    two = Lesson(id="mypc-00004", version=1, text="tabs")
    start = RunStarted(prompt="x", model="m", lessons=(one, two))
    end = RunFinished(status="completed", used_bullets=("bat-00001",))
    assert seen(start, end)[1:] == [
        "2 lessons from the playbook: bat-00001, mypc-00004",
        "used 1 lesson: bat-00001",
    ]
    assert seen(RunStarted(prompt="x", model="m"), RunFinished(status="completed")) == ["m · act"]
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert seen(start, end)[1:] == [
        "プレイブックの教訓 2 件: bat-00001, mypc-00004",
        "使った教訓 1 件: bat-00001",
    ]

"""The comments and the request of a work item."""

from __future__ import annotations

from daiku.domain.messages import Usage
from daiku.domain.runs import RunResult
from daiku.domain.work.handovers import CommandOutcome
from daiku.domain.work.patches import FileStat
from daiku.domain.work.plans import Plan, Step
from daiku.items.ending import build_request_title, render_request_body
from daiku.items.rules.comments import (
    Changes,
    Ending,
    Outcome,
    ProgressReport,
    ProgressStatus,
    render_approval,
    render_ending,
    render_progress,
    render_question,
)
from daiku.team.rules.proof.evidence import Evidence
from daiku.team.rules.proof.placeholders import Leftover
from daiku.texts.text import Text
from tests.cases import for_each

STEPS = (
    Step(step_id="a", name="Look", status="completed"),
    Step(step_id="b", name="Ask @bob", status="completed"),
    Step(step_id="c", name="Mend what verification found", status="in_progress"),
    Step(step_id="d", name="Test", status="pending"),
)
PLAN = Plan(name="Totals", goal="Right totals", steps=STEPS)


def test_progress_is_a_checklist_of_the_plan_with_what_came_later_apart() -> None:
    """S2P.10, S2P.13"""
    told = ProgressReport(
        "processing",
        plan=PLAN,
        original=("a", "b"),
        usage=Usage(prompt_tokens=12_000, completion_tokens=345, cost=0.5),
        label="coding agent processing",
    )
    assert render_progress(told, "en") == (
        "## 📋 Daiku is working on this\n\n**Goal:** Right totals\n\n"
        "### Original Plan (Completed)\n\n- [x] Look\n- [x] Ask `@bob`\n\n"
        "### Additional Work (From Verification)\n\n- [ ] Mend what verification found ← now\n- [ ] Test\n\n"
        "*Progress: 2/4 (50%)*\n\n**Status:** working\n\n**Used:** 12,345 tokens, $0.50\n\n"
        "To stop the work, remove the label `coding agent processing`. While it runs, Daiku reads comments from "
        "people with write access to this repository."
    )
    assert "*進捗: 2/4 (50%)*" in render_progress(told, "ja")


@for_each("standing", ["done", "failed", "stopped"])
def test_of_work_that_is_over_nothing_says_that_it_goes_on(standing: ProgressStatus) -> None:
    told = render_progress(ProgressReport(standing, plan=PLAN, label="coding agent"), "en")
    assert "Daiku worked on this" in told
    assert "is working" not in told
    assert "To stop the work" not in told


def test_before_there_is_a_plan_the_comment_says_so() -> None:
    assert "There is no plan yet." in render_progress(ProgressReport("queued"), "en")


def result_of(words: str) -> RunResult:
    return RunResult(run_id="r", session_id="s", status="completed", text=Text(words))


@for_each("language", ["en", "ja"])
def test_every_comment_is_within_what_a_forge_takes(language: str) -> None:
    long = "word @bob " * 20_000
    plan = Plan(name=long, goal=long, steps=tuple(Step(name=long) for _ in range(500)))
    files = tuple(FileStat(path=f"{n}{long}", kind="edit") for n in range(500))
    left = (Leftover("a.py", long, 1),) * 99
    ran = tuple(CommandOutcome(command=f"{n}{long}", exit_code=1, output=long) for n in range(500))
    for said in (
        render_progress(ProgressReport("processing", plan=plan, label=long), language),
        render_question(long, [long] * 50, language),
        render_approval(long, Text(long), language),
        render_ending(Ending("failed", words=long, why=Text(long)), language),
        render_request_body(1, long, result_of(long), Evidence(files, (), ran, leftovers=left), language),
    ):
        assert len(said) <= 60_000
    assert len(build_request_title(long, 1)) <= 200


def test_a_question_says_how_to_answer_it() -> None:
    said = render_question("Which one?", ["this", "that"], "en")
    assert "1. this\n2. that" in said
    assert "with the number of a choice" in said
    assert "number" not in render_question("Why?", [], "en")
    assert "`allow`" in render_approval("rm -r build", Text("it deletes files"), "en")


@for_each(
    ("outcome", "begins"),
    [
        ("done", "✅"),
        ("failed", "❌"),
        ("stopped", "⏹️"),
        ("limit", "⚠️ The work is not finished"),
        ("paused", "⏸️"),
    ],
)
def test_the_last_comment_tells_what_came_of_it(outcome: Outcome, begins: str) -> None:
    """C2.3, C2.4"""
    said = render_ending(Ending(outcome, why=Text("Because."), asked_by="ann", label="coding agent"), "en")
    assert said.startswith(f"@ann\n\n{begins}")
    assert "Reason: Because." in said
    assert "add the label `coding agent`" in said
    assert "@" not in render_ending(Ending(outcome, asked_by="ann @bob"), "en")


@for_each(
    ("outcome", "changes", "request", "told"),
    [
        ("done", "none", "", "No files were changed."),
        ("limit", "none", "", "No files were changed."),
        ("done", "on_branch", "https://h/o/r/pull/1", ""),  # its request shows them
        ("done", "on_branch", "", "The changes are on its branch."),  # a folder has no requests
        ("limit", "on_branch", "https://h/o/r/pull/1", "The changes are on its branch."),
        ("stopped", "on_branch", "", "The changes are on its branch."),
        ("failed", "on_branch", "", "The changes are on its branch."),
        ("stopped", "none", "", ""),  # what was not committed may be lost, and nobody looked
        ("failed", "none", "", ""),
        ("stopped", "unknown", "", ""),
    ],
)
def test_the_last_comment_tells_where_the_changes_are_whatever_the_model_says(
    outcome: Outcome, changes: Changes, request: str, told: str
) -> None:
    said = render_ending(Ending(outcome, words="Added it.", changes=changes, request_url=request), "en")
    sentences = ("No files were changed.", "The changes are on its branch.")
    assert [each for each in sentences if each in said] == ([told] if told else [])


def test_the_request_names_its_issue_and_shows_the_evidence() -> None:
    done = Evidence(
        commands=(
            CommandOutcome(command="pytest", exit_code=1, output=""),
            CommandOutcome(command="pytest", exit_code=0, output=""),
        ),
        files=(FileStat(path="a.py", kind="edit", added=3, removed=1),),
        leftovers=(Leftover("a.py", "TODO", 1), Leftover("b.py", "FIXME", -1)),
    )
    assert render_request_body(12, "ann", result_of("I fixed it. Fixes #99 @bob"), done, "en") == (
        "Closes #12\n\nDaiku made this on its own. `ann` asked for it.\n\nI fixed it. Fixes `#99` `@bob`\n\n"
        "### Commands that were run\n\n- ✅ `pytest`: exit code 0\n\n### Files changed\n\n- `a.py` (+3 −1)\n\n"
        "### Unfinished places that the changes left\n\n- `a.py: TODO`\n\n"
        "Please review it like a colleague's work before it is merged."
    )
    other = render_request_body(12, "ann", result_of(""), Evidence(), "en")
    assert "nothing shows that it works" in other
    assert build_request_title("Totals (fixes #3)", 3) == "Totals (fixes 3)"
    assert build_request_title(" ", 3) == "Issue 3"

"""What a run showed of the bullets that it was told: neutral unless it was named, harmful only with a cause."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from random import Random
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.chunks import Chunk, encode_event
from daiku.domain.events import (
    ApprovalAsked,
    ApprovalGiven,
    CheckpointEvent,
    Edit,
    Event,
    HandoffStart,
    MessageEvent,
    PlanEvent,
    Restored,
    Review,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.held import Lesson
from daiku.domain.playbook import Observation, Verdict, Why
from daiku.domain.runs import RunLimits, TerminalStatus
from daiku.domain.tools import ToolCall
from daiku.domain.work.patches import FileStat
from daiku.domain.work.plans import Plan, Step
from daiku.playbook.rules.outcome import LessonVerdict, RunOutcome, judge_runs, select_latest_verdicts
from daiku.texts.text import Text

TESTS = Lesson(id="btc-00001", version=1, text="Run the tests by `make check`.")
STYLE = Lesson(id="cpa-00001", version=1, text="Log by `logger.info(`, never by `print(`.")
PLAIN = Lesson(id="pc-00001", version=1, text="Keep functions short.")
OTHER = Lesson(id="pc-00002", version=1, text="Say why in a comment.")


HANDED = HandoffStart.model_validate(
    {"from": "coordinator", "to": "coder", "request": "r", "run": "run_n", "call_id": "h"}
)


class Story:
    """A session as it is written, event by event."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self._ids, self._runs = count(1), count(1)
        self.run = ""

    def add(self, *events: Event, run: str = "", parent: str | None = None) -> Story:
        for event in events:
            seq = len(self.chunks) + 1
            time = f"2026-01-01T00:00:{seq:02d}.000Z"
            name = run or self.run
            self.chunks.append(
                Chunk(seq, time, "ses_1", name, "coordinator", event, encode_event(event), parent)
            )
        return self

    def begin(self, *lessons: Lesson, prompt: str = "do it", most: int = 3) -> Story:
        self.run = f"run_{next(self._runs)}"
        return self.add(RunStarted(prompt=prompt, lessons=lessons, limits=RunLimits(max_repeats=most)))

    def end(self, *cited: Lesson, status: TerminalStatus = "completed") -> Story:
        return self.add(RunFinished(status=status, used_bullets=tuple(each.id for each in cited)))

    def says(self, text: str, *calls: ToolCall, **at: str) -> Story:
        return self.add(MessageEvent(role="assistant", text=Text(text), calls=calls), **at)

    def person(self, text: str) -> Story:
        return self.add(MessageEvent(role="user", text=Text(text), agent="user"))

    def shell(self, command: str, code: int, output: str = "", **at: str) -> Story:
        call = f"call_{next(self._ids)}"
        said = ToolResponse(
            id=call,
            tool="shell/run",
            ok=code == 0,
            result=Text(output),
            data={"exitCode": code, "output": output},
        )
        return self.add(ToolCallEvent(id=call, tool="shell/run", args={"command": command}), said, **at)

    def edit(self, name: str, plus: str, *, path: str = "a.py", call: str = "", **at: str) -> Story:
        diff = f"--- a/{path}\n+++ b/{path}\n@@ -1 +1,{plus.count(chr(10)) + 1} @@\n-old\n+{plus}\n"
        return self.add(
            CheckpointEvent(checkpoint_id=name, files=(path,)),
            Edit(files=(FileStat(path=path, kind="edit"),), checkpoint_id=name, call_id=call, diff=diff),
            **at,
        )

    def rejects(self, path: str = "a.py", hunks: int = 0, lines: str | None = None) -> Story:
        return self.add(
            Review(
                decision="reject", path=path, hunks=hunks, checkpoint_id=f"r{len(self.chunks)}", lines=lines
            )
        )

    def accepts(self, path: str = "a.py") -> Story:
        return self.add(Review(decision="accept", path=path, hunks=0, checkpoint_id=f"a{len(self.chunks)}"))

    def restores(self, name: str, redo: str = "redo") -> Story:
        return self.add(Restored(checkpoint_id=name, files=(), redo=redo))

    def outcome(self, run: str = "run_1") -> RunOutcome:
        return next(each for each in judge_runs(self.chunks) if each.run == run)

    def of(self, lesson: Lesson, run: str = "run_1") -> tuple[Verdict, Why | Literal[""]] | None:
        found = next(
            (b.observation for b in self.outcome(run).bullets if b.observation.bullet == lesson.id), None
        )
        return None if found is None else (found.verdict, found.why)


def told(*lessons: Lesson) -> Story:
    return Story().begin(*lessons)


# ---- neutral


def test_a_bullet_that_no_reply_named_is_neutral_however_the_run_went() -> None:
    story = told(TESTS).shell("make check", 0).edit("c1", "x").end()
    assert story.of(TESTS) == ("neutral", "not_cited")


def test_of_two_bullets_that_were_told_the_one_that_was_not_named_is_neutral() -> None:
    """C3.5: what was told and what was used are two things, and only what was used is judged."""
    story = told(PLAIN, OTHER).says("Yes.").end(PLAIN)
    assert story.of(PLAIN) == ("neutral", "nothing_shown")
    assert story.of(OTHER) == ("neutral", "not_cited")


@pytest.mark.parametrize(
    ("status", "why"), [("failed", "run_failed"), ("limit", "run_limited"), ("cancelled", "run_cancelled")]
)
def test_a_failed_run_alone_harms_no_bullet(status: TerminalStatus, why: Why) -> None:
    story = told(PLAIN).says("[pc-00001]").edit("c1", "x").end(PLAIN, status=status)
    assert story.of(PLAIN) == ("neutral", why)


def test_a_run_that_has_not_ended_shows_nothing_yet() -> None:
    story = told(TESTS).shell("make check", 0)
    assert judge_runs(story.chunks) == ()


def test_an_answer_without_anything_to_show_is_neutral() -> None:
    assert told(PLAIN).says("As [pc-00001] says.").end(PLAIN).of(PLAIN) == ("neutral", "nothing_shown")


def test_a_bullet_that_was_never_told_is_none_of_the_runs() -> None:
    assert told(TESTS).end(TESTS, PLAIN).of(PLAIN) is None


# ---- commands


def test_a_named_command_that_passed_speaks_for_its_bullet() -> None:
    assert told(TESTS).shell("make check", 0).end(TESTS).of(TESTS) == ("helpful", "command_passed")


@pytest.mark.parametrize(
    "command", ["cd web && make check", "make check VERBOSE=1", "make  check", "A=1 time make check"]
)
def test_a_named_command_is_known_in_a_longer_line(command: str) -> None:
    assert told(TESTS).shell(command, 0).end(TESTS).of(TESTS) == ("helpful", "command_passed")


def test_a_command_that_only_mentions_the_named_one_is_another() -> None:
    lesson = Lesson(id="btc-00009", version=1, text="Use `pytest`.")
    story = told(lesson).shell("grep pytest README.md", 0).end(lesson)
    assert story.of(lesson) != ("helpful", "command_passed")


def test_a_check_that_fails_until_the_work_is_done_is_right() -> None:
    story = told(TESTS).shell("make check", 2, "3 failed").edit("c1", "x").shell("make check", 0).end(TESTS)
    assert story.of(TESTS) == ("helpful", "command_passed")


def test_a_command_that_failed_and_another_that_passed_in_its_place_harm_the_bullet() -> None:
    story = (
        told(TESTS).shell("make check", 2, "No rule to make target 'check'").shell("make test", 0).end(TESTS)
    )
    assert story.of(TESTS) == ("harmful", "command_replaced")


def test_a_command_that_failed_without_another_in_its_place_is_no_cause() -> None:
    """B3.4."""
    story = told(TESTS).shell("make check", 2, "check: it did not work").end(TESTS, status="limit")
    assert story.of(TESTS) == ("neutral", "command_failed")


@pytest.mark.parametrize(
    ("code", "output"),
    [
        (127, "sh: make: not found"),
        (127, "bash: line 1: make: command not found"),
        (2, "make: *** No rule to make target 'check'.  Stop."),
        (1, 'npm error Missing script: "check"'),
        (1, "/usr/bin/python3: No module named pytest"),
    ],
)
def test_a_command_that_is_not_there_harms_the_bullet_that_names_it(code: int, output: str) -> None:
    assert told(TESTS).shell("make check", code, output).end(TESTS).of(TESTS) == (
        "harmful",
        "command_missing",
    )


def test_a_test_that_misses_a_module_or_a_file_is_no_missing_command() -> None:
    output = "E   ModuleNotFoundError: No module named 'app'\nE  FileNotFoundError: No such file or directory\n1 failed"
    assert told(TESTS).shell("make check", 1, output).end(TESTS).of(TESTS) == ("neutral", "command_failed")


def test_a_failed_command_is_not_replaced_by_a_look_around() -> None:
    story = told(TESTS).shell("make check", 2, "No rule").shell("cat Makefile", 0).shell("ls make check", 0)
    assert story.end(TESTS).of(TESTS) == ("neutral", "command_failed")


def test_a_check_that_found_failures_is_not_replaced_by_a_smaller_one() -> None:
    story = told(TESTS).shell("make check", 2, "== 3 failed, 4 passed ==").shell("make check-style", 0)
    assert story.end(TESTS).of(TESTS) == ("neutral", "command_failed")


def test_a_bullet_that_warns_of_the_failed_command_is_not_harmed_by_it() -> None:
    lesson = Lesson(id="btc-00003", version=1, text="Run `make test`; `make check` fails here.")
    story = told(lesson).shell("make check", 2, "No rule").shell("make test", 0).end(lesson)
    assert story.of(lesson) == ("helpful", "command_passed")


@pytest.mark.parametrize(
    "text",
    [
        "Run `make test` instead of `make check`.",
        "Do not run `make check`: run `make test`.",
        "Use `make test`, not `make check`.",
        "`make check` does not work; use `make test`.",
        "`make check` ではなく `make test` を実行する。",
        "Never use `make check`. `make test` it is.",
    ],
)
def test_what_a_bullet_warns_of_is_not_what_it_advises(text: str) -> None:
    lesson = Lesson(id="btc-00004", version=1, text=text)
    story = told(lesson).shell("make check", 2, "No rule").shell("make test", 0).end(lesson)
    assert story.of(lesson) == ("helpful", "command_passed")
    other = told(lesson).shell("make check", 2, "No rule").shell("make lint", 0).end(lesson)
    assert other.of(lesson) != ("harmful", "command_replaced")


def test_a_command_that_a_person_refused_harms_the_bullet_that_names_it() -> None:
    lesson = Lesson(id="tu-00001", version=1, text="Publish by `make publish`.")
    asked = ApprovalAsked(
        approval_id="appr_1",
        kind="command",
        tool="shell/run",
        args={"command": "make publish"},
        preview=Text("make publish"),
        why=Text(""),
    )
    story = told(lesson).add(asked, ApprovalGiven(approval_id="appr_1", decision="reject_once"))
    assert story.end(lesson).of(lesson) == ("harmful", "command_refused")
    nobody = told(lesson).add(
        asked, ApprovalGiven(approval_id="appr_1", decision="reject_once", unattended=True)
    )
    assert nobody.end(lesson).of(lesson) == ("neutral", "nothing_shown")


def test_advice_to_run_something_that_was_not_run_is_not_shown_by_the_whole() -> None:
    story = told(TESTS).edit("c1", "x").shell("npm run build", 0).end(TESTS)
    assert story.of(TESTS) == ("neutral", "nothing_shown")


def test_a_command_cut_off_or_in_the_background_shows_nothing() -> None:
    story = told(TESTS).add(
        ToolCallEvent(id="c", tool="shell/run", args={"command": "make check", "background": True}),
        ToolResponse(id="c", tool="shell/run", ok=True, result=Text("started"), data={"exitCode": 0}),
    )
    assert story.end(TESTS).of(TESTS) == ("neutral", "nothing_shown")


# ---- the run as a whole


def test_checks_that_passed_last_speak_for_what_was_named() -> None:
    story = told(PLAIN).edit("c1", "x").shell("pytest -q", 0, "4 passed").end(PLAIN)
    assert story.of(PLAIN) == ("helpful", "checks_passed")


def test_checks_that_fail_last_show_nothing_for_what_was_named() -> None:
    story = told(PLAIN).edit("c1", "x").shell("pytest -q", 1, "1 failed").end(PLAIN)
    assert story.of(PLAIN) == ("neutral", "nothing_shown")


@pytest.mark.parametrize(("errors", "verdict"), [({}, "helpful"), ({"a.py": 2}, "neutral")])
def test_diagnostics_are_looked_at_like_commands(errors: dict[str, int], verdict: Verdict) -> None:
    found = ToolResponse(
        id="d", tool="editor/diagnostics", ok=True, result=Text(""), data={"errors": dict(errors)}
    )
    story = told(PLAIN).edit("c1", "x").add(ToolCallEvent(id="d", tool="editor/diagnostics", args={}), found)
    said = story.end(PLAIN).of(PLAIN)
    assert said is not None
    assert said[0] == verdict


def test_what_was_checked_before_the_last_edit_proves_nothing_of_it() -> None:
    """Then only that the edits stand is left."""
    story = told(PLAIN).shell("pytest -q", 1, "1 failed").edit("c1", "x").end(PLAIN)
    assert story.of(PLAIN) == ("helpful", "edits_kept")


def test_a_plan_with_a_failed_step_shows_nothing() -> None:
    steps = (Step(name="s", status="failed", acceptance=("pytest",)),)
    plan = Plan(plan_id="plan_1", name="p", goal="g", status="failed", steps=steps)
    story = told(PLAIN).add(PlanEvent(plan=plan)).edit("c1", "x")
    story.add(RunFinished(status="completed", plan=plan.standing(), used_bullets=(PLAIN.id,)))
    assert story.of(PLAIN) == ("neutral", "nothing_shown")


# ---- edits


def test_edits_that_stand_speak_for_what_was_named_until_they_are_undone() -> None:
    story = told(PLAIN).edit("c1", "x").end(PLAIN)
    assert story.of(PLAIN) == ("helpful", "edits_kept")
    assert story.restores("c1").of(PLAIN) == ("harmful", "edits_restored")


def test_an_undo_that_is_itself_undone_counts_no_more() -> None:
    story = told(PLAIN).edit("c1", "x").end(PLAIN).restores("c1", "back").restores("back", "forth")
    assert story.of(PLAIN) == ("helpful", "edits_kept")
    assert story.restores("forth").of(PLAIN) == ("harmful", "edits_restored")


def test_a_rejection_that_is_undone_counts_no_more() -> None:
    story = told(PLAIN).edit("c1", "x").end(PLAIN)
    story.add(Review(decision="reject", path="a.py", hunks=1, checkpoint_id="rev"))
    assert story.of(PLAIN) == ("harmful", "edits_rejected")
    assert story.restores("rev").of(PLAIN) == ("helpful", "edits_kept")


def test_a_review_in_the_position_of_a_later_run_is_about_the_run_that_edited() -> None:
    story = told(PLAIN).edit("c1", "x").end(PLAIN)
    story.begin(prompt="something else").says("Nothing to do.").end().rejects()
    assert story.of(PLAIN) == ("harmful", "edits_rejected")
    assert story.of(PLAIN, "run_2") is None


def test_an_accepted_edit_is_not_harmed_by_a_later_rejection_of_others() -> None:
    story = told(PLAIN).edit("c1", "x").end(PLAIN).accepts()
    assert story.of(PLAIN) == ("helpful", "edits_accepted")
    story.begin().edit("c2", "y").end().rejects()
    assert story.of(PLAIN) == ("helpful", "edits_accepted")


def test_it_is_held_against_none_of_several_bullets_that_all_was_undone() -> None:
    """B3.4."""
    story = told(PLAIN, OTHER).edit("c1", "x").end(PLAIN, OTHER).restores("c1")
    assert story.of(PLAIN) == ("neutral", "unclear")
    assert story.of(OTHER) == ("neutral", "unclear")


def test_a_part_that_was_taken_back_is_no_verdict() -> None:
    """B3.4."""
    story = told(PLAIN).edit("c1", "x").edit("c2", "y", path="b.py").end(PLAIN).rejects("b.py")
    assert story.of(PLAIN) == ("neutral", "unclear")


def test_a_rejection_of_one_of_several_hunks_that_are_not_named_is_no_verdict() -> None:
    story = told(PLAIN).edit("c1", "x").edit("c2", "y").end(PLAIN).rejects(hunks=1)
    assert story.of(PLAIN) == ("neutral", "unclear")


def test_a_run_whose_only_edit_was_refused_harms_the_only_bullet_that_it_named() -> None:
    asked = ApprovalAsked(
        approval_id="appr_1",
        kind="edit",
        tool="files/edit",
        args={},
        preview=Text("--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-old\n+logger.info(1)\n"),
        why=Text(""),
        call_id="c1",
    )
    no = ApprovalGiven(approval_id="appr_1", decision="reject_once", feedback="we print here")
    assert told(STYLE).add(asked, no).end(STYLE).of(STYLE) == ("harmful", "edits_refused")
    assert told(STYLE, PLAIN).add(asked, no).end(STYLE, PLAIN).of(STYLE) == ("neutral", "unclear")


def test_hunks_of_an_edit_that_were_not_chosen_are_no_verdict() -> None:
    preview = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+logger.info(1)\n@@ -9 +9 @@\n-b\n+short()\n"
    asked = ApprovalAsked(
        approval_id="appr_1",
        kind="edit",
        tool="files/edit",
        args={},
        preview=Text(preview),
        why=Text(""),
        call_id="c1",
        hunks=2,
    )
    story = told(STYLE).add(asked, ApprovalGiven(approval_id="appr_1", decision="allow_once", hunks=(1,)))
    story.edit("k", "short()", call="c1").end(STYLE)
    assert story.of(STYLE) == ("neutral", "unclear")


def test_an_edit_that_was_refused_is_held_against_no_bullet_that_was_only_named_in_the_end() -> None:
    asked = ApprovalAsked(
        approval_id="a", kind="edit", tool="files/edit", args={}, preview=Text(""), why=Text(""), call_id="c"
    )
    story = told(PLAIN).add(asked, ApprovalGiven(approval_id="a", decision="reject_once"))
    assert story.edit("k", "x").says("Done by [pc-00001].").end(PLAIN).of(PLAIN) == ("helpful", "edits_kept")


def test_what_a_later_edit_changed_again_is_rejected_with_it() -> None:
    story = told(PLAIN).edit("c1", "first").end(PLAIN)
    story.begin().add(
        Edit(
            files=(FileStat(path="a.py", kind="edit"),),
            checkpoint_id="c2",
            diff="--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-first\n+second\n",
        )
    )
    story.end().rejects(hunks=1, lines="-old\n+second\n")
    assert story.of(PLAIN) == ("harmful", "edits_rejected")


def test_files_that_another_session_brought_back_undo_nothing_here() -> None:
    assert told(PLAIN).edit("c1", "x").end(PLAIN).restores("elsewhere").of(PLAIN) == ("helpful", "edits_kept")


# ---- nested runs


def test_what_a_nested_run_did_and_named_counts_for_the_run_at_the_top_once() -> None:
    story = told()
    story.add(HANDED)
    story.add(RunStarted(prompt="r", lessons=(TESTS,)), run="run_n", parent="run_1")
    story.shell("make check", 0, run="run_n", parent="run_1")
    story.add(RunFinished(status="completed", used_bullets=(TESTS.id,)), run="run_n", parent="run_1")
    story.end(TESTS)
    assert [each.run for each in judge_runs(story.chunks)] == ["run_1"]
    assert [(b.observation.bullet, b.observation.why) for b in story.outcome().bullets] == [
        (TESTS.id, "command_passed")
    ]


def test_a_bullet_that_an_earlier_run_was_told_can_be_named_by_a_later_one() -> None:
    story = told(TESTS).end().begin().shell("make check", 0).end(TESTS)
    assert story.of(TESTS) == ("neutral", "not_cited")
    assert story.of(TESTS, "run_2") == ("helpful", "command_passed")


# ---- properties


def _edit(number: int) -> Event:
    return Edit(
        files=(FileStat(path="a.py", kind="edit"),),
        checkpoint_id=f"c{number}",
        diff=f"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-{number - 1}\n+{number}\n",
    )


AFTER = st.one_of(
    st.sampled_from([1, 2]).map(lambda n: Restored(checkpoint_id=f"c{n}", files=(), redo=f"redo{n}")),
    st.sampled_from([1, 2]).map(lambda n: Restored(checkpoint_id=f"redo{n}", files=(), redo=f"again{n}")),
    st.just(Review(decision="accept", path="a.py", hunks=0)),
    st.just(Review(decision="reject", path="a.py", hunks=0)),
    st.sampled_from(["btc-00001 is wrong", "pc-00001 is right", "pc-00001 is not right"]).map(
        lambda t: MessageEvent(role="user", text=Text(t), agent="user")
    ),
    st.just(RunStarted(prompt="more")),
)


def _session(after: Sequence[Event]) -> list[Chunk]:
    story = told(TESTS, PLAIN).shell("make check", 0).add(_edit(1), _edit(2)).end(TESTS, PLAIN)
    for number, event in enumerate(after):
        if isinstance(event, RunStarted):
            story.run = f"run_late_{number}"
        story.add(event)
    return story.chunks


@given(st.lists(AFTER, max_size=8), st.randoms(use_true_random=False))
def test_what_is_shown_depends_on_what_is_on_record_alone(after: list[Event], random: Random) -> None:
    """However often it is looked at, in whatever order the record is read, and with parts read twice."""
    chunks = _session(after)
    once = judge_runs(chunks)
    mixed = [*chunks, *chunks[::2]]
    random.shuffle(mixed)
    assert judge_runs(mixed) == once == judge_runs(chunks)


@given(st.lists(AFTER, max_size=8))
def test_there_is_one_verdict_of_a_run_and_bullet_whatever_comes_later(after: list[Event]) -> None:
    found = judge_runs(_session(after))
    assert [each.observation.bullet for each in found[0].bullets] == [TESTS.id, PLAIN.id]


@given(st.lists(AFTER, max_size=8))
def test_the_last_word_holds(after: list[Event]) -> None:
    """Edits that the user took back at last count against a lesson, whatever was accepted before."""
    chunks = _session([*after, _restore_all()])
    said = {
        b.observation.bullet: (b.observation.verdict, b.observation.why)
        for b in judge_runs(chunks)[0].bullets
    }
    assert said[PLAIN.id][0] == "harmful"


def _restore_all() -> Event:
    return Restored(checkpoint_id="c1", files=(), redo="last")


@given(st.lists(AFTER, max_size=6))
def test_an_undo_and_its_undo_leave_what_was(after: list[Event]) -> None:
    before = judge_runs(_session(after))[0]
    undone = Restored(checkpoint_id="c1", files=(), redo="u")
    redone = Restored(checkpoint_id="u", files=(), redo="v")
    assert judge_runs(_session([*after, undone, redone]))[0].bullets == before.bullets


APART = (
    Review(decision="reject", path="a.py", hunks=0),
    Review(decision="reject", path="b.py", hunks=0),
    RunStarted(prompt="something else"),
)
"""Both edits are taken back, with a run between."""


@given(st.permutations(APART))
def test_evidence_of_different_things_may_come_in_any_order(after: list[Event]) -> None:
    story = told(TESTS, PLAIN).shell("make check", 0).edit("k1", "one").edit("k2", "two", path="b.py")
    story.end(TESTS, PLAIN)
    for event in after:
        if isinstance(event, RunStarted):
            story.run = "run_later"
        story.add(event)
    assert {
        b.observation.bullet: (b.observation.verdict, b.observation.why) for b in story.outcome().bullets
    } == {TESTS.id: ("helpful", "command_passed"), PLAIN.id: ("harmful", "edits_rejected")}


# ---- several records of one run


def test_of_several_records_of_a_run_the_last_word_holds() -> None:
    """C3.5: what was used counts once, also where a conversation was forked."""

    def judged(verdict: Verdict, why: Why, weight: int, time: str, session: str) -> RunOutcome:
        seen = Observation(run="run_1", bullet="pc-00001", verdict=verdict, why=why, session=session, seq=1)
        return RunOutcome("run_1", (LessonVerdict(seen, weight, time),))

    kept = judged("helpful", "edits_kept", 1, "2026-01-01", "a")
    undone = judged("harmful", "edits_restored", 2, "2026-01-02", "b")
    accepted = judged("helpful", "edits_accepted", 2, "2026-01-03", "a")
    assert [each.observation.why for each in select_latest_verdicts([kept, undone])] == ["edits_restored"]
    assert [each.observation.why for each in select_latest_verdicts([undone, accepted])] == ["edits_accepted"]
    assert select_latest_verdicts([accepted, undone]) == select_latest_verdicts([undone, accepted])

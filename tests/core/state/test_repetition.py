"""Going round in circles: every kind of loop ends a run at the third repeat; real work never does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.base import JsonObject
from daiku.domain.events import Edit, Event, MessageEvent, RunStarted, ToolCallEvent, ToolResponse
from daiku.domain.messages import ToolMessage
from daiku.domain.runs import RunLimits
from daiku.domain.tools import ToolCall
from daiku.domain.work.patches import FileStat
from daiku.run.rules.state.fold import fold
from daiku.run.rules.state.repetition import (
    Repetition,
    count_equal_errors,
    find_repetition,
    repetition_failure,
    repetition_note,
)
from daiku.run.rules.state.state import State
from daiku.texts.text import Text
from tests.cases import for_each


class Act(NamedTuple):
    """One call of a reply and what comes of it; `diff` where it edits `path`."""

    tool: str
    args: JsonObject
    result: str
    ok: bool = True
    data: JsonObject | None = None
    diff: str = ""


def read(path: str, text: str = "text") -> Act:
    return Act("files/read", {"path": path}, text)


def run(command: str, text: str, code: int = 0) -> Act:
    return Act("shell/run", {"command": command}, text, code == 0, {"exitCode": code})


def edit(path: str, old: str, new: str, result: str = "Changed.") -> Act:
    args: JsonObject = {"path": path, "edits": [{"search": old, "replace": new}]}
    diff = f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{old}\n+{new}\n"
    return Act("files/edit", args, result, diff=diff)


def failing_edit(path: str, old: str) -> Act:
    return Act(
        "files/edit", {"path": path, "edits": [{"search": old, "replace": "x"}]}, "No match.", ok=False
    )


def looked(text: str, running: bool = True) -> Act:
    return Act("shell/output", {"id": "1"}, text, data={"running": running})


class Turn(NamedTuple):
    """One reply: what it says, then its calls."""

    text: str
    acts: tuple[Act, ...]


Step = Turn | str
"""A reply, or words that someone puts in between."""


def turn(*acts: Act, text: str = "") -> Turn:
    return Turn(text, acts)


def events(steps: Sequence[Step], limit: int = 3, speaker: str = "checks") -> list[Event]:
    made: list[Event] = [RunStarted(prompt="mend it", limits=RunLimits(max_repeats=limit))]
    for number, step in enumerate(steps):
        if isinstance(step, str):
            made.append(MessageEvent(role="user", text=Text(step), agent=speaker))
            continue
        calls = tuple(ToolCall(id=f"{number}.{i}", tool=a.tool, args=a.args) for i, a in enumerate(step.acts))
        made.append(MessageEvent(role="assistant", text=Text(step.text), calls=calls))
        for call, act in zip(calls, step.acts, strict=True):
            made.append(ToolCallEvent(id=call.id, tool=call.tool, args=call.args))
            if act.diff:
                stat = FileStat(path=str(act.args["path"]), kind="edit", added=1, removed=1)
                made.append(Edit(files=(stat,), checkpoint_id="c", call_id=call.id, diff=act.diff))
            made.append(ToolResponse(id=call.id, tool=call.tool, ok=act.ok, result=act.result, data=act.data))
    return made


def after(steps: Sequence[Step], limit: int = 3, speaker: str = "checks") -> State:
    return fold(events(steps, limit, speaker))


TESTS_FAIL = run("pytest -q", "FAILED test_a - assert 1 == 2\n1 failed in 0.31s", 1)
THERE, BACK = edit("a.py", "one", "two"), edit("a.py", "two", "one")

LOOPS: dict[str, tuple[str, list[Turn], list[Turn]]] = {
    # kind, what begins it, what comes again
    "a file read again": ("same result", [turn(read("a.py"))], [turn(read("a.py"))]),
    "the same two files": (
        "same result",
        [turn(read("a.py"), read("b.py"))],
        [turn(read("a.py"), read("b.py"))],
    ),
    "the same failing edit": (
        "same failure",
        [turn(failing_edit("a.py", "nowhere"))],
        [turn(failing_edit("a.py", "nowhere"))],
    ),
    "the same failing tests, other timing": (
        "same failure",
        [turn(TESTS_FAIL)],
        [turn(run("pytest -q", "FAILED test_a - assert 1 == 2\n1 failed in 0.28s", 1))],
    ),
    "read, fail, read, fail": (
        "alternating",
        [turn(read("a.py")), turn(failing_edit("a.py", "nowhere"))],
        [turn(read("a.py")), turn(failing_edit("a.py", "nowhere"))],
    ),
    "three in a round": (
        "alternating",
        [turn(read("a")), turn(read("b")), turn(read("c"))],
        [turn(read("a")), turn(read("b")), turn(read("c"))],
    ),
    "announcing without doing": (
        "same text",
        [turn(failing_edit("a.py", "0"), text="I will now mend it.")],
        [turn(failing_edit("a.py", "1"), text="I will  now mend it.")],
    ),
    "there and back": ("reverted edits", [turn(THERE)], [turn(BACK)]),
}


@for_each("name", LOOPS)
def test_a_loop_is_told_first_and_ends_the_run_by_the_third_repeat(name: str) -> None:
    kind, begin, again = LOOPS[name]
    if kind == "same text":  # every call of it fails in another way
        again_steps = [[turn(failing_edit("a.py", str(n)), text=again[0].text)] for n in range(1, 4)]
    elif kind == "reverted edits":  # the second edit already takes the first one back
        again_steps = [[turn(BACK)], [turn(THERE)], [turn(BACK)]]
    else:
        again_steps = [again] * 3
    steps: list[Step] = [*begin]
    tellings = 0
    for repeat in again_steps:
        state = after(steps)
        assert repetition_failure(state.health.trail, 3) is None
        steps += repeat
        tellings += bool(repetition_note(after(steps).health.trail, 3)) or bool(
            repetition_note(after(steps[:-1]).health.trail, 3)
        )
    failure = repetition_failure(after(steps).health.trail, 3)
    assert failure is not None
    assert failure.kind == "limit"
    assert kind in failure.message
    assert tellings >= 1


@for_each("period", range(2, 17))
def test_a_cycle_of_any_period_is_told_and_ends_the_run_at_its_third_repeat(period: int) -> None:
    cycle = [turn(read(f"{n}.py", f"text {n}")) for n in range(period)]
    assert repetition_failure(after(cycle * 3).health.trail, 3) is None
    assert repetition_note(after(cycle * 3).health.trail, 3)
    assert repetition_failure(after(cycle * 4).health.trail, 3) is not None


def test_the_same_long_result_by_ever_other_arguments_is_a_loop() -> None:
    text = "1 | import os\n" * 20
    steps = [turn(Act("files/read", {"path": "a.py", "end_line": n}, text)) for n in range(500, 520)]
    ended = next(n for n in range(1, 20) if repetition_failure(after(steps[:n]).health.trail, 3) is not None)
    assert ended == 7
    failure = repetition_failure(after(steps[:ended]).health.trail, 3)
    assert failure is not None
    assert "(same answer)" in failure.message


def test_the_model_reads_that_it_repeats_itself_in_the_result() -> None:
    state = after([turn(read("a.py"))] * 3)
    last = state.conversation.messages[-1]
    assert isinstance(last, ToolMessage)
    assert last.text.startswith("text\n\nNote: files__read was called 3 times in a row")
    assert "Change your approach" in last.text


def test_what_is_said_without_calls_counts_when_the_run_is_sent_on() -> None:
    lie: list[Step] = [Turn("All tests pass now.", ()), "The check fails: exit code 1."]
    assert repetition_failure(after(lie * 3).health.trail, 3) is None
    assert "Change your approach" in after(lie * 3).conversation.messages[-1].text
    failure = repetition_failure(after([*lie * 3, lie[0]]).health.trail, 3)
    assert failure is not None
    assert "same text" in failure.message


def test_a_word_from_the_person_begins_anew() -> None:
    same = [turn(read("a.py"))] * 3
    assert repetition_failure(after([*same, "look once more", *same], speaker="user").health.trail, 3) is None
    assert repetition_failure(after([*same, "the check fails", *same]).health.trail, 3) is not None


@for_each(
    ("steps", "count"),
    [
        ([], 0),
        ([turn(failing_edit("a.py", "x"))] * 2, 2),
        ([turn(failing_edit("a.py", "x"), failing_edit("a.py", "x"))], 2),
        ([turn(failing_edit("a.py", "x")), turn(read("a.py")), turn(failing_edit("a.py", "x"))], 1),
        ([turn(failing_edit("a.py", "x")), turn(read("a.py"))], 0),
        ([turn(TESTS_FAIL)] * 3, 0),
    ],
)
def test_calls_that_fail_in_the_same_way_are_counted_up_to_the_last(steps: list[Step], count: int) -> None:
    """B2.3: tests that ran and failed are an outcome, not an error of a tool."""
    assert count_equal_errors(after(steps).health.trail) == count


def test_no_limit_lets_everything_repeat() -> None:
    state = after([turn(read("a.py"))] * 30, limit=0)
    assert repetition_failure(state.health.trail, 0) is None
    assert all("Note:" not in m.text for m in state.conversation.messages)


@for_each("limit", [1, 2, 5, 12])
def test_the_setting_says_how_many_repeats(limit: int) -> None:
    same = turn(read("a.py"))
    assert repetition_failure(after([same] * limit, limit).health.trail, limit) is None
    assert repetition_failure(after([same] * (limit + 1), limit).health.trail, limit) is not None


REAL_WORK: dict[str, list[Step]] = {
    "tests, edit, tests: the same failure each time": [
        step
        for n in range(8)
        for step in (turn(edit("a.py", f"v{n}", f"v{n + 1}"), text="Let me try this."), turn(TESTS_FAIL))
    ],
    "many files read under the same words": [
        turn(read(f"src/{n}.py", f"content {n}"), text="Let me look at the next file.") for n in range(12)
    ],
    "one file read in parts": [
        turn(Act("files/read", {"path": "a.py", "start_line": n * 100}, f"part {n}")) for n in range(10)
    ],
    "waiting for a server that prints": [turn(looked(f"line {n}")) for n in range(20)],
    "waiting for a silent build": [
        turn(run("make", "started", 0)),
        *[turn(looked("It is still running.\n(nothing new)"))] * 10,
        turn(looked("It ended with exit code 0.", running=False)),
    ],
    "a plan that is looked at as it goes on": [
        turn(Act("plan/get", {}, f"{n} of 9 steps done")) for n in range(9)
    ],
    "an experiment that is taken back once": [turn(THERE), turn(TESTS_FAIL), turn(BACK), turn(TESTS_FAIL)],
    "several experiments, each taken back": [
        step
        for n in range(5)
        for step in (turn(edit("a.py", "one", f"try {n}")), turn(edit("a.py", f"try {n}", "one")))
    ],
    "the same edit in many files": [turn(edit(f"{n}.py", "old", "new")) for n in range(9)],
    "tests three times to see whether they are flaky": [turn(run("pytest", "3 passed in 0.1s"))] * 3,
    "a file read again after every edit": [
        step
        for n in range(6)
        for step in (turn(edit("a.py", f"v{n}", f"v{n + 1}")), turn(read("a.py", f"v{n + 1}")))
    ],
    "git status between commits": [
        step
        for n in range(6)
        for step in (
            turn(Act("git/commit", {"message": f"part {n}"}, "Committed.")),
            turn(Act("git/status", {}, "Nothing to commit.")),
        )
    ],
    "commands that print nothing": [
        turn(run(f"mkdir part{n}", "Exit code 0 after 0.1 s.\n(no output)")) for n in range(20)
    ],
    "errors that differ": [turn(failing_edit("a.py", str(n))) for n in range(8)],
    "the same question to different ends": [
        turn(Act("user/ask", {"question": "Go on?"}, f"yes, part {n}")) for n in range(6)
    ],
}


@for_each("name", REAL_WORK)
def test_real_work_is_never_taken_for_a_loop(name: str) -> None:
    steps = REAL_WORK[name]
    for length in range(1, len(steps) + 1):
        assert repetition_failure(after(steps[:length]).health.trail, 3) is None, length


ACTS = st.sampled_from([read("a"), read("b"), read("c"), TESTS_FAIL, failing_edit("a", "x"), THERE, BACK])
TURNS = st.builds(turn, ACTS, text=st.sampled_from(["", "Now.", "Let me look."]))


@given(st.lists(TURNS, max_size=12), st.lists(TURNS, min_size=1, max_size=16))
def test_whatever_came_before_a_cycle_is_caught_within_three_repeats(
    before: list[Turn], cycle: list[Turn]
) -> None:
    steps: list[Step] = [*before, *cycle * 4]
    assert repetition_failure(after(steps).health.trail, 3) is not None


@given(st.lists(TURNS, max_size=40))
def test_a_run_in_which_everything_is_new_never_stops(turns: list[Turn]) -> None:
    new: list[Step] = [
        Turn(t.text, tuple(a._replace(args={**a.args, "n": n}, diff="") for a in t.acts))
        for n, t in enumerate(turns)
        if all(a.ok or a.data for a in t.acts)
    ]
    found = find_repetition(after(new).health.trail)
    assert found is None


@given(st.lists(TURNS, max_size=30), st.integers(0, 30))
def test_folding_in_two_parts_gives_the_same_trail(turns: list[Turn], cut: int) -> None:
    all_events = events(turns)
    parts = fold(all_events[cut:], fold(all_events[:cut]))
    assert parts.health.trail == fold(all_events).health.trail


def test_the_trail_stays_small_in_a_long_run() -> None:
    state = after([turn(edit(f"{n}.py", "a", "b"), text=f"{n}") for n in range(500)])
    assert len(state.health.trail.turns) <= 64
    assert len(state.health.trail.changes) <= 64
    assert len(state.health.trail.texts) <= 64


def test_an_edit_that_is_taken_back_again_and_again_is_named_with_its_file() -> None:
    found = find_repetition(after([turn(THERE), turn(BACK), turn(THERE)]).health.trail)
    assert found == Repetition("undone_edits", "a.py", 2)

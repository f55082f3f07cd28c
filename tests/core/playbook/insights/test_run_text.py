"""A run that has ended as a model is shown it: all that decides, within a bound whatever was printed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.chunks import Chunk, encode_event
from daiku.domain.events import (
    ApprovalGiven,
    Event,
    HandoffStart,
    MessageEvent,
    RunFinished,
    RunStarted,
    ToolCallEvent,
)
from daiku.playbook.rules.run_text import (
    LONGEST,
    REPEATED,
    format_run,
    has_reflection,
    needs_reflection,
    select_chunks,
)
from daiku.texts.text import Text
from tests.playbook.happened import ran

HANDED = {"from": "coordinator", "to": "runner", "request": "the tests", "run": "r2"}


def session(*events: tuple[str, str | None, str, Event]) -> list[Chunk]:
    """Chunks by run, parent, agent and event."""
    return [
        Chunk(n, "2026-01-02T03:04:05.000Z", "sess_1", run, agent, event, encode_event(event), parent)
        for n, (run, parent, agent, event) in enumerate(events, 1)
    ]


def run(*events: Event | tuple[Event, ...], used: tuple[str, ...] = ()) -> list[Chunk]:
    flat = [one for each in events for one in (each if isinstance(each, tuple) else (each,))]
    ended = RunFinished(status="completed", used_bullets=used)
    return session(*(("r1", None, "coordinator", e) for e in (RunStarted(prompt="Test it."), *flat, ended)))


def test_a_run_is_told_with_those_that_worked_for_it_and_without_what_came_after() -> None:
    chunks = session(
        ("r1", None, "coordinator", RunStarted(prompt="Test it.")),
        ("r1", None, "coordinator", HandoffStart.model_validate(HANDED)),
        ("r2", "r1", "runner", RunStarted(prompt="the tests")),
        ("r2", "r1", "runner", ToolCallEvent(id="c", tool="shell/run", args={"command": "make"})),
        ("r2", "r1", "runner", RunFinished(status="failed")),
        ("r1", None, "coordinator", MessageEvent(role="assistant", text=Text("It fails."))),
        ("r1", None, "coordinator", RunFinished(status="completed")),
        ("r3", None, "coordinator", RunStarted(prompt="Another thing.")),
    )
    assert format_run(select_chunks(chunks, "r1")).split("\n") == [
        "The person asked: Test it.",
        "coordinator handed work to runner: the tests",
        "runner was asked: the tests",
        'runner called shell/run {"command": "make"}',
        "The part of runner ended: failed",
        "coordinator said: It fails.",
        "The run ended: completed",
    ]


@given(st.lists(st.text(max_size=200).map(lambda text: text * 300), max_size=40))
def test_it_is_never_longer_than_its_bound(outputs: list[str]) -> None:
    chunks = run(*(ran("make", 1, output) for output in outputs))
    assert len(format_run(chunks)) <= LONGEST + 100  # the note of what was left out


def test_of_a_long_output_the_lines_that_decide_are_kept() -> None:
    noise = "\n".join(f"line {n}" for n in range(100_000))
    whole = format_run(run(ran("make", 1, f"{noise}\nE   AssertionError: 3 != 4\n{noise}")))
    assert "AssertionError: 3 != 4" in whole


def test_a_run_is_worth_a_look_where_it_shows_something() -> None:
    assert needs_reflection(run(ran("make", 1)))
    assert not needs_reflection(run(used=("batc-00001",)))
    assert not needs_reflection(run(ran("make", 1), ran("make", 0)))
    assert needs_reflection(run(ran("make", 0), ran("make", 1)))
    assert needs_reflection(run(ApprovalGiven(approval_id="a", decision="reject_once")))
    assert not needs_reflection(run(ran("make", 0)))
    assert not needs_reflection(run(ApprovalGiven(approval_id="a", decision="reject_once", unattended=True)))
    assert not needs_reflection(run(ran("make", 1))[:-1])
    assert not needs_reflection([])


def test_repeated_failures_are_worth_a_look_and_red_tests_before_green_ones_are_none() -> None:
    """B3.3: failures in a row of one command."""
    red, green = ran("make", 1), ran("make", 0)
    assert needs_reflection(run(*[red] * REPEATED, green))
    assert not needs_reflection(run(*[red] * (REPEATED - 1), green, *[red] * (REPEATED - 1), green))
    assert not needs_reflection(run(*(ran(f"make {n}", 1) for n in range(REPEATED)), ran("make", 0)))


def test_a_look_on_record_is_seen_and_other_nested_runs_are_none() -> None:
    before = run(ran("make", 1))
    look = session(("r9", "r1", "reflector", RunStarted(prompt="")))
    work = session(("r9", "r1", "runner", RunStarted(prompt="")))
    assert has_reflection([*before, *look], "r1")
    assert not has_reflection([*before, *work], "r1")
    assert not has_reflection([*before, *look], "r2")

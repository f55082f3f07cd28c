"""What bringing files back cannot undo."""

from __future__ import annotations

from typing import Any

from daiku.domain.chunks import Chunk, encode_event
from daiku.domain.events import CheckpointEvent, Event, ToolCallEvent, ToolResponse
from daiku.domain.tools import Effect, Outcome
from daiku.run.recorded.history import irrevocable

EFFECTS: dict[str, Effect] = {
    "shell/run": "command",
    "shell/output": "none",
    "git/commit": "command",
    "files/edit": "edit",
    "files/read": "read",
    "web/fetch": "network",
    "tracker/close": "mcp",
    "tracker/look": "read",
}


def called(id_: str, tool: str, **args: Any) -> ToolCallEvent:
    return ToolCallEvent(id=id_, tool=tool, args=args)


def answered(id_: str, tool: str, *, ok: bool = True, took: int = 5, **data: Any) -> ToolResponse:
    return ToolResponse(id=id_, tool=tool, ok=ok, result="", duration_ms=took, data=data or None)


def ended(id_: str, outcome: Outcome, took: int = 0) -> ToolResponse:
    return ToolResponse(
        id=id_, tool="shell/run", ok=False, outcome=outcome, result=f"It says {outcome}.", duration_ms=took
    )


def told(*events: Event | tuple[Event, str]) -> list[tuple[str, int | None]]:
    chunks: list[Chunk] = []
    for seq, given in enumerate(events, 1):
        event, parent = given if isinstance(given, tuple) else (given, None)
        run = "nested" if parent else "run"
        chunks.append(Chunk(seq, f"t{seq}", "s", run, "a", event, encode_event(event), parent))
    found = irrevocable(chunks, "point", EFFECTS.get)
    assert all(each.time.startswith("t") for each in found)
    return [(each.command, each.exit_code) for each in found]


POINT = CheckpointEvent(checkpoint_id="point", files=("a",))


def test_commands_since_are_listed_with_their_exit_codes_nested_runs_included() -> None:
    assert told(
        called("0", "shell/run", command="before"),
        answered("0", "shell/run", exitCode=0, durationMs=3),
        POINT,
        called("1", "shell/run", command="npm publish"),
        answered("1", "shell/run", exitCode=0, durationMs=3),
        (called("2", "shell/run", command="make"), "run"),
        (answered("2", "shell/run", ok=False, exitCode=2, durationMs=3), "run"),
        called("3", "git/commit", message="wip"),
        answered("3", "git/commit"),
    ) == [("npm publish", 0), ("make", 2), ("git commit -m 'wip'", None)]


def test_calls_of_other_programs_count_where_they_have_effects_and_unknown_ones_always() -> None:
    assert told(
        POINT,
        called("1", "tracker/close", issue=7),
        answered("1", "tracker/close"),
        called("2", "tracker/look", issue=7),
        answered("2", "tracker/look"),
        called("3", "gone/tool"),
        answered("3", "gone/tool"),
        called("4", "web/fetch", url="https://example.org"),
        answered("4", "web/fetch"),
        called("5", "files/edit", path="a"),
        answered("5", "files/edit"),
    ) == [("tracker/close issue=7", None), ("gone/tool", None)]


def test_what_was_refused_did_nothing_and_what_was_interrupted_may_have() -> None:
    assert told(
        POINT,
        called("1", "shell/run", command="rejected by the person"),
        ended("1", "rejected", took=5),
        called("2", "shell/run", command="refused by the sandbox"),
        answered("2", "shell/run", ok=False, exitCode=126, durationMs=0, started=False),
        called("3", "shell/run", command="interrupted"),
        ended("3", "interrupted"),
        called("4", "shell/run", command="cancelled"),
        ended("4", "cancelled"),
        called("5", "shell/run", command="cut short"),
    ) == [("interrupted", None), ("cancelled", None), ("cut short", None)]


def test_a_command_that_failed_at_once_ran_all_the_same() -> None:
    assert told(
        POINT,
        called("1", "shell/run", command="exit 3"),
        answered("1", "shell/run", ok=False, took=0, exitCode=3, durationMs=0),
    ) == [("exit 3", 3)]


def test_a_command_that_was_under_way_when_the_files_were_kept_is_among_them() -> None:
    assert told(
        called("1", "shell/run", command="long"),
        POINT,
        answered("1", "shell/run", exitCode=0, durationMs=900),
    ) == [("long", 0)]


def test_an_unknown_checkpoint_has_nothing_after_it() -> None:
    assert told(called("1", "shell/run", command="x")) == []

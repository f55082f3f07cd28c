"""A pause at every step of a run: no tool begins after it, and whoever resumes it has the same step before them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from daiku.domain.chunks import Chunk
from daiku.domain.events import EPHEMERAL, MessageEvent, ToolCallEvent, ToolResponse
from daiku.run.recorded.history import events_of
from daiku.run.request import RunRequest
from daiku.run.rules.decide import INTERRUPTED
from daiku.run.rules.state.fold import fold
from daiku.run.rules.state.state import State
from tests.runs.playing import Watch, make_app, shell

Json = dict[str, Any]
REQUEST = RunRequest("go", approvals="all")
MAIN, NESTED = {"agent": "through tools"}, {"agent": "explore the project"}
STEPS: tuple[Json, ...] = (
    {"text": "two looks", "calls": [{"tool": "files/read", "args": {"path": "a.txt"}}] * 2, **MAIN},
    {"text": "a command, then a file", "calls": [shell("echo 1 >> effects"), {
        "tool": "files/write", "args": {"path": "b.txt", "content": "b\n"}}], **MAIN},
    {"text": "a nested run", "calls": [{"tool": "agent/handoff", "args": {
        "agent": "explorer", "request": "Where is it?"}}], **MAIN},
    {"text": "looking", "calls": [{"tool": "files/read", "args": {"path": "a.txt"}}], **NESTED},
    {"text": "It is in a.txt.", **NESTED},
    {"text": "one more", "calls": [shell("echo 2 >> effects")], **MAIN},
    {"text": "All done.", **MAIN},
)  # fmt: skip


def project(folder: Path) -> Path:
    (folder / "project").mkdir(parents=True)
    (folder / "project/a.txt").write_text("a\n")
    return folder


def told(chunks: list[Chunk]) -> list[tuple[str, ...]]:
    """What was said and done, without the ids and times that differ from run to run."""
    found: list[tuple[str, ...]] = []
    for chunk in chunks:
        match chunk.event:
            case MessageEvent() as said if not said.partial:
                found.append((chunk.agent, said.role, said.text))
            case ToolCallEvent() as call:
                found.append((chunk.agent, call.tool, str(call.args)))
            case ToolResponse() as ended:
                found.append((chunk.agent, ended.tool, ended.outcome))
            case _:
                pass
    return found


class PauseAt:
    """Pauses the run at its durable chunk number `at`, and knows what was on record by then."""

    def __init__(self, app: Any, at: int) -> None:
        self._app, self._at = app, at
        self.chunks: list[Chunk] = []
        self.stored = 0

    def __call__(self, chunk: Chunk) -> None:
        if chunk.type in EPHEMERAL:
            return
        self.chunks.append(chunk)
        if len(self.chunks) == self._at:
            self.stored = self._app.journal.last_seq(chunk.session)
            self._app.runs.begin_pause(chunk.parent or chunk.run)


async def test_a_pause_at_any_step_begins_no_tool_and_resumes_with_that_very_step(tmp_path: Path) -> None:
    """S2R.2, S2R.6: after a reply, after a tool, at the beginning of a round; nested runs too."""
    folder = project(tmp_path / "whole")
    app, watch = make_app(folder, *STEPS), Watch()
    result = await app.runs.run(REQUEST, watch)
    assert result.status == "completed"
    whole = app.journal.chunks(result.session_id)
    await app.aclose()
    paused = 0
    for at in range(1, len(whole) + 1):
        paused += await _paused_and_resumed(project(tmp_path / str(at)), at, told(whole))
    assert paused > len(whole) / 2


async def _paused_and_resumed(folder: Path, at: int, whole: list[tuple[str, ...]]) -> bool:
    app = make_app(folder, *STEPS)
    pausing = PauseAt(app, at)
    result = await app.runs.run(REQUEST, pausing)
    before = app.journal.chunks(result.session_id)
    await app.aclose()
    late = [c for c in before if c.seq > pausing.stored and isinstance(c.event, ToolCallEvent)]
    assert not late, f"paused at {at}: {late}"
    if result.status != "paused":
        return False
    stood = fold(events_of(before))
    again, watch = make_app(folder, *STEPS), Watch()
    resumed = await again.runs.resume(result.run_id, watch, "all")
    after = again.journal.chunks(result.session_id, before[-1].seq)
    await again.aclose()
    assert resumed.status == "completed"
    assert told([*before, *after]) == whole, at
    assert (folder / "project/effects").read_text() == "1\n2\n"
    assert INTERRUPTED not in [str(c.event.result) for c in after if isinstance(c.event, ToolResponse)]
    _same_step(stood, after)
    return True


def _same_step(stood: State, after: list[Chunk]) -> None:
    """The first thing that a resumed run does is what the paused one would have done."""
    top = [c.event for c in after if c.parent is None]
    first = next(
        (e for e in top if isinstance(e, ToolCallEvent | ToolResponse | MessageEvent) and not _is_word(e)),
        None,
    )
    if stood.calls.pending:
        assert isinstance(first, ToolCallEvent | ToolResponse)
        assert first.id == stood.calls.pending[0].id
    elif first is not None:
        assert isinstance(first, MessageEvent)
        assert first.seen == len(stood.conversation.messages)


def _is_word(event: object) -> bool:
    return isinstance(event, MessageEvent) and event.role == "user"

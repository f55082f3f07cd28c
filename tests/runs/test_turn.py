"""One turn as a front sees it: text in pieces, a call, its result back to the model, the closing words."""

from __future__ import annotations

from pathlib import Path

from daiku.domain.events import Delta, MessageEvent, ToolCallEvent, ToolResponse
from daiku.run.request import RunRequest
from tests.runs.playing import Watch, make_app


async def test_a_turn_streams_its_text_runs_its_call_and_gives_the_result_back(tmp_path: Path) -> None:
    """R1.3, R1.23, R1.26, R1.27: text is streamed; a call's result goes back to the model, whose next reply is the
    run's answer: what was streamed, put together."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project/note.txt").write_text("the answer is 42\n")
    app = make_app(
        tmp_path,
        {
            "text": "Let me look.",
            "calls": [{"tool": "files/read", "args": {"path": "note.txt"}}],
            "when": "what",
        },
        {"text": "It says 42 there.", "when": "the answer is 42"},
    )
    watch = Watch()
    result = await app.runs.run(RunRequest("what is the answer?"), watch)
    events = [chunk.event for chunk in watch.chunks]
    deltas = [each.text for each in events if isinstance(each, Delta)]
    assert len(deltas) > 5
    assert "".join(deltas) == "Let me look.It says 42 there."
    kinds = [type(each) for each in events if isinstance(each, ToolCallEvent | ToolResponse | MessageEvent)]
    assert kinds[-4:] == [MessageEvent, ToolCallEvent, ToolResponse, MessageEvent]
    assert (result.status, result.text) == ("completed", "It says 42 there.")
    assert "".join(deltas).endswith(result.text)
    await app.aclose()

"""Edits whose process was killed: the resumed run says whether each was made."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from daiku.domain.chunks import Chunk
from daiku.domain.events import Edit, ToolResponse
from daiku.domain.runs import RunResult
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from tests.runs.playing import Watch, make_app
from tests.runs.test_kill import killed_in_child

PATCH = "\n".join(
    f"{name}.txt\n<<<<<<< SEARCH\nold\n=======\nnew {name}\n>>>>>>> REPLACE\n" for name in ("a", "b")
)
SCRIPT = ({"calls": [{"tool": "files/patch", "args": {"patch": PATCH}}]}, {"text": "I changed both files."})
NOT_MADE, MADE, PARTLY = (
    "before it changed a file",
    "the files contain it",
    "Changed: a.txt. Not changed: b.txt.",
)
UNKNOWN = "it is unknown how far it got"


class World:
    """A project whose edit of two files is killed when a chunk of type `dies_at` was written."""

    def __init__(self, folder: Path, dies_at: str) -> None:
        self.folder, self.dies_at = folder, dies_at
        (folder / "project").mkdir()
        for name in ("a.txt", "b.txt"):
            (folder / "project" / name).write_text("old\n")

    def write(self, *names: str, text: str = "") -> None:
        for name in names:
            (self.folder / "project" / name).write_text(text or f"new {name[0]}\n")

    async def run(self, *, die_at: int = 0) -> RunResult:
        app = make_app(self.folder, *SCRIPT)

        def listen(chunk: Chunk) -> None:
            if die_at and chunk.type == self.dies_at:
                os.kill(os.getpid(), signal.SIGKILL)

        request = RunRequest("Change a.txt and b.txt", approvals="all")
        result = await app.runs.run(request, listen)
        await app.aclose()
        return result


@pytest.mark.parametrize(
    ("dies_at", "written", "text", "said", "status"),
    [
        ("tool_call", (), "", NOT_MADE, "completed_unverified"),
        ("checkpoint", (), "", NOT_MADE, "completed_unverified"),
        ("checkpoint", ("a.txt", "b.txt"), "", MADE, "completed"),
        ("checkpoint", ("a.txt",), "", PARTLY, "completed_unverified"),
        ("checkpoint", ("a.txt", "b.txt"), "by another\n", UNKNOWN, "completed_unverified"),
        ("edit", (), "", MADE, "completed"),
    ],
)
def test_a_resumed_run_says_whether_its_interrupted_edit_was_made(
    tmp_path: Path, dies_at: str, written: tuple[str, ...], text: str, said: str, status: str
) -> None:
    """A23.6: by the files and the checkpoint, which holds them before and after the edit."""
    world = World(tmp_path, dies_at)
    assert killed_in_child(world, 1)
    world.write(*written, text=text)

    async def resume() -> None:
        app = make_app(tmp_path, *SCRIPT)
        session = app.journal.list_sessions()[0].session_id
        result = await app.runs.resume(app.journal.chunks(session)[0].run, Watch(), approvals="all")
        chunks = app.journal.chunks(session)
        await app.aclose()
        events = [chunk.event for chunk in chunks]
        (response,) = [event for event in events if isinstance(event, ToolResponse)]
        edits = [stat.path for event in events if isinstance(event, Edit) for stat in event.files]
        assert said in response.result
        assert edits == (
            [] if said in (NOT_MADE, UNKNOWN) else ["a.txt"] if said == PARTLY else ["a.txt", "b.txt"]
        )
        assert result.status == status, result.reasons
        assert (await replay(chunks)).difference is None

    asyncio.run(resume())

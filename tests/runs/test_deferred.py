"""Tools that are not sent with each request: found, called, and carried out as if they had been called directly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from daiku.domain.chunks import Chunk
from daiku.domain.events import ApprovalAsked, ToolCallEvent, ToolResponse
from daiku.domain.runs import Mode
from daiku.run.ports.replies import Replies
from daiku.run.request import RunRequest
from tests.runs.playing import Watch, make_app

Json = dict[str, Any]
DONE = {"text": "Done."}


def deferred(tool: str, args: object) -> Json:
    return {"calls": [{"tool": "tools__call", "args": {"tool": tool, "args": args}}]}


async def play(folder: Path, *lines: Json, mode: Mode = "act", approvals: Any = "all") -> list[Chunk]:
    project = folder / "project"
    project.mkdir(exist_ok=True)
    (project / "a.txt").write_text("one\n")
    app = make_app(folder, *lines)
    watch = Watch()
    await app.runs.run(RunRequest("go", mode=mode, approvals=approvals), watch)
    await app.aclose()
    return watch.chunks


def requests(chunks: list[Chunk]) -> list[ToolCallEvent]:
    return [c.event for c in chunks if isinstance(c.event, ToolCallEvent)]


def answers(chunks: list[Chunk]) -> list[ToolResponse]:
    return [c.event for c in chunks if isinstance(c.event, ToolResponse)]


async def test_journal_and_guard_see_the_real_call(tmp_path: Path) -> None:
    move = deferred("files__move", {"path": "a.txt", "to": "b.txt"})
    chunks = await play(tmp_path, move, DONE, approvals="none")
    assert [(r.tool, r.args) for r in requests(chunks)] == [("files/move", {"path": "a.txt", "to": "b.txt"})]
    assert [a.ok for a in answers(chunks)] == [False]
    assert not [c for c in chunks if isinstance(c.event, ApprovalAsked) and c.event.tool == "tools/call"]
    chunks = await play(tmp_path, move, DONE)
    assert [a.ok for a in answers(chunks)] == [True]
    assert (tmp_path / "project/b.txt").read_text() == "one\n"


async def test_a_deferred_tool_is_called_by_any_spelling_of_its_name(tmp_path: Path) -> None:
    for name in ("search__symbols", "search/symbols", "search.symbols", "search_symbols"):
        chunks = await play(tmp_path, {"calls": [{"tool": name, "args": {"name": "x"}}]}, DONE)
        assert [(r.tool, a.ok) for r, a in zip(requests(chunks), answers(chunks), strict=True)] == [
            ("search/symbols", True)
        ]


async def test_find_answers_names_that_call_takes(tmp_path: Path) -> None:
    found = {"calls": [{"tool": "tools__find", "args": {"query": "commit"}}]}
    chunks = await play(tmp_path, found, DONE)
    assert "git__commit: " in answers(chunks)[0].result


async def test_a_wrong_name_or_wrong_arguments_are_answered_as_for_a_direct_call(tmp_path: Path) -> None:
    wrong = (
        deferred("git__comit", {}),
        deferred("files__move", {"path": "a.txt"}),
        deferred("files__move", "{x"),
    )
    chunks = await play(tmp_path, *wrong, {"calls": [{"tool": "tools__call", "args": {}}]}, DONE)
    said = [str(a.result) for a in answers(chunks)]
    assert "The nearest are git__commit" in said[0]
    assert "to is missing" in said[1]
    assert 'Right: {"path": string, "to": string}' in said[1]
    assert "not a JSON object" in said[2]
    assert 'Right: {"tool": string' in said[3]


async def test_a_call_that_the_mode_does_not_carry_out_is_told_why_and_what_to_do(tmp_path: Path) -> None:
    write = {"calls": [{"tool": "files/write", "args": {"path": "n.txt", "content": "x"}}]}
    for mode, word in (("plan", "plan__propose"), ("ask", "act mode")):
        chunks = await play(tmp_path, write, DONE, mode=mode)  # type: ignore[arg-type]
        (said,) = answers(chunks)
        assert not said.ok
        assert "files__write was not run: it changes files" in said.result
        assert word in said.result
        assert not (tmp_path / "project/n.txt").exists()


async def test_every_mode_sends_the_same_tools(tmp_path: Path, monkeypatch: Any) -> None:
    sent: list[tuple[str, ...]] = []
    plain = Replies.reply

    def reply(self: Replies, state: Any) -> Any:
        sent.append(tuple(f"{s.name} {s.description}" for s in self.toolset().offered))
        return plain(self, state)

    monkeypatch.setattr(Replies, "reply", reply)
    for mode in ("ask", "plan", "act"):
        await play(tmp_path, DONE, mode=mode)
    assert len(sent) == 3
    assert len(set(sent)) == 1


async def test_nobody_gets_a_tool_that_is_not_theirs_by_calling_it_through_another(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    run = deferred("shell__run", {"command": "touch made"})
    app = make_app(
        tmp_path, run, {"text": "I cannot."}, *({"text": "I cannot."} for _ in range(6)), command="allow"
    )
    watch = Watch()
    await app.runs.run(RunRequest("go", agent="planner", approvals="all"), watch)
    await app.aclose()
    assert "shell__run was not run: it is none of your tools" in answers(watch.chunks)[0].result
    assert not (tmp_path / "project/made").exists()

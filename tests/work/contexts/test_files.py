"""The `contexts/` tree and `tasks.db`, made from the journal while an item is worked and afterwards."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from daiku.domain.chunks import Chunk
from daiku.domain.events import ToolCallEvent
from daiku.domain.items.item import Outcome, ShowProgress
from daiku.items.contexts import files as files_module
from daiku.items.contexts.mirror import TaskTable, write_lines
from tests.work.contexts.desk import ITEM, Desk, desk, write

STEPS = (
    {"text": "one", "calls": [write("a.txt")]},
    {"text": "two", "calls": [{"tool": "files/read", "args": {"path": "gone.txt"}}]},
    {"text": "All done."},
)


def rows(home: Path, what: str = "tasks") -> list[dict[str, Any]]:
    connection = sqlite3.connect(home / "contexts/tasks.db")
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(f"SELECT * FROM {what}")]
    finally:
        connection.close()


def over(at: Desk, state: Any = "done") -> None:
    """The worker notes what came of the item, and shows it."""
    claim = at.items.claim(ITEM, "worker-1", only=("processing",))
    assert claim is not None
    at.files.show(at.items.change(claim, state=state))


def snapshot(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()
    }


async def test_an_item_that_was_worked_is_a_folder_with_everything_that_was_said_and_done(
    tmp_path: Path,
) -> None:
    """S2C.3, S2C.4, S2C.5, S2C.8, S2C.11, S2C.12, S2C.14, S2C.19: a folder by uuid, moved when it is over."""
    async with desk(tmp_path, *STEPS) as at:
        assert UUID(at.uuid).version == 4
        result = await at.work()
        assert result.status == "completed"
        assert at.folder("running").is_dir()
        over(at)
        assert not at.folder("running").exists()
        messages = at.lines("completed", "messages.jsonl")
        assert [line["seq"] for line in messages] == list(range(1, len(messages) + 1))
        assert [line["role"] for line in messages] == [
            "system",
            "user",
            "assistant",
            "tool",
            "assistant",
            "tool",
            "assistant",
        ]
        assert "Daiku" in messages[0]["content"]
        assert messages[0]["tokens"] == len(messages[0]["content"]) // 4
        assert messages[3]["tool_name"] == "files/write"
        assert all(("tool_name" in line) == (line["role"] == "tool") for line in messages)
        assert all(line["timestamp"].endswith("Z") for line in messages)
        current = at.lines("completed", "current.jsonl")
        assert [line["role"] for line in current] == [line["role"] for line in messages]
        assert not {"seq", "timestamp", "tokens"} & {key for line in current for key in line}
        assert current[2]["tool_calls"][0]["id"] == current[3]["tool_call_id"]
        wrote, read = at.lines("completed", "tools.jsonl")
        assert (wrote["seq"], wrote["tool"], wrote["status"]) == (1, "files/write", "success")
        assert wrote["args"]["path"] == "a.txt"
        assert wrote["result"]
        assert (read["seq"], read["status"], "result" in read) == (2, "error", False)
        assert "gone.txt" in read["error"]
        assert isinstance(read["duration_ms"], int)
        assert sorted(snapshot(at.folder("completed"))) == [
            "current.jsonl",
            "messages.jsonl",
            "metadata.json",
            "summaries.jsonl",
            "tools.jsonl",
        ]


async def test_metadata_say_which_item_it_is_and_what_works_it_and_are_written_once(tmp_path: Path) -> None:
    """S2C.10, S2K.1: the key has the parts by which the item is found on its forge."""
    async with desk(tmp_path, *STEPS) as at:
        await at.work()
        path = at.folder("running") / "metadata.json"
        info, written = json.loads(path.read_text("utf-8")), path.stat().st_mtime_ns
        assert info["uuid"] == at.uuid
        assert info["task_key"] == {
            "task_source": "gitlab",
            "owner": "group/sub",
            "repo": "name",
            "task_type": "merge_request",
            "task_id": "3",
        }
        assert (info["process_id"], info["user"]) == (os.getpid(), "ann")
        assert info["config"]["llm_provider"] == "scripted"
        assert info["config"]["compression_threshold"] == 0.7
        over(at)
        assert (at.folder("completed") / "metadata.json").stat().st_mtime_ns == written


async def test_the_row_of_a_task_counts_what_it_took_while_it_is_worked_and_when_it_is_over(
    tmp_path: Path,
) -> None:
    """S2C.6, S2C.7, S2C.9, S2C.20, S2C.23: the columns, the status, the numbers; and statistics by status."""
    async with desk(tmp_path, *STEPS) as at:
        await at.work()
        (row,) = rows(at.home)
        assert list(row) == [
            "uuid",
            "task_source",
            "owner",
            "repo",
            "task_type",
            "task_id",
            "status",
            "created_at",
            "started_at",
            "completed_at",
            "process_id",
            "hostname",
            "llm_provider",
            "model",
            "context_length",
            "llm_call_count",
            "tool_call_count",
            "total_tokens",
            "compression_count",
            "error_message",
            "user",
        ]
        assert (row["status"], row["llm_call_count"], row["tool_call_count"]) == ("running", 3, 2)
        assert row["total_tokens"] > 0
        assert row["completed_at"] is None
        over(at, "failed")
        (after,) = rows(at.home)
        assert after["status"] == "failed"
        assert after["completed_at"] >= after["started_at"]
        same = {name for name in row if name not in ("status", "completed_at")}
        assert {name: row[name] for name in same} == {name: after[name] for name in same}
        (told,) = rows(at.home, "statistics")
        assert (told["status"], told["tasks"], told["total_tokens"]) == ("failed", 1, row["total_tokens"])
        assert told["mean_seconds"] >= 0


async def test_the_request_to_the_model_is_there_while_it_is_asked_and_then_gone(tmp_path: Path) -> None:
    """S2C.2, S2C.15: the request is the lines of `current.jsonl`, joined."""
    slow = ({"text": "one", "calls": [write("a.txt")]}, {"text": "slow", "delay_ms": 1500})
    async with desk(tmp_path, *slow) as at:
        seen: list[Any] = []
        plain = at.files.journal.chunks

        def chunks(session: str, after_seq: int = 0) -> list[Chunk]:
            path = at.folder("running") / "request.json"
            if path.exists():
                asked = json.loads(path.read_text("utf-8"))
                seen.append((asked, at.lines("running", "current.jsonl")))
            return plain(session, after_seq)

        watching = Desk(
            at.app,
            at.home,
            at.items,
            at.intents,
            files_module.ContextFiles(at.home, at.items, at.intents, _Reads(chunks)),
        )
        await watching.work()
        assert seen, "the model was asked for a second and a half"
        assert all(asked["messages"] == current for asked, current in seen)
        assert not (at.folder("running") / "request.json").exists()


class _Reads:
    def __init__(self, chunks: Any) -> None:
        self.chunks = chunks


async def test_files_that_were_deleted_are_made_again_from_the_journal_alike(tmp_path: Path) -> None:
    """S2C.22: a missing table is made, what is missing is made again; but the system prompt, which no journal holds."""
    async with desk(tmp_path, *STEPS) as at:
        await at.work()
        over(at)
        before, table = snapshot(at.folder("completed")), rows(at.home)
        at.files.catch_up()
        assert snapshot(at.folder("completed")) == before
        (at.folder("completed") / "tools.jsonl").unlink()
        shutil.rmtree(at.folder("completed"))
        at.files.catch_up()
        after = snapshot(at.folder("completed"))
        assert after["tools.jsonl"] == before["tools.jsonl"]
        assert after["current.jsonl"] == before["current.jsonl"].split("\n", 1)[1]
        assert rows(at.home) == table
        shutil.rmtree(at.home / "contexts")
        at.files.catch_up()
        assert {row["total_tokens"] for row in rows(at.home)} == {table[0]["total_tokens"]}
        assert at.lines("completed", "tools.jsonl")


async def test_what_was_followed_step_by_step_is_what_is_made_at_once(tmp_path: Path) -> None:
    """S2C.1, S2C.22: the files hold nothing that the journal does not; a torn last line does not stay."""
    async with desk(tmp_path, *STEPS) as at:
        await at.work()
        followed = snapshot(at.folder("running"))
        with (at.folder("running") / "messages.jsonl").open("a", encoding="utf-8") as file:
            file.write('{"seq": 99, "rol')
        over(at)
        assert snapshot(at.folder("completed")) == followed


async def test_only_their_owner_can_read_them(tmp_path: Path) -> None:
    """S2R.12"""
    async with desk(tmp_path, *STEPS) as at:
        await at.work()
        over(at)
        for path in [at.home / "contexts", *(at.home / "contexts").rglob("*")]:
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


async def test_what_is_over_for_thirty_days_is_cleared_away_and_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S2C.18: `cleanup_days`; the journal keeps what was done."""
    async with desk(tmp_path, *STEPS) as at:
        await at.work()
        over(at)
        assert files_module.KEPT_DAYS == 30
        monkeypatch.setattr(files_module, "KEPT_DAYS", -1)
        at.files.catch_up()
        at.files.catch_up()
        assert not at.folder("completed").exists()
        assert rows(at.home) == []


async def test_a_paused_item_keeps_how_it_stands_beside_its_conversation(tmp_path: Path) -> None:
    """S2R.3, S2R.7: `task_state.json` is there as long as it is paused."""
    async with desk(tmp_path, *STEPS) as at:
        claim = at.claim()
        at.intents.want(claim, "progress", ShowProgress(text="- [ ] one"))
        (wanted,) = at.intents.list_open(ITEM)
        at.intents.end(claim, wanted, Outcome(reference="17"))
        await at.work(claim)
        at.files.show(at.items.change(claim, state="paused"))
        state = json.loads((at.folder("paused") / "task_state.json").read_text("utf-8"))
        assert state["task_key"]["task_id"] == "3"
        assert (state["uuid"], state["user"], state["status"]) == (at.uuid, "ann", "paused")
        assert (state["current_phase"], state["executed_action_count"]) == ("planning", 2)
        assert (state["checklist_comment_id"], state["resume_count"]) == ("17", 0)
        assert state["paused_at"].endswith("Z")
        at.items.ask(ITEM, "resume")
        claim = at.claim()
        at.files.show(at.items.change(claim, state="done"))
        assert not (at.folder("completed") / "task_state.json").exists()


async def test_files_that_cannot_be_written_stop_no_work(tmp_path: Path) -> None:
    """S2R.10: what was not saved is made later; nothing is lost."""
    async with desk(tmp_path, *STEPS) as at:
        at.home.mkdir(exist_ok=True)
        (at.home / "contexts").write_text("in the way")
        assert (await at.work()).status == "completed"
        over(at)
        (at.home / "contexts").unlink()
        at.files.refresh()
        assert len(at.lines("completed", "tools.jsonl")) == 2


async def test_a_row_that_cannot_be_written_is_tried_three_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S2C.22"""
    from daiku.domain.errors import DaikuError, Failure
    from daiku.texts.text import Text

    async with desk(tmp_path, *STEPS) as at:
        await at.work()
        table, tries = TaskTable(at.home / "contexts"), list[str]()

        class Broken:
            def write(self, sql: str, _: object) -> None:
                tries.append(sql)
                raise DaikuError(Failure(kind="internal", message=Text("full")))

        monkeypatch.setattr(table, "_db", Broken())
        (row,) = rows(at.home)
        with pytest.raises(DaikuError):
            table.upsert(row)
        assert len(tries) == 3


async def test_a_call_under_way_is_in_the_journal_and_not_yet_among_the_tools(tmp_path: Path) -> None:
    """S2C.14: a line is what came of a call."""
    async with desk(tmp_path, *STEPS) as at:
        await at.work()
        session = at.record.shown.session_id
        begun = [c for c in at.app.journal.chunks(session) if isinstance(c.event, ToolCallEvent)]
        assert len(begun) == len(at.lines("running", "tools.jsonl"))


async def test_lines_are_not_written_through_a_link(tmp_path: Path) -> None:
    """S2R.12"""
    outside, link = tmp_path / "outside", tmp_path / "tools.jsonl"
    outside.write_text("mine\n")
    link.symlink_to(outside)
    with pytest.raises(OSError, match=r"tools\.jsonl"):
        write_lines(link, [{"seq": 1}], append=True)
    write_lines(link, [{"seq": 1}])
    assert outside.read_text() == "mine\n"
    assert (link.is_symlink(), link.read_text()) == (False, '{"seq":1}\n')

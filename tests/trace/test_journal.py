"""The journal: numbers, order, privacy, two writers, forks and deletions."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.errors import DaikuError, UsageError
from daiku.domain.events import (
    ApprovalGiven,
    Delta,
    MessageEvent,
    Notice,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.messages import Usage
from daiku.domain.runs import TerminalStatus
from daiku.guard.rules.redact import Redactor
from daiku.store.lock import SessionLock
from daiku.texts.text import Text
from daiku.trace.journal import Journal
from daiku.trace.rows import _RUNNING
from daiku.trace.writer import BLOCK, SessionWriter
from tests.trace.begun import begun
from tests.trace.conftest import OpenJournal


def test_numbers_rise_by_one_and_deltas_are_shown_but_not_stored(journal: Journal) -> None:
    """R1.72, R1.73: numbers rise by one, and a reader gets what came behind the last that it saw."""
    session = begun(journal)
    writer = journal.writer(session)
    shown = writer.write("run_1", None, "coordinator", [RunStarted(prompt="x")])
    for word in ("a", "b", "c"):
        shown += writer.write("run_1", None, "coordinator", [Delta(text=word)])
    shown += writer.write(
        "run_1",
        None,
        "coordinator",
        [MessageEvent(role="assistant", text=Text("abc")), Notice(level="info", text=Text("n"))],
    )
    assert [c.seq for c in shown] == [1, 2, 3, 4, 5, 6]
    stored = journal.chunks(session)
    assert [c.seq for c in stored] == [1, 5, 6]
    assert [c.json() for c in stored] == [shown[0].json(), shown[4].json(), shown[5].json()]
    assert [c.seq for c in journal.chunks(session, after_seq=1)] == [5, 6]


def test_a_number_is_never_given_twice_also_when_the_process_dies(open_journal: OpenJournal) -> None:
    first = open_journal()
    lock = first.lock(session := first.add_session())
    seen = [
        c.seq
        for c in first.writer(session).write("r", None, "a", [Delta(text=str(i)) for i in range(BLOCK + 3)])
    ]
    again = open_journal()  # the first was never closed: its numbers are lost, not reused
    lock.release()
    again.lock(session)
    seen += [c.seq for c in again.writer(session).write("r", None, "a", [Delta(text="x")])]
    assert len(set(seen)) == len(seen)
    assert seen == sorted(seen)


def test_numbers_go_on_without_a_gap_after_a_clean_close(open_journal: OpenJournal) -> None:
    first = open_journal()
    lock = first.lock(session := first.add_session())
    first.writer(session).write("r", None, "a", [Notice(level="info", text=Text("1"))])
    lock.release()
    first.close()
    again = open_journal()
    again.lock(session)
    assert again.writer(session).write("r", None, "a", [Notice(level="info", text=Text("2"))])[0].seq == 2


def test_two_servers_share_one_database(open_journal: OpenJournal) -> None:
    one, two = open_journal(), open_journal()
    a, b = begun(one, "a"), begun(two, "b")
    for _ in range(50):
        one.writer(a).write("ra", None, "x", [Notice(level="info", text=Text("1"))])
        two.writer(b).write("rb", None, "x", [Notice(level="info", text=Text("2"))])
    assert {s.title for s in one.list_sessions()} == {"a", "b"}
    assert len(one.chunks(b)) == len(two.chunks(a)) == 50


def test_a_process_that_ends_gives_no_number_back_that_another_one_has_taken(
    open_journal: OpenJournal,
) -> None:
    one, two = open_journal(), open_journal()
    session = one.add_session("", "a")
    note = [Notice(level="info", text=Text("1"))]
    numbers: list[int] = []
    for journal in (one, two):
        lock = journal.lock(session)
        numbers += [journal.writer(session).write("r", None, "x", note)[0].seq]
        lock.release()
    one.close()
    three = open_journal()
    three.lock(session)
    numbers += [three.writer(session).write("r", None, "x", note)[0].seq for _ in range(300)]
    two.close()
    assert numbers == sorted(set(numbers))
    assert len(three.chunks(session)) == len(numbers)
    three.close()


def test_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        journal = Journal(tmp_path / "home" / "daiku.db")
        journal.lock(journal.new_session().session_id)
    finally:
        os.umask(old)
    for path in (tmp_path / "home").rglob("*"):
        wanted = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path


def test_a_secret_reaches_neither_the_file_nor_the_view(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "daiku.db", lambda text: text.replace("hunter2", "[secret]"))
    session = journal.new_session().session_id
    shown = journal.writer(session).write(
        "r", None, "a", [MessageEvent(role="user", text=Text("it is hunter2"))]
    )
    journal.note_status(session, "completed", title="it is hunter2")
    assert journal.get_session(session).title == "it is [secret]"
    assert "hunter2" not in shown[0].json()
    assert isinstance(shown[0].event, MessageEvent)
    assert shown[0].event.text == "it is [secret]"
    journal.close()
    for path in tmp_path.iterdir():
        if path.is_file():
            assert b"hunter2" not in path.read_bytes()


def test_a_token_after_a_line_end_reaches_neither_the_file_nor_the_view(tmp_path: Path) -> None:
    """JSON writes a line end as two characters: the second one is a letter before the token."""
    token = "ghp_" + "aB1" * 12
    journal = Journal(tmp_path / "daiku.db", Redactor([]))
    writer = journal.writer(journal.new_session().session_id)
    events = [MessageEvent(role="user", text=Text(f"use{sign}{token}")) for sign in "\n\t\r\x1b\0"]
    chunks = writer.write("r", None, "a", [*events, Delta(text=f"see\n{token}")])
    assert all(token not in repr(chunk) for chunk in chunks)
    journal.close()
    assert token.encode() not in (tmp_path / "daiku.db").read_bytes()


def test_only_one_process_runs_in_a_session_and_death_frees_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "daiku.db")
    session = journal.new_session().session_id
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(tmp_path / "daiku.db"), session],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    journal.note_status(session, "running")
    assert journal.get_session(session).status == "running"
    with pytest.raises(UsageError) as busy:
        journal.lock(session)
    assert busy.value.failure.kind == "busy"
    holder.kill()
    holder.communicate()
    assert journal.get_session(session).status == "interrupted"
    journal.lock(session).release()


_HOLD = """
import sys, time
from pathlib import Path
from daiku.trace.journal import Journal
lock = Journal(Path(sys.argv[1])).lock(sys.argv[2])
print("held", flush=True)
time.sleep(60)
"""


def test_a_fork_holds_the_past_up_to_a_point_under_new_ids(journal: Journal) -> None:
    session = begun(journal, "colours")
    writer = journal.writer(session)
    writer.write("run_1", None, "c", [RunStarted(prompt="x"), RunFinished(status="completed")])
    writer.write("run_2", None, "c", [RunStarted(prompt="y")])
    fork = journal.fork_session(session, 2)
    chunks = journal.chunks(fork.session_id)
    assert [c.type for c in chunks] == ["run_started", "run_finished"]
    assert {c.run for c in chunks}.isdisjoint({"run_1"})
    assert fork.title == "colours"
    assert journal.writer(fork.session_id).write("r", None, "c", [Delta(text="x")])[0].seq == 3


def test_sessions_are_found_by_what_was_said(journal: Journal) -> None:
    one = begun(journal, "first")
    journal.new_session("second")
    journal.writer(one).write("r", None, "c", [RunStarted(prompt="rename 50% of the colours")])
    assert [s.title for s in journal.list_sessions("50% of")] == ["first"]
    assert [s.title for s in journal.list_sessions("SECOND")] == ["second"]
    assert journal.list_sessions("%nothing_like_it%") == []


def test_what_is_deleted_is_gone_and_unknown_names_are_told(journal: Journal) -> None:
    lock = journal.lock(session := journal.add_session())
    journal.writer(session).write("r", None, "c", [Notice(level="info", text=Text("x"))])
    lock.release()
    journal.delete_session(session)
    with pytest.raises(UsageError, match="no session"):
        journal.chunks(session)
    with pytest.raises(UsageError, match="no run"):
        journal.session_of_run("r")


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "daiku.db"
    path.write_bytes(b"not a database " * 1000)
    with pytest.raises(UsageError, match=r"daiku\.db cannot be used") as raised:
        Journal(path)
    assert "Move it away" in raised.value.failure.hint
    assert path.read_bytes().startswith(b"not a database")


def test_a_place_where_no_database_can_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be used"):
        Journal(tmp_path / "file" / "daiku.db")


def filled(path: Path) -> str:
    """A journal of some size at `path`; its session."""
    journal = Journal(path)
    session = journal.new_session("old").session_id
    writer = journal.writer(session)
    writer.write("run_1", None, "c", [RunStarted(prompt="x")])
    for _ in range(60):
        writer.write("run_1", None, "c", [Notice(level="info", text=Text("y" * 3000))])
    journal.lock(session).release()
    journal.close()
    return session


def test_a_database_that_was_emptied_is_told_and_not_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "daiku.db"
    path.touch()
    Journal(path).close()  # nothing was ever kept here: a start that was cut short
    path.unlink()
    filled(path)
    path.write_bytes(b"")
    with pytest.raises(UsageError, match="is empty, although") as raised:
        Journal(path)
    assert "Bring back a copy" in raised.value.failure.hint
    assert path.read_bytes() == b""
    path.unlink()
    assert Journal(path).list_sessions() == []


PLAIN = (
    "is damaged",
    "it is damaged",
    "cannot be read or written",
    "cannot be used",
    "is in use",
    "the disk is full",
)


@pytest.mark.parametrize("page", range(0, 24, 1))
@pytest.mark.parametrize("damage", ["zero", "noise", "cut"])
def test_a_damaged_page_is_told_in_plain_words_wherever_it_is_met(
    tmp_path: Path, page: int, damage: str
) -> None:
    path = tmp_path / "daiku.db"
    session = filled(path)
    data = bytearray(path.read_bytes())
    at = page * 4096
    if damage == "cut":
        del data[at + 100 :]
    else:
        data[at : at + 4096] = bytes(4096) if damage == "zero" else bytes(range(256)) * 16
    path.write_bytes(bytes(data))
    failure = None
    try:
        used(path, session)
    except DaikuError as wrong:  # many damages hit nothing that is asked for
        failure = wrong.failure
    if failure is not None and failure.kind != "not_found":  # the page held it, and SQLite does not miss it
        assert any(words in failure.message for words in PLAIN)
        assert failure.hint


def used(path: Path, session: str) -> None:
    """Everything that the journal is asked for. Raises DaikuError."""
    journal = Journal(path)
    journal.list_sessions("y")
    journal.chunks(session)
    journal.session_of_run("run_1")
    journal.note_status(session, "completed")
    journal.writer(session).write("run_2", None, "c", [RunStarted(prompt="z")] * 40)
    journal.fork_session(session, 40)
    journal.delete_session(session)


def test_a_file_that_another_program_holds_is_told(tmp_path: Path) -> None:
    path = tmp_path / "daiku.db"
    session = filled(path)
    journal = Journal(path)
    journal._db.write("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(DaikuError, match="in use by another program"):
        journal.note_status(session, "running")
    other.execute("ROLLBACK")
    journal.note_status(session, "running")


def test_what_is_about_to_be_done_is_on_the_disk_before_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `synchronous` stood whenever a chunk was stored: 2 is FULL, which a power cut does not take back."""
    journal = Journal(tmp_path / "daiku.db")
    writer = journal.writer(journal.new_session().session_id)
    stood: dict[str, int] = {}
    store = SessionWriter._store

    def watched(self: SessionWriter, rows: list[Any]) -> None:
        stood[rows[0][6]] = journal._db.first("PRAGMA synchronous")[0]
        store(self, rows)

    monkeypatch.setattr(SessionWriter, "_store", watched)
    for event in (
        RunStarted(prompt="x"),
        Notice(level="info", text=Text("x")),
        ToolCallEvent(id="c", tool="shell/run", args={}),
        ApprovalGiven(approval_id="a", decision="allow_once"),
        RunFinished(status="completed"),
    ):
        writer.write("run_1", None, "c", [event], durable=isinstance(event, ToolCallEvent))
    assert stood == {"run_started": 1, "notice": 1, "tool_call": 2, "approval_given": 2, "run_finished": 1}
    assert journal._db.first("PRAGMA synchronous")[0] == 1


@pytest.mark.parametrize("status", ["completed", "failed", "limit", "cancelled"])
def test_a_fork_at_the_last_answer_has_ended_as_the_run_did(journal: Journal, status: TerminalStatus) -> None:
    session = begun(journal)
    writer = journal.writer(session)
    writer.write(
        "r", None, "c", [RunStarted(prompt="x"), MessageEvent(role="assistant", text=Text("Half of it."))]
    )
    nested = [RunStarted(prompt="n"), RunFinished(status="completed")]
    writer.write("n", "r", "c", nested)
    middle = writer.last_seq
    writer.write("r", None, "c", [MessageEvent(role="assistant", text=Text("All of it."))])
    answer = writer.last_seq
    writer.write("r", None, "c", [Usage(), Notice(level="info", text=Text("By the way."))])
    writer.write("r", None, "c", [RunFinished(status=status)])
    writer.write("s", None, "c", [RunStarted(prompt="y")])
    for place in range(answer, answer + 4):
        fork = journal.fork_session(session, place)
        assert fork.status == status
        assert journal.chunks(fork.session_id)[-1].type == "run_finished"
    assert journal.fork_session(session, middle).status == "interrupted"
    assert journal.fork_session(session, answer + 4).status == "interrupted"


def test_what_cannot_be_stored_is_told_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "daiku.db")
    session = journal.new_session().session_id
    writer = journal.writer(session)
    writer.write("run_1", None, "coordinator", [RunStarted(prompt="x")])
    pages = journal._db.first("PRAGMA page_count")[0]  # a full disk, without one
    journal._db.write(f"PRAGMA max_page_count = {pages}")
    said = MessageEvent(role="assistant", text=Text("y" * 100_000))
    with pytest.raises(DaikuError, match="cannot be recorded"):
        writer.write("run_1", None, "coordinator", [said, said])
    journal._db.write("PRAGMA max_page_count = 100000")
    writer.write("run_1", None, "coordinator", [said, said])
    assert [c.type for c in journal.chunks(session)] == ["run_started", "message", "message"]


def test_a_name_that_is_no_text_can_be_recorded(journal: Journal) -> None:
    session = begun(journal)
    answer = ToolResponse(
        id="c", tool="files/list", ok=True, result="a\udcff.txt", data={"\udcfe": ["日\ud800本"]}
    )
    journal.writer(session).write("run_1", None, "coordinator", [answer])
    (chunk,) = journal.chunks(session)
    assert isinstance(chunk.event, ToolResponse)
    assert chunk.event.result == "a\ufffd.txt"
    assert chunk.event.data == {"\ufffd": ["日\ufffd本"]}


def test_a_run_under_way_is_found_behind_many_that_were_killed(journal: Journal) -> None:
    lock = journal.lock(oldest := journal.add_session("/p", "the one"))
    journal.note_status(oldest, "waiting")
    for number in range(40):
        journal.note_status(journal.add_session("/p", f"killed {number}"), "running")
    journal.note_status(journal.add_session("/p", "over"), "completed")
    assert journal.running_titles("/p", excluding="", most=4) == ["the one"]
    lock.release()
    assert journal.running_titles("/p", excluding="", most=4) == []


def test_runs_under_way_are_found_by_an_index_that_holds_nothing_else(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "daiku.db")
    plan = journal._db.query(f"EXPLAIN QUERY PLAN {_RUNNING}", ("/p", 4, 0))
    assert ["sessions_under_way" in row[3] for row in plan] == [True]


def test_the_last_number_is_known_without_reading_a_session(journal: Journal) -> None:
    session = begun(journal)
    assert journal.last_seq(session) == 0
    journal.writer(session).write("r", None, "c", [RunStarted(prompt="x"), Delta(text="y")])
    assert journal.last_seq(session) == journal.get_session(session).last_seq == 1
    for asked in (journal.last_seq, journal.chunks, journal.folder_of):
        with pytest.raises(UsageError, match="ses_none"):
            asked("ses_none")


@pytest.mark.parametrize(("elsewhere", "looks"), [(True, 3), (False, 0)])
def test_of_a_hundred_runs_under_way_beside_one_as_many_are_looked_at_as_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool, looks: int
) -> None:
    """Those of this process are known without a look."""
    tried = list[Path]()
    is_free = SessionLock.is_free
    journal, other = Journal(tmp_path / "daiku.db"), Journal(tmp_path / "daiku.db")
    sessions = [journal.add_session("/p", f"run {number}") for number in range(100)]
    locks = [(other if elsewhere else journal).lock(session) for session in sessions]
    for session in sessions:
        journal.note_status(session, "running")

    def counted(self: SessionLock) -> bool:
        tried.append(self._path)
        return is_free(self)

    monkeypatch.setattr(SessionLock, "is_free", counted)
    assert len(journal.running_titles("/p", excluding=sessions[-1], most=3)) == 3
    assert len(tried) == looks
    for lock in locks:
        lock.release()
    assert journal.running_titles("/p", excluding=sessions[-1], most=3) == []
    journal.close()
    other.close()

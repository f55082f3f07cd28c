"""TraceLogger: lines as they happen, in order, off the loop; whole after a crash; never in the way."""

from __future__ import annotations

import json
import logging
import os
import stat
import time
from multiprocessing import get_context
from pathlib import Path
from threading import Event, Thread

import pytest

from daiku.domain.chunks import Chunk
from daiku.trace.rules.lines import as_jsonl
from daiku.trace.telemetry.logger import MOST_WAITING, TraceFiles, TraceLogger
from tests.core.traces.test_spans import WHOLE
from tests.trace.telemetry.collectors import dead_address, http_collector


def other(chunk: Chunk, session: str) -> Chunk:
    return chunk._replace(session=session)


def test_a_line_is_on_the_disk_before_the_run_ends(tmp_path: Path) -> None:
    """R1.77, R1.56: one event per line, as it happens."""
    written = tmp_path / "ses.jsonl"
    with TraceLogger(tmp_path) as trace:
        for number, chunk in enumerate(WHOLE, start=1):
            trace(chunk)
            assert trace.flush()
            assert written.read_text(encoding="utf-8") == as_jsonl(WHOLE[:number])
    assert [json.loads(line)["event"] for line in written.read_text().splitlines()] == [
        *("agent_start", "tool_start", "handoff_start", "agent_start", "agent_end"),
        *("handoff_end", "tool_end", "agent_end"),
    ]


def test_what_comes_together_is_written_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred runs at once do not wake the thread for each of their chunks."""
    writes = list[str]()
    add = TraceFiles.add

    def counted(self: TraceFiles, session: str, lines: str) -> None:
        writes.append(session)
        add(self, session, lines)

    monkeypatch.setattr(TraceFiles, "add", counted)
    monkeypatch.setattr("daiku.trace.telemetry.logger.GATHER_SECONDS", 10)
    with TraceLogger(tmp_path) as trace:
        for chunk in WHOLE:
            trace(chunk)
    assert writes == ["ses"]
    assert (tmp_path / "ses.jsonl").read_text(encoding="utf-8") == as_jsonl(WHOLE)


def test_a_path_that_ends_in_jsonl_takes_all_sessions(tmp_path: Path) -> None:
    with TraceLogger(tmp_path / "new" / "all.jsonl") as trace:
        for chunk in WHOLE:
            trace(chunk)
            trace(other(chunk, "ses_2"))
    lines = (tmp_path / "new" / "all.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["session"] for line in lines} == {"ses", "ses_2"}
    assert len(lines) == 16


def test_the_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with TraceLogger(tmp_path / "traces") as trace:
            trace(WHOLE[0])
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "traces" / "ses.jsonl").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "traces").stat().st_mode) == 0o700


def test_a_session_that_is_gone_on_with_has_its_whole_trace_again(tmp_path: Path) -> None:
    """The process before was killed: lines are missing, the last one is half."""
    file = tmp_path / "ses.jsonl"
    for cut in range(1, len(WHOLE)):
        file.write_text(as_jsonl(WHOLE[: cut // 2]) + '{"event":"ag', encoding="utf-8")
        with TraceLogger(tmp_path) as trace:
            trace.resume("a", WHOLE[:cut])
            for chunk in WHOLE[cut:]:
                trace(chunk)
        assert file.read_text(encoding="utf-8") == as_jsonl(WHOLE)


def test_half_a_line_stays_a_line_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "ses.jsonl").write_text('{"event":"ag', encoding="utf-8")
    with TraceLogger(tmp_path) as trace:
        trace(WHOLE[0])
    assert (tmp_path / "ses.jsonl").read_text(encoding="utf-8") == '{"event":"ag\n' + as_jsonl(WHOLE[:1])


def test_a_full_disk_takes_nothing_away_but_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write, room = os.write, [150]

    def full(handle: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(28, "No space left on device")
        written = write(handle, data[: room[0]])
        room[0] -= written
        return written

    monkeypatch.setattr(os, "write", full)
    with caplog.at_level(logging.WARNING), TraceLogger(tmp_path) as trace:
        trace(WHOLE[0])
        trace.flush()
        assert (tmp_path / "ses.jsonl").read_bytes() == b""  # no half lines
        room[0] = 10_000
        for chunk in WHOLE[1:]:
            trace(chunk)
    assert (tmp_path / "ses.jsonl").read_text() == "".join(as_jsonl(WHOLE).splitlines(keepends=True)[1:])
    assert trace.missed == 1
    assert len([r for r in caplog.records if "was not written" in r.getMessage()]) == 1


def test_a_folder_that_cannot_be_written_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "traces").write_text("a file where the folder should be")
    with caplog.at_level(logging.WARNING), TraceLogger(tmp_path / "traces") as trace:
        for chunk in WHOLE:
            trace(chunk)
    assert trace.missed == 8
    assert len(caplog.records) == 2


def test_what_waits_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = TraceLogger(tmp_path)
    monkeypatch.setattr(trace, "_enqueue", trace._queue.put)  # nothing is taken out
    for _ in range(MOST_WAITING + 5):
        trace(WHOLE[0])
    assert trace.missed == 5


def test_taking_a_chunk_never_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C1.3, R1.77: the disk takes 0.3 s a write; whoever logs does not notice."""
    write = os.write

    def slow(handle: int, data: bytes) -> int:
        time.sleep(0.3)
        return write(handle, data)

    monkeypatch.setattr(os, "write", slow)
    trace = TraceLogger(tmp_path)
    began = time.perf_counter()
    for chunk in WHOLE:
        trace(chunk)
    assert time.perf_counter() - began < 0.2
    trace.close()
    assert (tmp_path / "ses.jsonl").read_text() == as_jsonl(WHOLE)


def test_a_line_is_complete_while_another_writer_is_in_the_middle_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R1.56"""
    write, half, second = os.write, Event(), Event()
    files = TraceFiles(tmp_path / "all.jsonl")

    def slow(handle: int, data: bytes) -> int:
        if half.is_set():
            return write(handle, data)
        written = write(handle, data[:9])
        half.set()
        second.wait(0.2)  # without a lock the second writer ends within this time
        return written

    def add_second() -> None:
        half.wait()
        files.add("b", '{"session":"b"}\n')
        second.set()

    monkeypatch.setattr(os, "write", slow)
    thread = Thread(target=add_second)
    thread.start()
    files.add("a", '{"session":"a"}\n')
    thread.join()
    assert files.path.read_text() == '{"session":"a"}\n{"session":"b"}\n'


def test_lines_are_written_where_files_cannot_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R1.56"""

    def refuse(handle: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("daiku.trace.telemetry.logger.take_lock", refuse)
    TraceFiles(tmp_path).add("a", "{}\n")
    assert (tmp_path / "a.jsonl").read_text() == "{}\n"


def _append(path: Path, name: str) -> None:
    with TraceLogger(path) as trace:
        for _ in range(40):
            for chunk in WHOLE:
                trace(chunk._replace(agent=name))
            trace.flush()


def test_processes_that_share_a_file_lose_no_line(tmp_path: Path) -> None:
    started = [get_context("spawn").Process(target=_append, args=(tmp_path / "all.jsonl", n)) for n in "xyz"]
    for process in started:
        process.start()
    for process in started:
        process.join(60)
    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    for name in "xyz":
        assert [line["event"] for line in lines if line["agent"] == name] == [
            json.loads(line)["event"] for line in as_jsonl(WHOLE).splitlines()
        ] * 40


def test_a_forgotten_session_is_gone_also_where_lines_still_wait(tmp_path: Path) -> None:
    with TraceLogger(tmp_path) as trace:
        trace(WHOLE[0])
        trace.forget("ses")
        trace.forget("unknown")
    assert not (tmp_path / "ses.jsonl").exists()
    TraceFiles(tmp_path).forget("ses")


def test_a_logger_sends_the_same_run_to_a_collector(tmp_path: Path) -> None:
    """R1.15, R1.78: JSON Lines and OTLP from the one stream."""
    with http_collector() as collected:
        with TraceLogger(tmp_path, otlp_endpoint=collected.address) as trace:
            for chunk in WHOLE:
                trace(chunk)
        assert len(collected.spans) == 6
        assert b"I ask b." not in b"".join(span.SerializeToString() for span in collected.spans)
        with TraceLogger(otlp_endpoint=collected.address, content=True) as trace:
            for chunk in WHOLE:
                trace(chunk)
        assert b"I ask b." in b"".join(span.SerializeToString() for span in collected.spans)


def test_a_run_that_another_process_goes_on_with_is_one_trace(tmp_path: Path) -> None:
    with http_collector() as collected:
        with TraceLogger(otlp_endpoint=collected.address) as trace:
            for chunk in WHOLE[:8]:
                trace(chunk)
        with TraceLogger(otlp_endpoint=collected.address) as trace:
            trace.resume("a", WHOLE[:8])
            for chunk in WHOLE[8:]:
                trace(chunk)
        spans = collected.wait(6)
    assert len({span.trace_id for span in spans}) == 1
    assert sum(not span.parent_span_id for span in spans) == 1
    assert {span.parent_span_id for span in spans if span.parent_span_id} <= {span.span_id for span in spans}


def test_a_wrong_endpoint_is_a_value_error_that_names_it() -> None:
    with pytest.raises(ValueError, match="otlp_endpoint: 'x' is no address"):
        TraceLogger(otlp_endpoint="x")


def test_a_dead_collector_leaves_files_as_they_are(tmp_path: Path) -> None:
    with TraceLogger(tmp_path, otlp_endpoint=dead_address()) as trace:
        for chunk in WHOLE:
            trace(chunk)
    assert (tmp_path / "ses.jsonl").read_text() == as_jsonl(WHOLE)

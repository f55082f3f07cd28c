"""Logs go to one private file, without secrets, and yesterday's is compressed."""

from __future__ import annotations

import gzip
import logging
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from daiku.logs import DailyFile, start_logging


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    root = logging.getLogger()
    before, level, raising = list(root.handlers), root.level, logging.raiseExceptions
    yield
    for handler in [h for h in root.handlers if h not in before]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)
    logging.raiseExceptions = raising


def started(folder: Path) -> Path:
    (folder / "logs").mkdir(exist_ok=True)
    return start_logging(folder, lambda text: text.replace("sk-secret", "[redacted]"))


def test_a_record_is_in_the_file_and_nowhere_else(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """R2.8, R2.9"""
    path = started(tmp_path)
    logging.getLogger("daiku.x").info("hello")
    assert "INFO daiku.x: hello" in path.read_text(encoding="utf-8")
    assert capfd.readouterr() == ("", "")


def test_the_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = started(tmp_path)
        logging.getLogger("daiku").info("x")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_secrets_are_taken_out_of_messages_and_tracebacks(tmp_path: Path) -> None:
    path = started(tmp_path)
    try:
        int("sk-secret in the error")
    except ValueError:
        logging.getLogger("daiku").exception("with %s", "sk-secret")
    text = path.read_text(encoding="utf-8")
    assert "Traceback" in text
    assert "sk-secret" not in text


def test_what_strangers_wrote_steers_no_terminal_and_begins_no_line_of_ours(tmp_path: Path) -> None:
    path = started(tmp_path)
    forged = "2026-01-01 00:00:00,000 INFO daiku: owned"
    logging.getLogger("daiku").warning("named %s", f"\x1b[2J\x9b31m\u202e\r\n{forged}\ttab")
    said = path.read_text(encoding="utf-8")
    assert "named \\x1b[2J\\x9b31m\\x202e\\x0d\n    2026" in said
    assert [line for line in said.splitlines() if line.startswith(forged)] == []


DAY = 86_400


def written(handler: DailyFile, *texts: str) -> None:
    for text in texts:
        handler.emit(logging.LogRecord("daiku", logging.INFO, "", 0, text, (), None))


def of_day(path: Path, day: float) -> None:
    """As if the file was last written on that day."""
    os.utime(path, (day, day))


def lines(folder: Path) -> list[str]:
    packed = [gzip.decompress(file.read_bytes()).decode() for file in sorted(folder.glob("*.gz"))]
    plain = folder / "daiku.log"
    return "".join([*packed, plain.read_text() if plain.exists() else ""]).splitlines()


def test_yesterdays_file_is_compressed_and_private(tmp_path: Path) -> None:
    now = [1_800_000_000.0]
    path = tmp_path / "daiku.log"
    handler = DailyFile(path, lambda: now[0])
    written(handler, "old")
    of_day(path, now[0])
    now[0] += DAY
    written(handler, "new")
    (packed,) = tmp_path.glob("*.gz")
    assert packed.name == "daiku.log.2027-01-15.gz"
    assert gzip.decompress(packed.read_bytes()).decode() == "old\n"
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
    assert path.read_text() == "new\n"


def test_a_day_that_was_archived_before_is_added_to(tmp_path: Path) -> None:
    """R2.10"""
    now = [1_800_000_000.0]
    path = tmp_path / "daiku.log"
    handler = DailyFile(path, lambda: now[0] + DAY)
    for text in ("first", "second"):
        path.write_text(f"{text}\n")
        of_day(path, now[0])
        written(handler, "today")
        path.unlink()
    assert lines(tmp_path) == ["first", "second"]


def test_archives_older_than_two_weeks_go(tmp_path: Path) -> None:
    now = 1_800_000_000.0
    path = tmp_path / "daiku.log"
    for days in (1, 14, 15, 40):
        name = f"daiku.log.{datetime.fromtimestamp(now - days * DAY, UTC).date()}.gz"
        (tmp_path / name).write_bytes(gzip.compress(b"x\n"))
    path.write_text("yesterday\n")
    of_day(path, now - DAY)
    written(DailyFile(path, lambda: now), "today")
    assert len(list(tmp_path.glob("*.gz"))) == 2


def test_days_that_turn_keep_the_last_two_weeks(tmp_path: Path) -> None:
    now = [1_800_000_000.0]
    handler = DailyFile(tmp_path / "daiku.log", lambda: now[0])
    for day in range(30):
        written(handler, f"day {day}")
        now[0] += DAY
    assert lines(tmp_path) == [f"day {day}" for day in range(15, 30)]


def test_a_day_that_cannot_be_packed_loses_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_800_000_000.0]
    handler = DailyFile(tmp_path / "daiku.log", lambda: now[0])
    written(handler, "first")
    now[0] += DAY

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("daiku.logs.shutil.copyfileobj", full)
        written(handler, "second")
    now[0] += DAY
    written(handler, "third")
    assert lines(tmp_path) == ["first", "second", "third"]


def test_what_a_killed_process_left_half_packed_is_packed_anew(tmp_path: Path) -> None:
    path = tmp_path / "daiku.log"
    now = [1_800_000_000.0]
    handler = DailyFile(path, lambda: now[0])
    written(handler, "first")
    (tmp_path / "daiku.log.2027-01-15.part").write_bytes(gzip.compress(b"first\n" * 9)[:12])
    now[0] += DAY
    written(handler, "second")
    assert lines(tmp_path) == ["first", "second"]
    assert not list(tmp_path.glob("*.part"))


ROTATIONS = 10
WRITER = """
import logging, sys
from pathlib import Path
from daiku.logs import DailyFile
home, name, turns = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
clock = home / "clock"  # as many days have passed as it has bytes
day = lambda: clock.stat().st_size
handler = DailyFile(home / "daiku.log", lambda: 1_800_000_000.0 + 86_400 * day())
def write(text):
    handler.emit(logging.LogRecord("x", logging.INFO, "", 0, f"{name} {text}", (), None))
(home / name).write_text("0")
print("ready", flush=True)
sys.stdin.readline()
n = 0
while day() < turns:
    write(n)
    n += 1
    (home / name).write_text(str(n))
    if name == "p0" and n % 20 == 0:
        while min(int((home / other).read_text() or 0) for other in ("p1", "p2")) < n:
            pass  # every day has lines of all of them
        with clock.open("ab") as file:
            file.write(b".")
write(n)
print(n + 1, flush=True)
"""


@pytest.mark.slow  # processes of their own
def test_ten_rotations_with_three_processes_lose_no_line(tmp_path: Path) -> None:
    """R2.10, R2.11: each line is there once, and those of the process that turns the day in the file of their day."""
    (tmp_path / "clock").touch()
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), f"p{n}", str(ROTATIONS)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(3)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    counts = [int(writer.communicate(timeout=60)[0]) for writer in writers]
    assert min(counts) > ROTATIONS, "all of them write while the days turn"
    wanted = [f"p{n} {line}" for n, count in enumerate(counts) for line in range(count)]
    assert sorted(lines(tmp_path)) == sorted(wanted)
    archives = sorted(tmp_path.glob("*.gz"))
    assert len(archives) == ROTATIONS
    for day, archive in enumerate(archives):
        mine = [
            line
            for line in gzip.decompress(archive.read_bytes()).decode().splitlines()
            if line.startswith("p0 ")
        ]
        assert mine == [f"p0 {line}" for line in range(day * 20, day * 20 + 20)]


def test_starting_twice_writes_each_record_once(tmp_path: Path) -> None:
    started(tmp_path)
    path = started(tmp_path)
    logging.getLogger("daiku").info("once")
    assert path.read_text().count("once") == 1

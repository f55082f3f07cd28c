"""Logs go to one private file, without secrets, and yesterday's is compressed."""

from __future__ import annotations

import gzip
import logging
import os
import stat
import subprocess
import sys
import time
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


WRITER = """
import logging, sys, time
from pathlib import Path
from daiku.logs import DailyFile
path, name, late = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
now = [time.time()]
handler = DailyFile(path, lambda: now[0])
for n in range(200):
    now[0] += late * (n == 100)
    handler.emit(logging.LogRecord("x", logging.INFO, "", 0, f"{name} {n}", (), None))
"""


@pytest.mark.slow  # processes of their own
def test_no_line_is_lost_when_several_processes_write_over_midnight(tmp_path: Path) -> None:
    path = tmp_path / "daiku.log"
    path.write_text("before\n")
    of_day(path, time.time() - DAY)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), f"p{n}", str(DAY)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        for n in range(4)
    ]
    assert [process.wait(60) for process in started] == [0] * 4
    wanted = {f"p{n} {i}" for n in range(4) for i in range(200)} | {"before"}
    assert sorted(lines(tmp_path)) == sorted(wanted)


def test_starting_twice_writes_each_record_once(tmp_path: Path) -> None:
    started(tmp_path)
    path = started(tmp_path)
    logging.getLogger("daiku").info("once")
    assert path.read_text().count("once") == 1

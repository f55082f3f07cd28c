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
from pathlib import Path

import pytest

from daiku.logs import start_logging


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


def test_yesterdays_file_is_compressed_and_private(tmp_path: Path) -> None:
    path = started(tmp_path)
    logging.getLogger("daiku").info("old")
    handler = next(h for h in logging.getLogger().handlers if getattr(h, "baseFilename", "") == str(path))
    handler.doRollover()  # type: ignore[attr-defined]  # the rotating handler's own method
    logging.getLogger("daiku").info("new")
    (packed,) = path.parent.glob("*.gz")
    assert "old" in gzip.decompress(packed.read_bytes()).decode()
    assert stat.S_IMODE(packed.stat().st_mode) == 0o600
    assert "old" not in path.read_text()


def test_starting_twice_writes_each_record_once(tmp_path: Path) -> None:
    started(tmp_path)
    path = started(tmp_path)
    logging.getLogger("daiku").info("once")
    assert path.read_text().count("once") == 1


WRITER = """
import logging, sys, time
from pathlib import Path
from daiku.logs import start_logging
home, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
path = start_logging(home, str)
handler = next(h for h in logging.getLogger().handlers if getattr(h, "baseFilename", "") == str(path))
log = logging.getLogger("daiku")
print("ready", flush=True)
sys.stdin.readline()
for number in range(count):
    log.info("%s-%d.", name, number)
print("written", flush=True)
midnight = float(sys.stdin.readline())
if "forced" in sys.argv:
    handler.doRollover()
else:
    handler.rolloverAt = midnight
for number in range(count, 2 * count):
    log.info("%s-%d.", name, number)
"""


def lines_of(folder: Path) -> list[str]:
    """The marks of all lines, of every file."""
    texts = [p.read_text(encoding="utf-8") for p in folder.glob("daiku.log") if p.exists()]
    texts += [gzip.decompress(p.read_bytes()).decode() for p in sorted(folder.glob("*.gz"))]
    return [line.rsplit(" ", 1)[-1].rstrip(".") for text in texts for line in text.splitlines()]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be renamed there")
@pytest.mark.parametrize("forced", ["", "forced"])
@pytest.mark.parametrize("processes", [2, 5])
def test_no_line_is_lost_or_doubled_at_midnight_whoever_writes(
    tmp_path: Path, processes: int, forced: str
) -> None:
    (tmp_path / "logs").mkdir()
    count = 100
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), f"p{n}", str(count), forced],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for n in range(processes)
    ]
    for said in ("ready", "written"):
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdin is not None
            assert writer.stdout.readline().strip() == said
        midnight = time.time()  # after every line of "yesterday", before every one of "today"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write(f"{midnight}\n")
            writer.stdin.flush()
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    found = lines_of(tmp_path / "logs")
    assert sorted(found) == sorted(f"p{n}-{number}" for n in range(processes) for number in range(2 * count))
    assert list((tmp_path / "logs").glob("*.gz"))


def test_a_process_that_ended_while_it_compressed_loses_nothing(tmp_path: Path) -> None:
    path = started(tmp_path)
    logging.getLogger("daiku").info("first")
    handler = next(h for h in logging.getLogger().handlers if getattr(h, "baseFilename", "") == str(path))
    handler.doRollover()  # type: ignore[attr-defined]  # the rotating handler's own method
    (packed,) = path.parent.glob("*.gz")
    packed.with_suffix("").write_text("left behind\n")
    packed.with_name(packed.stem + ".part").write_bytes(b"half")
    logging.getLogger("daiku").info("second")
    handler.doRollover()  # type: ignore[attr-defined]  # the rotating handler's own method
    text = gzip.decompress(packed.read_bytes()).decode()
    assert [word for word in ("first", "left behind", "second") if word in text] == [
        "first",
        "left behind",
        "second",
    ]
    assert sorted(p.name for p in path.parent.iterdir()) == [packed.name, "daiku.log.lock"] or path.exists()

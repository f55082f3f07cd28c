"""Logs go to one private file, without secrets, and yesterday's is compressed."""

from __future__ import annotations

import gzip
import logging
import os
import stat
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

"""Locks of sessions: who only asks whether one is free changes nothing for others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from daiku.store import lock
from daiku.store.lock import SessionLock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "locks" / "ses_1.lock"


def test_a_lock_is_free_until_it_is_taken_and_after_it_is_released(path: Path) -> None:
    ours, other = SessionLock(path), SessionLock(path)
    assert other.is_free()
    assert not path.exists()
    assert ours.acquire()
    assert (other.is_free(), other.acquire()) == (False, False)
    ours.release()
    assert (other.is_free(), other.acquire()) == (True, True)
    other.release()


# Windows has no shared locks.
@pytest.mark.skipif(sys.platform == "win32", reason="no shared locks on Windows")
def test_who_asks_at_the_same_moment_sees_the_lock_free_too(path: Path) -> None:
    """A23.D: A server that has just started asks from two threads for the session of a killed one."""
    import fcntl

    ours = SessionLock(path)
    assert ours.acquire()
    ours.release()
    with path.open("r+") as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        assert SessionLock(path).is_free()


@pytest.mark.skipif(sys.platform == "win32", reason="no shared locks on Windows")
def test_a_lock_is_taken_once_who_only_asked_has_done_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A23.D"""
    import fcntl

    path.parent.mkdir()
    ours, asking, pauses = SessionLock(path), path.open("w"), list[float]()

    def stop_asking(pause: float) -> None:
        pauses.append(pause)
        asking.close()

    monkeypatch.setattr(lock, "sleep", stop_asking)
    fcntl.flock(asking, fcntl.LOCK_SH)
    assert ours.acquire()
    assert len(pauses) == 1
    ours.release()


def test_a_lock_that_stays_taken_is_refused_after_some_milliseconds(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, other, pauses = SessionLock(path), SessionLock(path), list[float]()
    monkeypatch.setattr(lock, "sleep", pauses.append)
    assert ours.acquire()
    assert not other.acquire()
    assert 0 < sum(pauses) < 0.02
    ours.release()

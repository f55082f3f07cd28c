"""What "always" was answered survives, is kept per workspace, and can be taken back."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from daiku.trace.grants import GrantStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "daiku.db"


def test_an_answer_is_remembered_per_workspace_and_across_restarts(path: Path) -> None:
    GrantStore(path).remember("/a", "command:npm test", "allow")
    again = GrantStore(path)
    assert again.lookup("/a", "command:npm test") == "allow"
    assert again.lookup("/b", "command:npm test") is None
    assert again.lookup("/a", "command:npm") is None


def test_a_later_answer_replaces_an_earlier_one(path: Path) -> None:
    grants = GrantStore(path)
    grants.remember("/a", "edit", "allow")
    grants.remember("/a", "edit", "reject")
    assert grants.lookup("/a", "edit") == "reject"
    assert grants.all("/a") == (("edit", "reject"),)


def test_a_revoked_answer_is_asked_for_again(path: Path) -> None:
    grants = GrantStore(path)
    grants.remember("/a", "edit", "allow")
    grants.revoke("/a", "edit")
    grants.revoke("/a", "never there")
    assert grants.lookup("/a", "edit") is None
    assert grants.all("/a") == ()


def test_two_servers_share_one_file(path: Path) -> None:
    one, two = GrantStore(path), GrantStore(path)
    one.remember("/a", "x", "allow")
    two.remember("/a", "y", "reject")
    assert one.all("/a") == two.all("/a") == (("x", "allow"), ("y", "reject"))


def test_state_is_only_for_its_owner_whatever_the_umask(path: Path) -> None:
    old = os.umask(0)
    try:
        GrantStore(path).remember("/a", "x", "allow")
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

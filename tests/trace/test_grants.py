"""What "always" was answered survives, is kept per workspace, and can be taken back."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from daiku.trace.grants import GrantStore
from tests.trace.conftest import OpenStores


def test_an_answer_is_remembered_per_workspace_and_across_restarts(open_all: OpenStores) -> None:
    open_all().grants.remember("/a", "command:npm test", "allow")
    again = open_all().grants
    assert again.lookup("/a", "command:npm test") == "allow"
    assert again.lookup("/b", "command:npm test") is None
    assert again.lookup("/a", "command:npm") is None


def test_a_later_answer_replaces_an_earlier_one(open_all: OpenStores) -> None:
    grants = open_all().grants
    grants.remember("/a", "edit", "allow")
    grants.remember("/a", "edit", "reject")
    assert grants.lookup("/a", "edit") == "reject"
    assert grants.all("/a") == (("edit", "reject"),)


def test_a_revoked_answer_is_asked_for_again(open_all: OpenStores) -> None:
    grants = open_all().grants
    grants.remember("/a", "edit", "allow")
    grants.revoke("/a", "edit")
    grants.revoke("/a", "never there")
    assert grants.lookup("/a", "edit") is None
    assert grants.all("/a") == ()


def test_two_servers_share_one_database(open_all: OpenStores) -> None:
    one, two = open_all().grants, open_all().grants
    one.remember("/a", "x", "allow")
    two.remember("/a", "y", "reject")
    assert one.all("/a") == two.all("/a") == (("x", "allow"), ("y", "reject"))


def test_state_is_only_for_its_owner_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "state" / "daiku.db"
    old = os.umask(0)
    try:
        GrantStore(path).remember("/a", "x", "allow")
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

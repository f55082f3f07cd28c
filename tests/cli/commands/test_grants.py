"""`daiku grants`: what was answered with "always" in a folder, and taking it back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daiku.domain.servers import Consent
from daiku.trace.grants import ConsentStore, GrantStore
from tests.cli.conftest import Daiku

DATABASE = "daiku.db"


@pytest.fixture
def kept(workspace: Path, daiku_home: Path, monkeypatch: pytest.MonkeyPatch) -> GrantStore:
    monkeypatch.chdir(workspace)
    store = GrantStore(next(iter(daiku_home.glob("*.db")), daiku_home / DATABASE))
    store.remember(str(workspace), "command:npm test | tail", "allow")
    store.remember(str(workspace), "network:x.org", "reject")
    store.remember("/elsewhere", "edit", "allow")
    return store


def test_they_are_listed_in_words_with_numbers(daiku: Daiku, kept: GrantStore) -> None:
    out = daiku("grants", "list").out
    assert "  1  allowed  run `npm test | tail`" in out
    assert "  2  rejected  connect to x.org" in out
    assert "edit" not in out
    rows = json.loads(daiku("grants", "list", "--json").out)
    assert [(row["key"], row["answer"]) for row in rows] == [
        ("command:npm test | tail", "allow"),
        ("network:x.org", "reject"),
    ]


@pytest.mark.parametrize("which", ["1", "command:npm test | tail", "run `npm test | tail`"])
def test_one_is_taken_back_by_number_key_or_words(
    daiku: Daiku, kept: GrantStore, workspace: Path, which: str
) -> None:
    done = daiku("grants", "revoke", which)
    assert done.code == 0
    assert "run `npm test | tail`" in done.out
    assert kept.all(str(workspace)) == (("network:x.org", "reject"),)


def test_all_of_a_folder_are_taken_back_and_those_of_others_stay(
    daiku: Daiku, kept: GrantStore, workspace: Path
) -> None:
    assert daiku("grants", "revoke", "--all").code == 0
    assert kept.all(str(workspace)) == ()
    assert kept.all("/elsewhere") == (("edit", "allow"),)
    assert "Nothing is allowed or rejected" in daiku("grants", "list").out


@pytest.mark.parametrize("which", [["9"], ["npm"], []])
def test_what_is_not_there_is_said(daiku: Daiku, kept: GrantStore, which: list[str]) -> None:
    assert daiku("grants", "revoke", *which).code == 2


def test_a_consent_to_an_mcp_server_is_one_of_them(
    daiku: Daiku, kept: GrantStore, workspace: Path, daiku_home: Path
) -> None:
    database = next(iter(daiku_home.glob("*.db")))
    ConsentStore(database).remember(str(workspace), "files", Consent(launch="x", answer="allow"))
    assert "use the MCP server files" in daiku("grants", "list").out
    assert daiku("grants", "revoke", "server:files").code == 0
    assert ConsentStore(database).lookup(str(workspace), "files") is None

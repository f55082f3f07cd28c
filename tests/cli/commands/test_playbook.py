"""`daiku playbook`: bullets added, listed, searched, shown, switched off and on; what waits decided by ids."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.playbook import Delta, LearntFrom, Observation
from daiku.fronts.cli.commands.playbook.reviewing import repeat_options
from daiku.playbook.repository import PlaybookStores, open_playbooks
from daiku.settings import home
from daiku.trace.stores import open_stores
from tests.cases import for_each
from tests.cli.conftest import Daiku
from tests.conftest import ROOT

SECRET = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"  # of no one
BULLET = [
    "id",
    "section",
    "content",
    "keywords",
    "helpful",
    "harmful",
    "active",
    "origin",
    "createdAt",
    "updatedAt",
]


@pytest.fixture
def playbooks(workspace: Path, daiku_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PlaybookStores]:
    """The same playbooks, as another process has them; the workspace is the current folder."""
    monkeypatch.chdir(workspace)
    stores = open_stores(home(os.environ) / "daiku.db", str)
    yield open_playbooks(stores.database, (workspace,))
    stores.close()


def proposed(playbooks: PlaybookStores, content: str, **fields: Any) -> Delta:
    assert playbooks.repository is not None
    given = {
        "id": "",
        "type": "add",
        "section": "environment",
        "content": content,
        "origin": "rule",
        **fields,
    }
    return playbooks.repository.propose(Delta.model_validate(given))


def test_a_bullet_that_is_added_is_named_by_its_id_and_active_at_once(
    daiku: Daiku, playbooks: PlaybookStores
) -> None:
    done = daiku("playbook", "add", "--section", "environment", "There is no network.")
    assert (done.code, done.out, done.err) == (0, "env-00001\n", "")
    own = daiku("playbook", "add", "--section", "environment", "Use tabs.", "--scope", "user")
    assert own.out == "myenv-00001\n"
    (first, second) = json.loads(daiku("playbook", "list", "--json").out)
    assert list(first) == BULLET
    assert (first["id"], first["active"], first["origin"]) == ("env-00001", True, "person")
    assert second["content"] == "Use tabs."
    assert [
        each["id"] for each in json.loads(daiku("playbook", "list", "--scope", "user", "--json").out)
    ] == ["myenv-00001"]


def test_what_is_proposed_waits_until_it_is_accepted(daiku: Daiku, playbooks: PlaybookStores) -> None:
    """B3.4."""
    waiting = daiku("playbook", "add", "--section", "a", "Wait.", "--propose").out.strip()
    assert json.loads(daiku("playbook", "list", "--json").out) == []
    (delta,) = json.loads(daiku("playbook", "deltas", "--json").out)
    assert (delta["id"], delta["status"], delta["type"]) == (waiting, "proposed", "add")
    assert "+Wait." in daiku("playbook", "deltas").out
    assert daiku("playbook", "review", "--accept", waiting).code == 0
    assert [each["content"] for each in json.loads(daiku("playbook", "list", "--json").out)] == ["Wait."]
    assert daiku("playbook", "deltas").out == "Nothing waits for a word.\n"


def test_several_changes_are_decided_behind_one_option(daiku: Daiku, playbooks: PlaybookStores) -> None:
    ids = [proposed(playbooks, f"text {number}").id for number in range(4)]
    done = daiku("playbook", "review", "--accept", *ids[:2], "--reject", *ids[2:], "--json")
    assert done.code == 0
    decided = json.loads(done.out)["decided"]
    assert {each["id"]: each["status"] for each in decided} == {
        ids[0]: "applied",
        ids[1]: "applied",
        ids[2]: "rejected",
        ids[3]: "rejected",
    }
    assert len(json.loads(daiku("playbook", "list", "--json").out)) == 2


@for_each(
    ("given", "read"),
    [
        (["--accept", "a", "b", "--reject", "c"], ["--accept", "a", "--accept", "b", "--reject", "c"]),
        (["--accept=a", "b"], ["--accept=a", "--accept", "b"]),
        (["--accept", "a", "-C", "d", "--json"], ["--accept", "a", "-C", "d", "--json"]),
        (["--accept"], []),
        (["x"], ["x"]),
    ],
)
def test_ids_behind_an_option_are_read_one_by_one(given: list[str], read: list[str]) -> None:
    assert repeat_options(given, ("--accept", "--reject")) == read


def test_a_change_that_was_decided_on_is_refused_and_the_others_are_decided(
    daiku: Daiku, playbooks: PlaybookStores
) -> None:
    first, second = proposed(playbooks, "one").id, proposed(playbooks, "two").id
    daiku("playbook", "review", "--reject", first)
    done = daiku("playbook", "review", "--accept", second, "--reject", first)
    assert done.code == 1
    assert f"The change {first} has already been decided." in done.err
    assert [each["content"] for each in json.loads(daiku("playbook", "list", "--json").out)] == ["two"]


def test_a_rejected_change_is_looked_at_and_taken_up_again(
    daiku: Daiku, playbooks: PlaybookStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = proposed(playbooks, "one").id, proposed(playbooks, "two").id
    daiku("playbook", "review", "--reject", first, second)
    assert "+one" in daiku("playbook", "deltas", "--status", "rejected").out
    assert daiku("playbook", "review", "--accept", first).code == 0
    assert daiku("playbook", "undo", second).out == f"The change {second} waits again.\n"
    assert [each["id"] for each in json.loads(daiku("playbook", "deltas", "--json").out)] == [second]
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    daiku("playbook", "review", "--reject", second)
    assert "再び確認待ち" in daiku("playbook", "undo", second).out


def test_nothing_is_decided_where_one_of_the_changes_is_unknown_or_named_twice(
    daiku: Daiku, playbooks: PlaybookStores
) -> None:
    known = proposed(playbooks, "one").id
    for wrong in (("r99",), (known,), ("nonsense",)):
        done = daiku("playbook", "review", "--accept", known, "--reject", *wrong, "--json")
        assert (done.code, [chunk["type"] for chunk in done.chunks()]) == (2, ["error"])
        assert done.err.count("\n") == 1
    assert len(json.loads(daiku("playbook", "deltas", "--json").out)) == 1


def test_without_a_person_review_says_how_to_decide(daiku: Daiku, playbooks: PlaybookStores) -> None:
    assert daiku("playbook", "review").out == "Nothing waits for a word.\n"
    proposed(playbooks, "one")
    done = daiku("playbook", "review")
    assert (done.code, done.out) == (2, "")
    assert "--accept ID … --reject ID …" in done.err


def test_a_change_shows_why_it_was_made_and_where_it_was_learnt(
    daiku: Daiku, playbooks: PlaybookStores
) -> None:
    evidence = (LearntFrom(session_id="ses_gone", run_id="run_1", seq=7),)
    proposed(
        playbooks,
        "See \x1b[31mthere",
        why="command_replaced",
        doubts=("tainted", "rejected"),
        evidence=evidence,
    )
    shown = daiku("playbook", "deltas").out
    assert "why: another command passed in its place" in shown
    assert (
        "note: a run that taught it read text from outside, was rejected before; further runs taught it again"
        in shown
    )
    assert "learnt in: ses_gone #7 (the session is gone)" in shown
    assert r"+See \x1b[31mthere" in shown
    assert daiku("playbook", "review", "--accept", "r1").code == 0
    assert "note: " not in daiku("playbook", "deltas", "--all").out


def test_bullets_are_listed_by_section_and_without_the_disabled_ones(
    daiku: Daiku, playbooks: PlaybookStores
) -> None:
    for section, content in (("environment", "one"), ("common_mistakes", "two"), ("environment", "three")):
        daiku("playbook", "add", "--section", section, content)
    assert daiku("playbook", "disable", "env-00001").code == 0
    assert daiku("playbook", "list").out.splitlines() == [
        "common_mistakes",
        "  cm-00001      +0 -0    two",
        "environment",
        "  env-00002     +0 -0    three",
    ]
    assert "(disabled) one" in daiku("playbook", "list", "--all").out
    (row,) = json.loads(daiku("playbook", "list", "--section", "COMMON MISTAKES", "--json").out)
    assert row["content"] == "two"
    assert len(json.loads(daiku("playbook", "list", "--all", "--json").out)) == 3


def test_a_bullet_is_disabled_enabled_removed_and_brought_back_by_undo(
    daiku: Daiku, playbooks: PlaybookStores
) -> None:
    daiku("playbook", "add", "--section", "environment", "one")

    def active() -> bool:
        return json.loads(daiku("playbook", "show", "env-00001", "--json").out)["active"]

    for command, stands in (("disable", False), ("enable", True), ("remove", False)):
        done = daiku("playbook", command, "env-00001", "--json")
        assert (done.code, json.loads(done.out)["bullet"]["active"]) == (0, stands)
        assert active() is stands
    assert daiku("playbook", "remove", "env-00001").out == "env-00001 is disabled already.\n"
    (*_, last) = json.loads(daiku("playbook", "show", "env-00001", "--json").out)["history"]
    assert daiku("playbook", "undo", last["id"]).out == f"The change {last['id']} is undone.\n"
    assert active() is True
    again = daiku("playbook", "undo", last["id"])
    assert (again.code, again.err.count("\n")) == (1, 1)


def test_one_is_shown_with_its_history_and_what_runs_showed(daiku: Daiku, playbooks: PlaybookStores) -> None:
    daiku("playbook", "add", "--section", "environment", "one\ntwo", "--keyword", "k")
    assert playbooks.repository is not None
    seen = Observation(
        run="run_1", bullet="env-00001", verdict="helpful", why="command_passed", session="s", seq=3
    )
    playbooks.repository.observe([seen])
    found = json.loads(daiku("playbook", "show", "env-00001", "--json").out)
    assert [*found][: len(BULLET)] == BULLET
    assert (found["helpful"], found["keywords"]) == (1, ["k"])
    assert [each["type"] for each in found["history"]] == ["add"]
    assert found["observations"][0]["verdict"] == "helpful"
    shown = daiku("playbook", "show", "env-00001").out
    for line in ("  one\n  two\n", "keywords: k", "helpful (its command passed)", "by a person", "    +one"):
        assert line in shown
    assert "+Keywords: k\n" in shown
    assert "not counted" not in shown


def test_what_was_shown_of_an_earlier_text_is_told_and_not_counted(
    daiku: Daiku, playbooks: PlaybookStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    daiku("playbook", "add", "--section", "environment", "Indent with tabs.")
    assert playbooks.repository is not None
    seen = Observation(
        run="r", bullet="env-00001", verdict="helpful", why="edits_kept", session="s", version=1
    )
    playbooks.repository.observe([seen])
    other = Delta(id="", type="update", bullet_id="env-00001", content="Indent with four blanks.")
    playbooks.repository.apply(other)
    shown = daiku("playbook", "show", "env-00001")
    assert "helpful: 0, harmful: 0" in shown.out
    assert "helpful (its edits were kept)  [of an earlier text, not counted]" in shown.out
    (told,) = json.loads(daiku("playbook", "show", "env-00001", "--json").out)["observations"]
    assert (told["version"], told["counted"]) == (1, False)
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert "集計外" in daiku("playbook", "show", "env-00001").out


def test_what_is_looked_for_is_found_best_first(daiku: Daiku, playbooks: PlaybookStores) -> None:
    for content in ("Run the tests with npm test.", "There is no network.", "設定は環境変数で読む。"):
        daiku("playbook", "add", "--section", "environment", content)
    hits = json.loads(daiku("playbook", "search", "tests npm", "--top-k", "1", "--json").out)
    assert [hit["bullet"]["id"] for hit in hits] == ["env-00001"]
    assert hits[0]["combinedScore"] > 0
    assert "設定は環境変数で読む。" in daiku("playbook", "search", "設定", "--top-k", "1").out
    assert json.loads(daiku("playbook", "search", "x", "--section", "nothing here", "--json").out) == []


def test_secrets_are_taken_out_of_what_is_added_and_that_is_said(
    daiku: Daiku, playbooks: PlaybookStores
) -> None:
    done = daiku("playbook", "add", "--section", "environment", f"Use {SECRET} there.")
    assert (done.code, done.out) == (0, "env-00001\n")
    assert done.err == "Secrets were taken out of the text.\n"
    assert SECRET not in daiku("playbook", "show", "env-00001", "--json").out


def test_the_help_tells_of_each_command_in_whole_sentences(daiku: Daiku, playbooks: PlaybookStores) -> None:
    told = " ".join(daiku("playbook").out.split())
    assert "Take an applied change back; one that was rejected waits again." in told
    assert "Learn offline from the stored sessions of this folder." in told


def test_where_nothing_comes_by_standard_input_it_is_a_text_that_is_missing(
    daiku: Daiku, playbooks: PlaybookStores
) -> None:
    done = daiku("playbook", "add", "--section", "environment", "-", stdin=b"\n")
    assert (done.code, done.err) == (2, "daiku: A lesson needs a text.\n")


def test_a_text_is_read_from_standard_input(daiku: Daiku, playbooks: PlaybookStores) -> None:
    done = daiku("playbook", "add", "--section", "environment", "-", stdin="一行\n二行\n".encode())
    assert done.code == 0
    (row,) = json.loads(daiku("playbook", "list", "--json").out)
    assert row["content"] == "一行\n二行"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("show", "env-00001"), "There is no lesson 'env-00001'"),
        (("show", "\x1b[31m"), "There is no lesson"),
        (("remove", "r1"), "There is no lesson 'r1'"),
        (("enable",), "Missing argument"),
        (("undo", "r1"), "There is no change 'r1'"),
        (("add", "text"), "--section"),
        (("add", "--section", "a"), "TEXT"),
        (("add", "--section", " ", "x"), "A lesson needs a section."),
        (("add", "--section", "a", " "), "A lesson needs a text."),
        (("add", "--section", "a", "x" * 4001), "too long for a lesson"),
        (("search", " "), "Enter a search query."),
        (("search", "x", "--top-k", "0"), "--top-k"),
        (("list", "--scope", "all"), "--scope"),
        (("export", "--format", "xml"), "--format"),
        (("review", "extra"), "extra"),
        (("list", "-C", "/0"), "/0"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    daiku: Daiku, playbooks: PlaybookStores, command: tuple[str, ...], told: str
) -> None:
    done = daiku("playbook", *command)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert "\x1b" not in done.err
    assert done.err.count("\n") == 1


def test_it_speaks_the_persons_language(
    daiku: Daiku, playbooks: PlaybookStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposed(playbooks, "一つ")
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert "確認待ち" in daiku("playbook", "deltas").out
    assert "1 件の変更が確認待ちですが" in daiku("playbook", "review").err
    assert "はありません" in daiku("playbook", "show", "env-00009").err


@pytest.mark.slow
@pytest.mark.parametrize("closed", [False, True])
def test_as_a_process_with_nobody_there_it_does_the_same(
    playbooks: PlaybookStores, workspace: Path, closed: bool
) -> None:
    def process(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "daiku", "playbook", *args]
        if closed:
            command = ["sh", "-c", 'exec "$@" <&-', "sh", *command]
        return subprocess.run(
            command,
            cwd=workspace,
            env={**os.environ, "PYTHONPATH": str(ROOT / "server")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    added = process("add", "--section", "environment", "There is no network.", "--propose")
    assert (added.returncode, added.stderr) == (0, "")
    assert process("review").returncode == 2
    assert process("review", "--accept", added.stdout.strip()).returncode == 0
    exported = process("export")
    expected = "## environment\n[env-00001] helpful=0 harmful=0 :: There is no network.\n"
    assert (exported.returncode, exported.stdout) == (0, expected)

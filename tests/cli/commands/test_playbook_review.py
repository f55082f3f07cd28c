"""`daiku playbook review` with a person: one key decides, texts are edited, evidence is shown where it happened."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daiku.domain.events import MessageEvent
from daiku.domain.playbook import Delta, LearntFrom
from daiku.fronts.cli.ask import keyboard
from daiku.fronts.cli.commands.playbook import reviewing
from daiku.playbook.repository import open_playbooks
from daiku.playbook.store import PlaybookStore
from daiku.settings import home
from daiku.texts.text import Text
from daiku.trace.stores import Stores, open_stores
from tests.cli.conftest import Daiku, Done
from tests.cli.test_terminal import Open, at_terminal, plain

__all__ = ["at_terminal"]
Review = Callable[..., Done]


@pytest.fixture
def stores(workspace: Path, daiku_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stores]:
    monkeypatch.chdir(workspace)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    stores = open_stores(home(os.environ) / "daiku.db", str)
    yield stores
    stores.close()


@pytest.fixture
def store(stores: Stores, workspace: Path) -> PlaybookStore:
    """Two bullets that are proposed."""
    store = open_playbooks(stores.database, (workspace,)).repository
    assert store is not None
    for content in ("one", "two"):
        store.propose(Delta(id="", type="add", section="environment", content=content, origin="rule"))
    return store


@pytest.fixture
def review(daiku: Daiku, store: PlaybookStore, monkeypatch: pytest.MonkeyPatch) -> Review:
    """Call it with a person who types these keys, and these lines where a line is asked for."""

    def call(keys: str, *lines: str) -> Done:
        typed, written = iter(keys), iter(lines)

        async def read_key() -> str:
            return next(typed, "")

        async def read_line() -> str | None:
            return next(written, None)

        monkeypatch.setattr(keyboard, "read_key", read_key)
        monkeypatch.setattr(keyboard, "read_line", read_line)
        monkeypatch.setattr(reviewing, "person_present", lambda: True)
        return daiku("playbook", "review")

    return call


def statuses(store: PlaybookStore) -> list[str]:
    return [each.status for each in store.deltas()]


def test_one_key_accepts_and_one_rejects(review: Review, store: PlaybookStore) -> None:
    done = review("yn")
    assert done.code == 0
    assert statuses(store) == ["applied", "rejected"]
    assert done.out == "r1 is accepted: env-00001\nr2 is rejected.\n"
    assert "Change 1 of 2" in done.err
    assert "+one" in done.err


def test_what_is_left_for_later_waits_still(review: Review, store: PlaybookStore) -> None:
    assert review("xsy").code == 0
    assert statuses(store) == ["proposed", "applied"]


@pytest.mark.parametrize("key", ["q", "", "\x1b", "\x04"])
def test_the_end_of_input_and_escape_leave_the_rest(review: Review, store: PlaybookStore, key: str) -> None:
    assert review(f"n{key}y" if key else "n").code == 0
    assert statuses(store) == ["rejected", "proposed"]


def test_a_text_is_edited_shown_again_and_accepted_as_it_is_then(
    review: Review, store: PlaybookStore
) -> None:
    done = review("eyq", "一つ目")
    assert "+一つ目" in done.err
    assert [each.content for each in store.load().bullets] == ["一つ目"]
    (bullet,) = store.load().bullets
    (change,) = store.history(bullet.id)
    assert change.status == "applied"


def test_an_empty_line_leaves_the_text(review: Review, store: PlaybookStore) -> None:
    review("eyq", "")
    assert [each.content for each in store.load().bullets] == ["one"]


def test_a_text_is_edited_in_the_editor_that_the_person_has_set(
    review: Review, store: PlaybookStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "first\\nsecond\\n" > "$1"\n', encoding="utf-8")
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    review("eyq")
    assert [each.content for each in store.load().bullets] == ["first\nsecond"]


def test_an_editor_that_fails_changes_nothing(
    review: Review, store: PlaybookStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "false")
    assert review("eyq").code == 0
    assert [each.content for each in store.load().bullets] == ["one"]


def test_a_text_that_is_too_long_is_refused_and_the_next_one_asked_about(
    review: Review, store: PlaybookStore
) -> None:
    done = review("eyy", "x" * 4001)
    assert done.code == 1
    assert "too long for a lesson" in done.err
    assert statuses(store) == ["proposed", "applied"]


def test_the_place_that_something_was_learnt_in_is_shown_where_it_happened(
    review: Review, store: PlaybookStore, stores: Stores
) -> None:
    session = stores.journal.new_session("Mend the build")
    said = ("before it", "the very place", "after it")
    events = [MessageEvent(role="assistant", text=Text(words)) for words in said]
    stores.journal.writer(session.session_id).write("run_1", None, "main", events)
    place = LearntFrom(session_id=session.session_id, run_id="run_1", seq=2)
    store.propose(Delta(id="", type="update", bullet_id="env-00001", content="1", evidence=(place,)))
    done = review("nyoq")
    assert f"Mend the build  (daiku sessions show {session.session_id})" in done.err
    assert "  before it\n→ the very place\n  after it\n" in done.err
    assert "[o]" in done.err
    assert statuses(store) == ["rejected", "applied", "proposed"]


def test_the_questions_are_asked_in_the_persons_language(
    review: Review, store: PlaybookStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert "[y] 承認  [e] 編集  [n] 却下  [s] 後で  [q] 終了" in review("q").err


@pytest.mark.slow
def test_at_a_terminal_keys_are_read_one_by_one(at_terminal: Open, store: PlaybookStore) -> None:
    with at_terminal("playbook", "review", lines=[], LC_ALL="ja_JP.UTF-8") as screen:
        screen.until("[q] 終了")
        screen.type("e")
        screen.until("Enter: そのまま")
        screen.type("新しい\n")
        screen.until("[q] 終了")
        screen.type("ｙ")
        screen.until("[q] 終了")
        screen.type("n")
        assert screen.end() == 0
        assert "+新しい" in plain(screen.text)
    assert statuses(store) == ["applied", "rejected"]
    assert [each.content for each in store.load().bullets] == ["新しい"]

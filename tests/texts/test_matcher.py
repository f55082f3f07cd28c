"""What the server says to a person, in Japanese."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import daiku
from daiku.texts.matcher import translator
from daiku.tools.web.engines import ENGINES, read
from daiku.tools.web.road import Answer
from tests.cases import for_each
from tests.said import Said, Scan, read_source

JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
STAYS = {
    "--mode: ask, plan, act (⟦1⟧)",
    "Daiku ⟦1⟧, Python ⟦2⟧ (⟦3⟧)",
    "SQLite ⟦1⟧",
    "HTTP ⟦1⟧",
    "chmod go= ⟦1⟧",
    # read by the model alone
    "The person rejected this call.⟦1⟧",
    "This call was interrupted: it started, and how far it got is not known. Look at the present state before you try it again.",
    "The sandbox has no network. If the command needs it, call again with network: true; the person is asked.",
    "The sandbox lets commands write only in the workspace and /tmp, and not to protected files (.git/hooks, .vscode, …).",
}
"""Texts that are the same in every language, or not for a person."""
ja = translator("ja-JP")


@pytest.fixture(scope="module")
def said() -> list[Said]:
    return Scan(read_source(Path(daiku.__file__).parent))()


def test_every_text_for_a_person_in_the_source_has_japanese(said: list[Said]):
    missing = [
        f"{s.where}: {s.text}" for s in said if s.text not in STAYS and not JAPANESE.search(ja(s.text))
    ]
    assert not missing, "Add these to daiku/texts/ja_*.py:\n" + "\n".join(missing)


def test_no_name_path_or_number_gets_lost(said: list[Said]):
    for each in said:
        kept = re.findall(r"⟦\d+⟧", ja(each.text))
        wanted = re.findall(r"⟦\d+⟧", each.text)
        assert sorted(kept) == sorted(wanted), each


def test_a_new_text_without_japanese_is_found(tmp_path: Path):
    (tmp_path / "daiku").mkdir()
    (tmp_path / "daiku" / "new.py").write_text(
        """
NOTE = "The moon is made of cheese."
def broken(path, more):
    why = "it is out of tune"
    hint = "Sing louder." if more else "Hum it."
    raise UsageError(Failure(kind="usage", message=f"{path} cannot sing: {why}.", hint=hint))
def tell(emit):
    emit(Notice(level="info", text=NOTE))
"""
    )
    found = {each.text for each in Scan(read_source(tmp_path / "daiku"))()}
    assert found == {
        "it is out of tune", "Sing louder.", "Hum it.", "⟦1⟧ cannot sing: ⟦2⟧.", "The moon is made of cheese.",
    }  # fmt: skip
    assert not any(JAPANESE.search(ja(text)) for text in found)


@for_each(
    ("english", "japanese"),
    [
        ("runs npm", "npm を実行します"),
        (
            "runs npm; there is no sandbox here: it runs with all your rights",
            "npm を実行します。ここにはサンドボックスがなく、あなたの全権限で実行されます",
        ),
        (
            ".git/hooks/pre-commit: git's own files: hooks and settings in it run programs",
            ".git/hooks/pre-commit: git 自身のファイルです。フックや設定からプログラムが実行されます",
        ),
        (
            "refused always: it would remove your home folder",
            "常に拒否されます: あなたのホームフォルダーが削除されます",
        ),
        (
            "config.toml: llm.modle is not a setting; did you mean llm.model?",
            "config.toml: llm.modle という設定はありません。llm.model のことですか？",
        ),
        ("run `git push` with the network", "ネットワークを使って `git push` を実行"),
        ("the settings deny `rm -rf /; ls. Then`", "設定で `rm -rf /; ls. Then` は拒否されています"),
    ],
)
def test_texts_as_they_arise_are_said_in_japanese(english: str, japanese: str):
    assert ja(english) == japanese


def test_other_languages_and_unknown_texts_stay_as_they_are():
    assert translator("en-US")("runs npm") == "runs npm"
    assert translator("de_DE.UTF-8")("runs npm") == "runs npm"
    assert translator("ja_JP.UTF-8")("runs npm") == "npm を実行します"
    assert ja("A tool said something of its own; nobody knows what.") == (
        "A tool said something of its own; nobody knows what."
    )


def test_what_is_japanese_already_is_not_changed(said: list[Said]):
    for each in said:
        if JAPANESE.search(ja(each.text)):
            assert ja(ja(each.text)) == ja(each.text), each


@given(st.text(max_size=200))
def test_any_text_can_be_given(text: str):
    assert isinstance(ja(text), str)


def test_of_a_long_text_the_first_line_is_looked_at():
    rest = "a; b: " * 5000
    assert ja(f"runs npm\n{rest}") == f"npm を実行します\n{rest}"
    assert ja(rest) == rest


@given(st.from_regex(r"[a-zA-Z0-9_/.-]{1,40}", fullmatch=True))
def test_paths_are_kept_to_the_letter(path: str):
    assert path in ja(f"{path} is outside the workspace.")


def test_a_long_message_of_a_vendor_costs_little() -> None:
    told = json.dumps({"error": {f"key{n}": f"some words: of a vendor; {n}." for n in range(45)}})
    message = f"X rejected the request (HTTP 400): {told}."[:1900]
    ja("warm")
    began = time.process_time()
    ja(message)
    assert time.process_time() - began < 0.1


def test_why_a_search_engine_gave_nothing_is_said_in_japanese():
    for engine in ENGINES.values():
        for status, body in (
            (403, b""),
            (429, b"slow down"),
            (500, b""),
            (200, b"<html>no list</html>"),
            (200, b"["),
        ):
            answer = Answer(
                url="https://e.example", status=status, kind="text/html", charset="utf-8", body=body
            )
            problem = read(engine, answer, 5)
            assert isinstance(problem, str), (engine.name, status)
            for told in (problem, f"Web: {problem}", f"Note: {problem}"):
                english = re.sub(r"research\.\w+|settings\.yml|search\.formats|DuckDuckGo", "", ja(told))
                assert not re.search(r"[A-Za-z]+ [a-z]+", english), (told, ja(told))
    told = ja("brave needs a key: put it into BRAVE_API_KEY, or choose another engine.")
    assert JAPANESE.search(told)
    assert "BRAVE_API_KEY" in told

"""What is wrong with a command line is said in the person's language."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from daiku.fronts.cli.main import main
from tests.cli.conftest import Done


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (["frobnicate"], "frobnicate"),
        (["run", "--frob", "hi"], "--frob"),
        (["run", "--modle", "x", "hi"], "--model"),
        (["run"], "PROMPT"),
        (["run", "hi", "--mode", "fly"], "ask, plan, act"),
        (["run", "--max-rounds", "x", "hi"], "--max-rounds"),
        (["run", "hi", "--max-rounds"], "--max-rounds"),
        (["grants", "list", "more"], ""),
        (["plan", "import", "missing.md"], "missing.md"),
    ],
)
def test_a_wrong_command_line_is_explained_in_japanese(
    args: list[str], names: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert main(args) == 2
    said = capsys.readouterr().err
    assert re.search(r"[\u3040-\u30ff]", said.partition("参照")[0]), said
    assert names in said


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("wrok", ["work", "worker"]),
        ("chta", ["chat"]),
        ("plam", ["plan"]),
        ("list", []),
        ("foo", []),
        ("wr", ["work"]),
    ],
)
def test_only_close_commands_are_suggested(
    word: str, near: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A23.5"""
    assert main([word]) == 2
    assert re.findall(r"'(\w+)'", capsys.readouterr().err) == [word, *near]


def test_a_wrong_value_and_the_help_are_two_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "import", "missing.md"]) == 2
    assert "No such file or directory. See: daiku plan import --help" in capsys.readouterr().err


@pytest.mark.parametrize("command", [(), ("plan",), ("playbook", "list"), ("run",)])
def test_help_is_in_one_language(
    daiku: Callable[..., Done], monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    english = daiku(*command, "--help").out
    assert english.startswith("Usage: daiku")
    assert "Show this message and exit." in english
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    japanese = daiku(*command, "--help").out
    assert japanese.startswith("使い方: daiku")
    assert "オプション:" in japanese
    assert not [word for word in ("Usage", "Options", "Commands:", "Show this message") if word in japanese]

"""What is wrong with a command line is said in the person's language."""

from __future__ import annotations

import re

import pytest

from daiku.cli.main import main


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

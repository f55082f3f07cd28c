"""A model that cannot be used is named in the error, wherever its name was given."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Daiku

WAYS: dict[str, tuple[tuple[str, ...], dict[str, str], str]] = {
    "option": (("--model", "gpt-9"), {}, ""),
    "environment": ((), {"DAIKU_LLM__MODEL": "gpt-9"}, ""),
    "settings": ((), {}, '[llm]\nmodel = "gpt-9"\n'),
    "settings of an agent": ((), {}, '[agents.coordinator]\nmodel = "gpt-9"\n'),
    "an empty option leaves it to the settings": (("--model", ""), {}, '[llm]\nmodel = "gpt-9"\n'),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_name_is_repeated_wherever_it_was_given(
    way: str, daiku: Daiku, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A23.5"""
    options, environment, settings = WAYS[way]
    monkeypatch.chdir(workspace)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    (workspace / ".daiku").mkdir()
    (workspace / ".daiku" / "config.toml").write_text(settings)
    done = daiku("run", *options, "x")
    assert (done.code, done.out) == (1, "")
    assert "The model “gpt-9” cannot be used." in done.err
    assert "provider/name" in done.err

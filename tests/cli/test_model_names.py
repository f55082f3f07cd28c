"""A model that cannot be used, or a wrong setting of models, is named, and stops only commands that ask a model."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from daiku.domain.errors import LLMRequestError
from daiku.models.embed import open_embedder
from daiku.models.model import Models
from daiku.settings import load, user_file
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


MISTAKES: dict[str, tuple[dict[str, str], str, str]] = {
    "no URL": ({}, '[llm.compatible]\nbase_url = "nonsense"\n', "llm.compatible.base_url"),
    "no URL in a variable": ({"DAIKU_LLM__OLLAMA__BASE_URL": "http://"}, "", "llm.ollama.base_url"),
    "no number": ({}, '[llm.openai]\ncontext_length = "many"\n', "llm.openai.context_length"),
    "no setting": ({}, '[llm.opnai]\nbase_url = "x"\n', "llm.opnai"),
    "no setting in a variable": ({"DAIKU_LLM__MODLE": "x"}, "", "DAIKU_LLM__MODLE"),
    "no JSON in a variable": ({"DAIKU_LLM__OPENAI__HEADERS": "{"}, "", "DAIKU_LLM__OPENAI__HEADERS"),
    "no provider": ({}, '[llm]\nprovider = "gpt"\n', "llm.provider"),
    "no table": ({}, "llm = 3\n", "llm must be"),
    "a key": ({}, '[llm.openai]\napi_key = "sk-very-secret"\n', "llm.openai.api_key"),
}
WITHOUT_MODEL = (
    ("sessions", "list"),
    ("playbook", "list"),
    ("playbook", "search", "x"),
    ("plan", "list"),
    ("work", "list"),
    ("config", "show"),
    ("config", "trust"),
    ("memory", "list"),
    ("mcp", "list"),
    ("grants", "list"),
    ("prompts", "list"),
    ("tools",),
    ("agents",),
)
WITH_MODEL = (("run", "x"), ("code", "x"), ("plan", "x"), ("chat",), ("resume", "x"), ("worker", "--once"))


@pytest.fixture(params=MISTAKES)
def mistake(request: pytest.FixtureRequest, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Put a mistake into the settings of models; the name of the setting."""
    environment, settings, name = MISTAKES[request.param]
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    user = user_file(os.environ)
    user.parent.mkdir(parents=True, exist_ok=True)
    user.write_text(settings)
    monkeypatch.chdir(workspace)
    return name


def test_a_wrong_setting_of_models_stops_only_commands_that_ask_a_model(daiku: Daiku, mistake: str) -> None:
    """A23.5"""
    for command in WITHOUT_MODEL:
        done = daiku(*command)
        assert done.code == 0, (command, done.err)
        assert command == ("config", "trust") or mistake in done.err, command
        assert "sk-very" not in done.out + done.err
    told = ""
    for command in WITH_MODEL:
        done = daiku(*command)
        assert (done.code, done.out) == (2, ""), command
        assert mistake in done.err
        assert told in ("", done.err)
        told = done.err


def test_the_warning_is_in_the_language_of_the_user(
    daiku: Daiku, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A23.5"""
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    monkeypatch.setenv("DAIKU_LLM__COMPATIBLE__BASE_URL", "nonsense")
    done = daiku("sessions", "list")
    assert (done.code, "llm.compatible.base_url" in done.err, "アドレス" in done.err) == (0, True, True)


def test_a_wrong_setting_of_anything_else_stops_every_command(
    daiku: Daiku, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A23.5"""
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("DAIKU_LLM__MODLE", "x")
    monkeypatch.setenv("DAIKU_LIMITS__MAX_ROUNDS", "many")
    done = daiku("sessions", "list")
    assert (done.code, "limits.max_rounds" in done.err, "DAIKU_LLM__MODLE" in done.err) == (2, True, True)


def test_no_model_is_chosen_from_settings_that_are_wrong(workspace: Path) -> None:
    """A23.5: a wrong address must not send anything to the usual one."""
    environ = {"DAIKU_LLM__OPENAI__BASE_URL": "nonsense", "OPENAI_API_KEY": "sk-1", "HOME": str(workspace)}
    llm = load(workspace=None, trusted=True, environ=environ, asks_model=False).config.llm
    for choose in (Models(llm).choose, lambda: open_embedder("openai/m", llm)):
        with pytest.raises(LLMRequestError, match=r"llm\.openai\.base_url"):
            choose()
    offers = asyncio.run(Models(llm).list())
    assert all("llm.openai.base_url" in offer.error.message for offer in offers if offer.error)
    assert not any(offer.models for offer in offers)

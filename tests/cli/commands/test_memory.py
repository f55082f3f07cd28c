"""`daiku memory`: listed, searched, forgotten; what is wrong with a database is one line and exit code 2."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from daiku import Memory
from daiku.memory.opening import get_login_name
from daiku.settings import home
from tests.cli.conftest import Daiku, call


def keep(folder: Path, *texts: str) -> list[str]:
    async def work() -> list[str]:
        place = home(os.environ) / "memory.db"
        async with Memory(place, user=get_login_name(), workspace=str(folder.resolve())) as memory:
            return [await memory.remember(said) for said in texts]

    return asyncio.run(work())


def test_what_is_remembered_is_listed_searched_and_forgotten(
    daiku: Daiku, workspace: Path, tmp_path: Path
) -> None:
    """R1.93: visible to the person, and forgettable."""
    first, second = keep(workspace, "Kenji prefers tabs", "deploy on Fridays")
    at = ("-C", str(workspace))
    listed = json.loads(daiku("memory", "list", "--json", *at).out)
    assert [(each["id"], each["text"]) for each in listed] == [
        (second, "deploy on Fridays"),
        (first, "Kenji prefers tabs"),
    ]
    assert f"{first}" in daiku("memory", "list", *at).out
    found = json.loads(daiku("memory", "search", "tabs", "--json", *at).out)
    assert found[0]["id"] == first
    searched = daiku("memory", "search", "tabs", *at)
    assert "Kenji prefers tabs" in searched.out
    assert "not meanings" in searched.err
    assert daiku("memory", "list", "--json", "-C", str(tmp_path)).out.strip() == "[]"
    wrong = daiku("memory", "forget", "mem_none", *at)
    assert (wrong.code, "mem_none" in wrong.err) == (2, True)
    assert wrong.out == ""
    assert daiku("memory", "forget", *at).code == 2
    assert json.loads(daiku("memory", "forget", first, "--json", *at).out) == {"forgotten": 1, "unknown": []}
    assert daiku("memory", "forget", "--all", *at).code == 0
    assert "Nothing is remembered" in daiku("memory", "list", *at).out


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("postgresql://me:geheim99@127.0.0.1:1/x", "PostgreSQL at 127.0.0.1:1/x cannot be reached"),
        ("mysql://a/b", "storage.database_url must be"),
    ],
)
def test_a_wrong_database_is_one_line_and_exit_code_2(
    daiku: Daiku, workspace: Path, monkeypatch: pytest.MonkeyPatch, url: str, why: str
) -> None:
    monkeypatch.setenv("DAIKU_STORAGE__DATABASE_URL", url)
    monkeypatch.setenv("DAIKU_MEMORY__ENABLED", "true")
    done = daiku("memory", "list", "-C", str(workspace))
    assert done.code == 2
    assert why in done.err
    assert "geheim99" not in done.err
    assert sum(line.startswith("daiku:") for line in done.err.splitlines()) == 1


def test_a_run_is_told_what_is_remembered_only_where_the_settings_say_so(
    daiku: Daiku, script, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(workspace, "the deploy script is deploy.sh")
    model = script({"text": "ok"}, {"text": "ok"})
    asked = ("run", "which deploy script?", "--model", model, "--json")
    assert "deploy.sh" not in daiku(*asked).out
    monkeypatch.setenv("DAIKU_MEMORY__ENABLED", "true")
    started = daiku(*asked).chunks()[0]
    assert started["data"]["recalled"][0]["text"] == "the deploy script is deploy.sh"
    plain = daiku("run", "which deploy script?", "--model", model)
    assert "daiku memory forget" in plain.err


def test_without_the_key_of_the_embedder_it_is_still_listed_and_searched_by_words(
    daiku: Daiku, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(workspace, "Kenji prefers tabs")
    monkeypatch.setenv("DAIKU_MEMORY__EMBEDDER", "openai/text-embedding-3-small")
    assert "Kenji" in daiku("memory", "list", "-C", str(workspace)).out
    searched = daiku("memory", "search", "tabs", "-C", str(workspace))
    assert (searched.code, "Kenji" in searched.out, "key" in searched.err) == (0, True, True)
    monkeypatch.setenv("DAIKU_MEMORY__EMBEDDER", "anthropic/claude")
    wrong = daiku("memory", "list", "-C", str(workspace))
    assert (wrong.code, "is not an embedding model" in wrong.err) == (2, True)


def test_a_run_keeps_what_it_is_told_to(
    daiku: Daiku, script, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAIKU_MEMORY__ENABLED", "true")
    (home(os.environ) / "trusted-folders").write_text(f"{workspace.resolve()}\n")
    model = script({"calls": [call("memory/remember", text="Kenji prefers tabs")]}, {"text": "noted"})
    assert daiku("run", "remember: I prefer tabs", "--model", model).code == 0
    assert "Kenji prefers tabs" in daiku("memory", "list").out

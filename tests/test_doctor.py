"""What the doctor says of services: models that do not answer, the memory, the collector of traces."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daiku.api import DoctorFinding
from daiku.app import App, build
from daiku.doctor import check_app
from daiku.domain.errors import Failure, FailureKind, UsageError
from daiku.models.model import Models, ProviderModels
from daiku.models.table import LLMSettings
from daiku.settings import from_mapping
from daiku.settings.config import Config
from daiku.texts.text import Text, render
from daiku.workspace.disk import DiskWorkspace
from tests.postgres import NewDatabase
from tests.trace.telemetry.collectors import dead_address, http_collector
from tests.work.gitlabfake.fixture import GitLabYard, gitlab_forge

__all__ = ["gitlab_forge"]


class Unreachable(Models):
    """Models of which none can be listed."""

    async def list(self) -> tuple[ProviderModels, ...]:
        kinds: tuple[tuple[str, FailureKind], ...] = (
            ("openai", "auth"),
            ("gemini", "no_provider"),
            ("anthropic", "timeout"),
            ("ollama", "auth"),
        )
        return tuple(
            ProviderModels(name, (), Failure(kind=kind, message=Text(f"{name}: {kind}")))
            for name, kind in kinds
        )


async def test_a_key_is_offered_where_a_key_is_missing_or_wrong_and_not_where_nobody_answers(
    tmp_path: Path,
) -> None:
    app = build(Config(), workspace=DiskWorkspace((tmp_path,)), home=tmp_path / "home")
    found = await check_app(replace(app, llm=Unreachable(LLMSettings())))
    services = [each.action for each in found if each.area == "models" and each.state == "note"]
    assert services == ["key", "key", None, None]
    await app.aclose()


Built = Callable[..., App]


@pytest.fixture
async def built(tmp_path: Path) -> AsyncGenerator[Built]:
    """Builds Apps of these settings, and closes them."""
    apps: list[App] = []

    def make(**settings: Any) -> App:
        config = from_mapping(settings, {})
        app = build(config, workspace=DiskWorkspace((tmp_path,)), home=tmp_path / "home")
        apps.append(app)
        return replace(app, llm=Unreachable(LLMSettings()))

    yield make
    for app in apps:
        await app.aclose()


async def found(app: App, area: str) -> DoctorFinding:
    [one] = [each for each in await check_app(app) if each.area == area]
    return one


async def test_memory_is_told_off_or_with_its_store_and_what_it_compares(built: Built) -> None:
    off = await found(built(), "memory")
    assert (off.state, "off" in off.what, "memory.enabled = true" in off.mend) == ("good", True, True)
    words = await found(built(memory={"enabled": True}), "memory")
    assert (words.state, words.what.startswith("Memory: SQLite. It compares words")) == ("good", True)
    assert "memory.embedder" in words.mend
    assert render(words.what, "ja").startswith("記憶: SQLite。")
    assert "単語" in render(words.what, "ja")


async def test_a_memory_whose_model_for_meanings_cannot_be_asked_says_why(built: Built) -> None:
    app = built(memory={"enabled": True, "embedder": "openai/text-embedding-3-small"})
    told = await found(app, "memory")
    assert (told.state, "It compares words for now" in told.what, "OPENAI_API_KEY" in told.mend) == (
        "note",
        True,
        True,
    )


def test_a_database_that_cannot_be_reached_is_told_and_its_password_is_not(built: Built) -> None:
    with pytest.raises(UsageError, match=r"PostgreSQL at 127\.0\.0\.1:1/notes cannot be reached") as raised:
        built(storage={"database_url": "postgresql://ann:hidden-word@127.0.0.1:1/notes"})
    assert "hidden-word" not in raised.value.failure.model_dump_json()


@pytest.mark.slow
async def test_which_database_keeps_conversations_is_told_and_whether_it_answers(
    built: Built, postgres: NewDatabase
) -> None:
    assert "Conversations: SQLite" in await told(built())
    url = postgres()
    app = built(storage={"database_url": url}, memory={"enabled": True})
    database = url.rpartition("/")[2]
    assert f"Conversations: PostgreSQL 127.0.0.1/{database}" in await told(app)
    assert "canary-word" not in " ".join(await told(app))
    app.journal.database.write("ALTER TABLE sessions RENAME TO elsewhere")
    (wrong,) = [each for each in await check_app(app) if each.area == "daiku"]
    assert (wrong.state, "PostgreSQL" in wrong.what) == ("bad", True)


async def told(app: App) -> list[str]:
    """What the doctor says of Daiku itself."""
    return [str(each.what) for each in await check_app(app) if each.area == "daiku"]


async def test_a_collector_that_answers_is_good_and_whether_content_goes_there_is_said(built: Built) -> None:
    assert "this machine only" in (await found(built(), "trace")).what
    with http_collector() as collected:
        without = await found(built(trace={"otlp_endpoint": collected.address}), "trace")
        content = await found(built(trace={"otlp_endpoint": collected.address, "content": True}), "trace")
    assert (without.state, content.state) == ("good", "good")
    assert without.what == f"Traces are sent to {collected.address}/v1/traces, without message content"
    assert content.what == f"Traces are sent to {collected.address}/v1/traces, with message content"
    assert "会話の内容は送りません" in render(without.what, "ja")


@pytest.mark.parametrize("scheme", ["http", "grpc"])
async def test_a_collector_that_is_not_there_is_a_note_that_says_why(built: Built, scheme: str) -> None:
    address = dead_address(scheme).replace("://", "://ann:hidden-word@")
    told = await found(built(trace={"otlp_endpoint": address}), "trace")
    assert told.state == "note"
    assert "The collector does not accept traces now:" in told.what
    assert "trace.otlp_endpoint" in told.mend
    assert "hidden-word" not in told.model_dump_json()


async def test_a_collector_that_refuses_says_with_what(built: Built) -> None:
    with http_collector(401) as collected:
        told = await found(built(trace={"otlp_endpoint": collected.address}), "trace")
    assert (told.state, "HTTP 401" in told.what) == ("note", True)


async def on_work(app: App, language: str = "en") -> list[tuple[str, str, str]]:
    """What is said of work items: how it stands, what was found, what to do."""
    all_of = [each for each in await check_app(app) if each.area == "work"]
    return [(each.state, render(each.what, language), render(each.mend, language)) for each in all_of]


async def test_without_a_forge_it_is_told_how_to_name_one(built: Built) -> None:
    [(state, what, mend)] = await on_work(built())
    assert (state, "no GitHub or GitLab repository is configured" in what, "gitlab.projects" in mend) == (
        "good",
        True,
        True,
    )
    [(_, what, _)] = await on_work(built(), "ja")
    assert what.startswith("作業項目: ")


async def test_a_forge_without_its_token_is_told_by_the_name_of_the_variable(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITLAB_TOKEN", raising=False)
    monkeypatch.setattr("daiku.doctor.sandbox_state", lambda _: "on")
    [(state, what, _)] = await on_work(built(gitlab={"projects": ["group/name"]}))
    assert (state, "GITLAB_TOKEN" in what, "https://gitlab.com" in what) == ("bad", True, True)


async def test_a_forge_that_cannot_be_reached_is_told_without_its_token(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITLAB_TOKEN", "glpat-canary-0000")
    monkeypatch.setattr("daiku.items.forges.SECONDS", 0.3)
    address = f"{dead_address()}/api/v4"
    [(state, what, mend), *_] = await on_work(built(gitlab={"api_url": address, "projects": ["group/name"]}))
    assert (state, address in what) == ("bad", True)
    assert "canary" not in what + mend


async def test_a_forge_that_answers_is_told_with_what_waits_there_and_that_no_commands_are_run_without_a_sandbox(
    built: Built, monkeypatch: pytest.MonkeyPatch, gitlab_forge: GitLabYard
) -> None:
    monkeypatch.setenv("GITLAB_TOKEN", "glpat-bot")
    gitlab_forge.project("group/name")
    issues = gitlab_forge.client("dev").projects.get("group/name").issues
    issues.create({"title": "Add a discount", "labels": "coding agent"})
    monkeypatch.setattr("daiku.doctor.sandbox_state", lambda _: "missing")
    app = built(gitlab={"api_url": gitlab_forge.api_url, "projects": ["group/name"]})
    forge, commands = await on_work(app)
    assert forge[:2] == (
        "good",
        f"Work items from GitLab ({gitlab_forge.api_url}): 1 to process in group/name",
    )
    assert (commands[0], "commands are not run" in commands[1]) == ("note", True)


async def test_a_repository_that_is_not_there_is_told_by_its_name_beside_those_that_answer(
    built: Built, monkeypatch: pytest.MonkeyPatch, gitlab_forge: GitLabYard
) -> None:
    monkeypatch.setenv("GITLAB_TOKEN", "glpat-bot")
    monkeypatch.setattr("daiku.doctor.sandbox_state", lambda _: "on")
    gitlab_forge.project("group/name")
    projects = ["group/name", "group/nmae"]
    app = built(gitlab={"api_url": gitlab_forge.api_url, "projects": projects})
    answered, wrong = await on_work(app)
    assert answered[:2] == (
        "good",
        f"Work items from GitLab ({gitlab_forge.api_url}): 0 to process in group/name",
    )
    assert (wrong[0], "group/nmae" in wrong[1], "group/name" in wrong[1]) == ("bad", True, False)

"""What the doctor says can be done about a service that does not answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from daiku.app import build
from daiku.doctor import inside
from daiku.domain.errors import Failure, FailureKind
from daiku.llm.model import Models, ProviderModels
from daiku.llm.table import LLMSettings
from daiku.settings.config import Config
from daiku.texts.text import Text
from daiku.workspace.disk import DiskWorkspace


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
    found = await inside(replace(app, llm=Unreachable(LLMSettings())))
    services = [each.action for each in found if each.area == "models" and each.state == "note"]
    assert services == ["key", "key", None, None]
    await app.aclose()

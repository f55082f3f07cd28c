"""Each provider, by its own SDK, looks at a run: its service streams the reply as it does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.events import Notice
from daiku.domain.messages import Usage
from tests.llm.doors import DOORS, Door
from tests.llm.server import ModelServer, document
from tests.llm.talk import KEY
from tests.runs.recorded.looked_at import FAILED, INSIGHT, Place, store_of

REFLECTION = {
    "reasoning": "It failed.",
    "insights": [INSIGHT],
    "tags": [{"id": "tu-00001", "tag": "neutral"}],
}
CURATION = {
    "reasoning": "New.",
    "operations": [{"type": "ADD", "section": "environment", "content": INSIGHT}],
}


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    made = ModelServer()
    await made.start()
    yield made
    await made.stop()


def opened(folder: Path, door: Door, server: ModelServer, **more: Any) -> Place:
    """A workspace whose runs are looked at by the model behind this door."""
    place = Place(folder)
    root = "" if door.provider in ("anthropic", "gemini", "ollama") else "/v1"
    place.llm_settings = {
        door.provider: {"base_url": server.url + root, "api_key": KEY, "api": door.api, **more}
    }
    name = f"{door.provider}/{door.model}"
    place.agents = {"reflector": {"model": name}, "curator": {"model": name}}
    if door.provider == "ollama":
        shown = {"model_info": {"a.context_length": 30_000}, "capabilities": ["completion", "tools"]}
        server.answer("/api/show", document(shown))
    return place


@pytest.mark.parametrize("door", DOORS, ids=str)
async def test_a_model_of_each_provider_looks_at_a_run_in_the_form_that_is_published(
    tmp_path: Path, server: ModelServer, door: Door
) -> None:
    """PROTOCOL 9: the JSON of the Reflector and of the Curator; the schemas went along as tools."""
    place = opened(tmp_path, door, server)
    server.answer(door.path, *(door.says([json.dumps(said)], "stop") for said in (REFLECTION, CURATION)))
    app = place.app(FAILED, "No.")
    chunks = await place.worked(app)
    assert [each.content for each in store_of(app).deltas("proposed")] == [INSIGHT]
    used = [c.event for c in chunks if isinstance(c.event, Usage) and c.parent is not None]
    assert [each.model for each in used] == [f"{door.provider}/{door.model}"] * 2
    bodies = [json.dumps(each.json) for each in server.asked if each.path.startswith(door.path)]
    assert [("report__reflection" in body, "report__curation" in body) for body in bodies] == [
        (True, False),
        (False, True),
    ]
    await app.aclose()


async def test_without_a_key_rules_learn_alone_and_it_is_said(tmp_path: Path, server: ModelServer) -> None:
    door = next(each for each in DOORS if each.provider == "anthropic")
    place = opened(tmp_path, door, server)
    place.llm_settings = {}
    app = place.app(FAILED, "No.")
    chunks = await place.worked(app)
    (notice,) = [c.event for c in chunks if isinstance(c.event, Notice)]
    assert "learns lessons only by rules" in str(notice.text)
    assert notice.text.id == "playbook.rules_only"
    assert server.asked == []
    await app.aclose()


async def test_a_service_that_fails_leaves_it_to_the_rules(tmp_path: Path, server: ModelServer) -> None:
    door = next(each for each in DOORS if each.provider == "openai")
    place = opened(tmp_path, door, server)
    server.answer(door.path, document({"error": {"message": "bad request"}}, 400))
    app = place.app(FAILED, "No.")
    chunks = await place.worked(app)
    assert len([c for c in chunks if isinstance(c.event, Notice)]) == 1
    assert [c for c in chunks if c.parent is not None] == []
    await app.aclose()

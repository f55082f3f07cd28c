"""Prompt caches: each request begins as the one before ended, for every protocol and across changes of mode."""

from __future__ import annotations

import json
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import pytest

from daiku.app import build
from daiku.domain.runs import Mode, RunLimits
from daiku.llm.tokens import estimate
from daiku.runs.runs import RunRequest
from daiku.settings import load
from daiku.workspace.disk import DiskWorkspace
from tests.runs.playing import Watch
from tests.services.models import PROTOCOLS, Protocol, Said, serving

TURNS = 20
SCRIPT = [
    *(
        Said([f"I look at part {n}."], [("files__read", {"path": f"pkg{n % 4}/f{n}.txt"})])
        for n in range(TURNS)
    ),
    Said(["Done."]),
]
HISTORY = ("messages", "input", "contents")
CONTENT = ("system", "instructions", "systemInstruction", "tools")


def cached(body: dict[str, Any]) -> str:
    """What a service's cache reads, in its order: tools and system, then the conversation. Marks
    that say where to cache are not part of what is cached."""
    fixed = {key: body[key] for key in CONTENT if key in body}
    history = next(body[key] for key in HISTORY if key in body)
    text = json.dumps(unmarked(fixed), sort_keys=True) + json.dumps(unmarked(history), sort_keys=True)
    return text.rstrip("]")


def shared(before: str, after: str) -> int:
    """Characters that both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))


def unmarked(value: Any) -> Any:
    match value:
        case dict():
            return {k: unmarked(v) for k, v in value.items() if k != "cache_control"}
        case list():
            return [unmarked(v) for v in value]
        case _:
            return value


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_each_request_begins_as_the_one_before(tmp_path: Path, protocol: Protocol) -> None:
    project = tmp_path / "project"
    (project).mkdir()
    (project / "AGENTS.md").write_text("Use tabs.\n" * 20)
    for n in range(TURNS):
        place = project / f"pkg{n % 4}"
        place.mkdir(exist_ok=True)
        (place / "AGENTS.md").write_text(f"Rules of package {n % 4}.\n")
        (place / f"f{n}.txt").write_text(f"line {n}\n" * 30)
    async with serving(SCRIPT) as service:
        environ = {**service.environment(protocol), "DAIKU_SANDBOX__MODE": "off"}
        config = load(workspace=project, trusted=True, environ=environ).config
        app = build(config, workspace=DiskWorkspace((project,)), home=tmp_path / "home")
        request = RunRequest("Read it all", approvals="all", limits=RunLimits(max_rounds=TURNS + 5))
        result = await app.runs.run(request, Watch())
        await app.aclose()
    assert result.status == "completed", result
    bodies = [r["body"] for r in service.requests if any(key in r["body"] for key in HISTORY)]
    texts = [cached(body) for body in bodies]
    assert len(texts) == TURNS + 1
    shares = [shared(before, after) / len(before) for before, after in pairwise(texts)]
    assert min(shares) >= 0.9, shares


LONG = 30
"""Turns of the session in which the share of the cache is measured, in three runs of ten."""
LEAST_SHARE = 0.94
MODES: tuple[Mode, ...] = ("act", "plan", "act")
"""Of the three runs: what is sent first is the same in every mode."""


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["anthropic", "openai-responses", "openai-chat", "gemini"])
async def test_nearly_all_of_thirty_turns_was_sent_before(tmp_path: Path, protocol: Protocol) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for n in range(LONG):
        (project / f"f{n}.txt").write_text(f"value_{n} = compute({n})\n" * 12)
    each = LONG // len(MODES)
    script = [
        said
        for part in range(len(MODES))
        for said in (
            *(Said([], [("files__read", {"path": f"f{part * each + n}.txt"})]) for n in range(each - 1)),
            Said(["Done."]),
        )
    ]
    async with serving(script) as service:
        environ = {**service.environment(protocol), "DAIKU_SANDBOX__MODE": "off"}
        config = load(workspace=project, trusted=True, environ=environ).config
        app = build(config, workspace=DiskWorkspace((project,)), home=tmp_path / "home")
        session = None
        for mode in MODES:
            request = RunRequest("Read on", approvals="all", mode=mode, session=session)
            result = await app.runs.run(request, Watch())
            assert result.status == "completed", result
            session = result.session_id
        await app.aclose()
    bodies = [r["body"] for r in service.requests if any(key in r["body"] for key in HISTORY)]
    texts = [cached(body) for body in bodies]
    assert len(texts) == LONG
    again = [0, *(estimate(after[: shared(before, after)]) for before, after in pairwise(texts))]
    sent = [estimate(text) for text in texts]
    share = sum(again) / sum(sent)
    assert share >= LEAST_SHARE, f"{share:.1%} of {sum(sent):,} tokens"

"""Prompt caches: each request begins as the one before ended, for every protocol and across changes of mode."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import partial
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import pytest

from daiku.app import build
from daiku.domain.events import RunStarted, ToolCallEvent
from daiku.domain.runs import Mode, RunLimits, has_answer
from daiku.models.tokens import estimate
from daiku.run.runs import RunRequest
from daiku.settings import load
from daiku.workspace.disk import DiskWorkspace
from tests.playbook.told import learn
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


told = partial(print, file=sys.stderr)
"""Figures, which `pytest -s` shows."""
LONG = 30
"""Turns of the session in which the share of the cache is measured, in three runs of ten."""
LEAST_SHARE = 0.94
MODES: tuple[Mode, ...] = ("act", "plan", "act")
"""Of the three runs: what is sent first is the same in every mode."""


ASKED = "Read on"
"""What the person writes; an explorer is not told it."""
BESIDES: Mapping[int, tuple[str, dict[str, Any]]] = {
    2: ("todo__write", {"items": [{"title": f"Read part {n}", "status": "pending"} for n in range(4)]}),
    4: ("tools__find", {"query": "symbols"}),
    5: ("tools__call", {"tool": "search__symbols", "args": {"name": "compute"}}),
    7: ("agent__explore", {"questions": ["Where is value_3 made?"]}),
    13: ("tools__call", {"tool": "git__status", "args": {}}),
    22: ("todo__write", {"items": [{"title": "Read part 3", "status": "completed"}]}),
    24: ("tools__call", {"tool": "files__move", "args": {"path": "f1.txt", "to": "g1.txt"}}),
}
"""Turns, by number, that do something else than to read the next file."""


def is_asked(body: Mapping[str, Any]) -> bool:
    """Whether a request is of the conversation that is measured, and not an explorer's."""
    history = next((body[key] for key in HISTORY if key in body), None)
    return history is not None and ASKED in json.dumps(history)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["anthropic", "openai-responses", "openai-chat", "gemini"])
async def test_nearly_all_of_thirty_turns_was_sent_before(tmp_path: Path, protocol: Protocol) -> None:
    """Three runs in one session, in act, plan and act mode, with tools that had to be found, a todo list, an explorer, and
    lessons of which one is new and one has changed before each run; nothing is condensed."""
    project = tmp_path / "project"
    project.mkdir()
    for n in range(LONG):
        (project / f"f{n}.txt").write_text(f"value_{n} = compute({n})\n" * 12)
    each = LONG // len(MODES)
    turns = iter(
        Said(["Done."])
        if n % each == each - 1
        else Said([], [BESIDES.get(n, ("files__read", {"path": f"f{n}.txt"}))])
        for n in range(LONG)
    )
    explorer = iter([Said([], [("search__text", {"pattern": "value_3"})]), Said(["In f3.txt:1."])])

    def says(history: list[dict[str, Any]]) -> Said:
        return next(turns if is_asked({"messages": history}) else explorer)

    watch = Watch()
    async with serving(says) as service:
        environ = {**service.environment(protocol), "DAIKU_SANDBOX__MODE": "off"}
        environ["DAIKU_PLAYBOOK__REFLECTIONS"] = "0"  # runs that leave items open are looked at by a model
        config = load(workspace=project, trusted=True, environ=environ).config
        app = build(config, workspace=DiskWorkspace((project,)), home=tmp_path / "home")
        session = None
        lesson = learn(app, "Values are made by compute().")
        for number, mode in enumerate(MODES):
            learn(app, f"Values are made by compute(), {number} by hand.", type="update", bullet_id=lesson)
            learn(app, f"Part {number} is read last.")
            request = RunRequest(ASKED, approvals="all", mode=mode, session=session)
            result = await app.runs.run(request, watch)
            assert has_answer(result.status), result  # its list of items stays open at times
            session = result.session_id
        await app.aclose()
    called = [c.event.tool for c in watch.chunks if isinstance(c.event, ToolCallEvent)]
    assert {"search/symbols", "git/status", "files/move", "agent/explore", "todo/write"} <= set(called)
    starts = [c.event for c in watch.chunks if isinstance(c.event, RunStarted) and c.parent is None]
    assert [len(start.lessons) for start in starts] == [2, 3, 4]
    assert (project / "g1.txt").is_file()
    assert not {"compacted", "pruned"} & set(watch.types())
    bodies = [r["body"] for r in service.requests if is_asked(r["body"])]
    texts = [cached(body) for body in bodies]
    assert len(texts) == LONG
    again = [0, *(estimate(after[: shared(before, after)]) for before, after in pairwise(texts))]
    sent = [estimate(text) for text in texts]
    share = sum(again) / sum(sent)
    told(f"{protocol}: {share:.1%} of {sum(sent):,} tokens was sent before")
    assert share >= LEAST_SHARE, f"{share:.1%} of {sum(sent):,} tokens"


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_plan_and_then_act_mode_send_the_same_bytes_of_tools_and_system_text(
    tmp_path: Path, protocol: Protocol
) -> None:
    (tmp_path / "project").mkdir()
    async with serving([Said(["Planned."]), Said(["Done."])]) as service:
        environ = {**service.environment(protocol), "DAIKU_SANDBOX__MODE": "off"}
        config = load(workspace=tmp_path / "project", trusted=True, environ=environ).config
        session = None
        for mode in MODES[1:]:  # each in a process of its own, as `daiku run --continue` does it
            app = build(config, workspace=DiskWorkspace((tmp_path / "project",)), home=tmp_path / "home")
            result = await app.runs.run(RunRequest(ASKED, mode=mode, session=session), Watch())
            await app.aclose()
            assert has_answer(result.status), result
            session = result.session_id
    plan, act = (r["body"] for r in service.requests if is_asked(r["body"]))
    assert fixed(plan) == fixed(act)
    assert b"files__read" in fixed(act)
    assert b"You are Daiku" in fixed(act)


def fixed(body: Mapping[str, Any]) -> bytes:
    """What a service gets besides the conversation, in the order in which it came, as it was written."""
    first = [m for key in HISTORY for m in body.get(key, ()) if m.get("role") in ("system", "developer")]
    return json.dumps([{key: body[key] for key in body if key in CONTENT}, first]).encode()

"""A repository of small parts, runs on record that put each of them right, and a model over HTTP that follows its lessons."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from typing import Any

import pytest

from daiku.app import build
from daiku.core.playbook.gate.heldout import is_held_out
from daiku.domain.config import SandboxSettings
from daiku.domain.playbook import Delta, LearntFrom
from daiku.playbook.repository import open_playbooks
from daiku.playbook.store import PlaybookStore
from daiku.runs import RunRequest
from daiku.settings import load
from daiku.settings.config import PlaybookSettings
from daiku.settings.trust import set_trusted
from daiku.trace.stores import Stores, open_stores
from daiku.workspace.disk import DiskWorkspace
from tests.conftest import ROOT
from tests.runs.playing import Watch
from tests.sdk.trials.project import Project, project
from tests.services import models
from tests.services.models import Json, Said, Service, serving

PARTS = 13
"""So many runs are on record: the first one taught, the others judge."""
GOOD = "A part of this project is right when its VALUE is sevenfold its number."
HARMFUL = "A part of this project is right when its VALUE is half of its number."
IDLE = "A part of this project is made right calmly and with care."
CHECK = """import importlib, sys
part = importlib.import_module(f"part_{sys.argv[1]}")
assert part.VALUE == 7 * int(sys.argv[1])
"""


@dataclass
class Actor:
    """What the model does. On record it finds the right value by luck. Tried again it knows that of every other part; of the
    others only where a lesson says so; and it does harm where a lesson says that."""

    recording: bool = True
    runs: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the trial `until` is under way."""
    until: int = 0

    def __call__(self, messages: list[Json]) -> Said:
        said = "\n".join(json.dumps(m["content"]) for m in messages if m.get("role") == "user")
        part = re.findall(r"part (\d\d)", said)[-1]
        done = sum(m.get("role") == "assistant" for m in messages)
        self.runs += not done
        if self.runs == self.until:
            self.reached.set()
        right = self.recording or "sevenfold" in said or int(part) % 2 == 0
        value = 7 * int(part) if right and "half of its" not in said else 3
        change = {"search": "VALUE = None", "replace": f"VALUE = {value}"}
        edit = ("files__edit", {"path": f"part_{part}.py", "edits": [change]})
        check = ("shell__run", {"command": f"python3 -B check.py {part}"})
        steps = [check, edit, check] if self.recording else [edit]
        return Said(calls=(steps[done],)) if done < len(steps) else Said(pieces=("Done.",))


@dataclass
class Recorded:
    """The repository with its runs on record, and the service that plays the model."""

    place: Project
    service: Service
    actor: Actor
    sessions: list[str] = field(default_factory=list[str])

    def stores(self) -> Stores:
        return open_stores(self.place.home / "daiku.db", str)

    def propose(self, *contents: str) -> list[Delta]:
        """Changes that wait, learnt from the first run."""
        with closing(self.stores()) as stores:
            store = self.store(stores)
            place = LearntFrom(session_id=self.sessions[0], run_id="run")
            return [
                store.propose(
                    Delta(
                        id="",
                        type="add",
                        section="project_conventions",
                        content=each,
                        origin="rule",
                        evidence=(place,),
                    )
                )
                for each in contents
            ]

    def store(self, stores: Stores) -> PlaybookStore:
        found = open_playbooks(stores.database, (self.place.folder,)).repository
        assert found is not None
        return found

    async def start(self, *args: str) -> asyncio.subprocess.Process:
        """`daiku playbook adapt` as cron starts it: a process of its own without a terminal."""
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "daiku", "playbook", "adapt", *args),
            cwd=self.place.folder,
            env={
                **os.environ,
                **self.place.environ,
                **environment(self.service),
                "DAIKU_HOME": str(self.place.home),
                "PYTHONPATH": str(ROOT / "server"),
                "LC_ALL": "C.UTF-8",
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def adapt(self, *args: str, code: int = 0) -> tuple[Any, str]:
        """The document that it prints, and what it tells a person."""
        process = await self.start(*args, "--json")
        out, err = await process.communicate()
        assert process.returncode == code, err.decode()
        return json.loads(out) if out else None, err.decode()


def environment(service: Service) -> dict[str, str]:
    return {**service.environment("openai-chat"), "DAIKU_LLM__MODEL": "openai/gpt-6.2-sol"}


@asynccontextmanager
async def recorded(monkeypatch: pytest.MonkeyPatch, parts: int = PARTS) -> AsyncGenerator[Recorded]:
    """The repository, for as long as the block runs."""
    monkeypatch.setattr(models, "PROMPT_TOKENS", 9_000)
    monkeypatch.setattr(models, "COMPLETION_TOKENS", 300)
    actor = Actor()
    with project() as place:
        async with serving(actor) as service:
            made = Recorded(place, service, actor)
            place.write(
                check__py=CHECK, **{f"part_{n:02}__py": "VALUE = None\n" for n in range(1, parts + 1)}
            )
            place.commit("Parts")
            for name, value in environment(service).items():
                monkeypatch.setenv(name, value)
            place.home.mkdir(exist_ok=True)
            set_trusted(place.home, place.folder, trusted=True)
            await _record(made, parts)
            actor.recording = False
            actor.runs = 0
            yield made


async def _record(made: Recorded, parts: int) -> None:
    place = made.place
    loaded = load(workspace=place.folder, trusted=True, environ=os.environ)
    config = loaded.config.model_copy(
        update={"sandbox": SandboxSettings(mode="off"), "playbook": PlaybookSettings()}
    )
    app = build(config, workspace=DiskWorkspace((place.folder,)), home=place.home)
    try:
        for number in range(1, parts + 1):
            session = ""
            while not session or not is_held_out(session):
                session = app.journal.new_session(workspace=str(place.folder)).session_id
            asked = f"Make part {number:02} of this project right, as check.py has it."
            watch = Watch()
            await app.runs.run(RunRequest(asked, session=session, approvals="all"), watch)
            made.sessions.append(session)
    finally:
        await app.aclose()

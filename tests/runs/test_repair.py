"""Repositories whose tests fail, a model whose first patch is wrong: the repair sees why, the checks say when it is done.

Three languages, real compilers and test runners; the model is a service on loopback, asked over HTTP.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from daiku.app import App, build
from daiku.domain.chunks import Chunk
from daiku.domain.events import Edit, PlanEvent, ToolCallEvent, ToolResponse
from daiku.domain.runs import RunResult
from daiku.domain.work.plans import Plan
from daiku.run.request import RunRequest
from daiku.settings import load
from daiku.workspace.disk import DiskWorkspace
from tests.lsp.conftest import connected
from tests.runs.playing import Watch
from tests.services.models import MODEL, Said, Service, serving

pytestmark = pytest.mark.slow

Json = dict[str, Any]
Patch = tuple[str, str]
GOAL = "Make the test of the cart pass."
STEP = "Repair the cart"


@dataclass(frozen=True)
class Project:
    """A repository whose test fails. `wrong` leaves it failing for another reason, which is `seen` in
    what the check then writes to stderr and nowhere in the repository; `right` puts it right after that."""

    language: str
    needs: str
    files: dict[str, str]
    broken: str
    wrong: Patch
    right: Patch
    check: str
    first: str
    seen: str

    def __str__(self) -> str:
        return self.language


PYTHON = Project(
    language="python",
    needs="python3",
    files={
        "cart.py": "def total(prices):\n    return prices[0]\n",
        "test_cart.py": (
            "import unittest\n\nfrom cart import total\n\n\nclass TestCart(unittest.TestCase):\n"
            "    def test_total(self):\n        self.assertEqual(total([2, 4, 8]), 14)\n"
        ),
    },
    broken="cart.py",
    wrong=("return prices[0]", "return sum(prices[1:])"),
    right=("sum(prices[1:])", "sum(prices)"),
    check="python3 -m unittest test_cart",
    first="2 != 14",
    seen="12 != 14",
)
JAVASCRIPT = Project(
    language="javascript",
    needs="node",
    files={
        "cart.mjs": "export const total = (prices) => prices[0];\n",
        "cart.test.mjs": (
            'import assert from "node:assert/strict";\nimport { test } from "node:test";\n'
            'import { total } from "./cart.mjs";\n\n'
            'test("total", () => assert.equal(total([2, 4, 8]), 14));\n'
        ),
    },
    broken="cart.mjs",
    wrong=("prices[0]", "prices.reduce((sum, price) => summe + price, 0)"),
    right=("summe + price", "sum + price"),
    check="node --test --test-reporter=spec --test-reporter-destination=stderr cart.test.mjs",
    first="2 !== 14",
    seen="summe is not defined",
)
C = Project(
    language="c",
    needs="cc",
    files={
        "cart.h": "int total(const int *prices, int count);\n",
        "cart.c": '#include "cart.h"\n\nint total(const int *prices, int count) {\n    return prices[0];\n}\n',
        "test_cart.c": (
            '#include <stdio.h>\n#include "cart.h"\n\nint main(void) {\n    int prices[] = {2, 4, 8};\n'
            "    int got = total(prices, 3);\n    if (got == 14) return 0;\n"
            '    fprintf(stderr, "total: %d instead of 14\\n", got);\n    return 1;\n}\n'
        ),
    },
    broken="cart.c",
    wrong=("return prices[0];", "int sum = 0;\n    while (count) sum += prices[--counter];\n    return sum;"),
    right=("--counter", "--count"),
    check="cc -o test_cart cart.c test_cart.c && ./test_cart",
    first="2 instead of 14",
    seen="‘counter’ undeclared",
)
PROJECTS = (PYTHON, JAVASCRIPT, C)


@pytest.fixture(params=PROJECTS, ids=str)
def project(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The repository, in the folder `project`."""
    found: Project = request.param
    if shutil.which(found.needs) is None:
        # A machine without the language's compiler or interpreter cannot run the project.
        pytest.skip(f"{found.needs} is not on this machine")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    (tmp_path / "project").mkdir()
    for name, text in found.files.items():
        (tmp_path / "project" / name).write_text(text)
    return found


# ---- the model: it sees what it was sent, and nothing else


def text_of(messages: list[Json]) -> str:
    return json.dumps(messages, ensure_ascii=False)


def call(tool: str, **args: Any) -> Said:
    return Said(calls=[(tool.replace("/", "__"), args)])


def edit(project: Project, patch: Patch) -> Said:
    search, replace = patch
    return call("files/edit", path=project.broken, edits=[{"search": search, "replace": replace}])


def proposal(project: Project) -> Said:
    step = {"name": STEP, "description": f"Mend {project.broken}", "acceptance": [project.check]}
    return call("plan/propose", goal=GOAL, steps=[step])


def replies(messages: list[Json]) -> int:
    return sum(m["role"] == "assistant" for m in messages)


Model = Callable[[list[Json]], Said]


def in_team(project: Project, coder: Model) -> Model:
    """A model that plays every stage; as coder it makes the one call that `coder` chooses."""

    def answer(messages: list[Json]) -> Said:
        system, turn = str(messages[0]["content"]), replies(messages)
        if "now you plan" in system:
            return Said(["That is the plan."]) if turn else proposal(project)
        if "now you research" in system:
            return Said(['{"queries": [], "ask_user": ""}'])
        if "now you run commands" in system:
            return Said(['{"commands": []}'])
        if "now you report" in system:
            claims = [{"text": "The test of the cart passes.", "refs": []}]
            return Said([json.dumps({"text": "Everything is done.", "claims": claims})])
        return Said(["It is mended."]) if turn else coder(messages)

    return answer


def alone(project: Project, *turns: Said) -> Model:
    """A model that works as the one coordinator: its plan is approved first, then `turns`."""
    whole = (
        proposal(project),
        call("plan/approve"),
        call("plan/update_step", step_id="1", status="in_progress"),
        *turns,
    )
    return lambda messages: whole[min(replies(messages), len(whole) - 1)]


# ---- the run


@dataclass
class Played:
    """What came of a run."""

    result: RunResult
    chunks: list[Chunk]
    service: Service

    @property
    def plan(self) -> Plan:
        return [c.event.plan for c in self.chunks if isinstance(c.event, PlanEvent)][-1]

    @property
    def edits(self) -> int:
        return sum(isinstance(c.event, Edit) for c in self.chunks)

    def exit_codes(self, check: str) -> list[Any]:
        """Of the runs of the check that really took place."""
        calls = {
            c.event.id: c.event
            for c in self.chunks
            if isinstance(c.event, ToolCallEvent) and c.event.args.get("command") == check
        }
        answers = [c.event for c in self.chunks if isinstance(c.event, ToolResponse) and c.event.id in calls]
        return [(a.data or {}).get("exitCode") for a in answers]

    def prompts(self) -> list[str]:
        """The messages of every request, as text."""
        bodies = [r["body"] for r in self.service.requests if "messages" in r["body"]]
        return [text_of(body["messages"]) for body in bodies]


@asynccontextmanager
async def opened(folder: Path, model: Model) -> AsyncGenerator[tuple[App, Service]]:
    async with serving(model) as service:
        environ = {**service.environment("openai-chat"), "DAIKU_SANDBOX__MODE": "off"}
        config = load(workspace=folder / "project", trusted=True, environ=environ).config
        app = build(config, workspace=DiskWorkspace((folder / "project",)), home=folder / "home")
        try:
            yield app, service
        finally:
            await app.aclose()


async def play(folder: Path, model: Model, *, agent: str = "coordinator") -> Played:
    watch = Watch()
    async with opened(folder, model) as (app, service):
        result = await app.runs.run(RunRequest(GOAL, agent=agent, approvals="all"), watch)
    return Played(result, watch.chunks, service)


async def test_the_team_sees_why_its_first_patch_fails_and_is_done_when_the_check_passes(
    project: Project, tmp_path: Path
) -> None:
    def coder(messages: list[Json]) -> Said:
        return edit(project, project.right if project.seen in text_of(messages) else project.wrong)

    played = await play(tmp_path, in_team(project, coder), agent="team")
    assert played.result.status == "completed", played.result
    assert played.edits == 2, "the wrong patch, then the right one"
    codes = played.exit_codes(project.check)
    assert codes[0] not in (0, None)
    assert codes[-1] == 0
    assert [s.status for s in played.plan.steps] == ["completed"]
    assert project.seen in next(p for p in played.prompts() if "This step is not done yet" in p)
    assert "its checks pass" in played.result.text


async def test_the_team_leaves_the_step_open_when_the_coder_only_says_that_it_is_done(
    project: Project, tmp_path: Path
) -> None:
    def coder(messages: list[Json]) -> Said:
        told = text_of(messages)
        return call("files/write", path="NOTES.md", content=f"Mended, {len(told)}.\n")

    played = await play(tmp_path, in_team(project, coder), agent="team")
    assert [s.status for s in played.plan.steps if s.status == "completed"] == []
    assert played.plan.status != "completed"
    assert 0 not in played.exit_codes(project.check)
    assert f"step “{STEP}”" in played.result.text, (
        "the reporter says that all is done; the records say what is not"
    )
    assert "its checks pass" not in played.result.text
    assert "The test of the cart passes. (not checked)" in played.result.text


async def test_one_agent_alone_repairs_by_what_the_check_says(project: Project, tmp_path: Path) -> None:
    run, finish = (
        call("shell/run", command=project.check),
        call("plan/update_step", step_id="1", status="completed"),
    )
    model = alone(
        project,
        run,
        edit(project, project.wrong),
        finish,
        run,
        edit(project, project.right),
        run,
        finish,
        Said(["It is mended."]),
    )
    played = await play(tmp_path, model)
    assert played.result.status == "completed", played.result
    first, second, third = played.exit_codes(project.check)
    assert first not in (0, None)
    assert second not in (0, None)
    assert third == 0
    refused = [
        c.event
        for c in played.chunks
        if isinstance(c.event, ToolResponse) and c.event.tool == "plan/update_step" and not c.event.ok
    ]
    assert len(refused) == 1
    assert f"Run exactly `{project.check}`" in refused[0].result
    prompts = played.prompts()
    assert project.first in prompts[4], "before its first patch the model sees how the test fails"
    assert project.seen not in prompts[5]
    assert project.seen in prompts[7], "before its second patch it sees what the first has made of it"
    assert [s.status for s in played.plan.steps] == ["completed"]


async def test_one_agent_alone_that_lies_leaves_the_step_open_and_that_is_told(
    project: Project, tmp_path: Path
) -> None:
    finish = call("plan/update_step", step_id="1", status="completed")
    model = alone(project, edit(project, project.wrong), finish, Said(["All tests pass. It is done."]))
    played = await play(tmp_path, model)
    assert [s.status for s in played.plan.steps] == ["in_progress"]
    assert played.exit_codes(project.check) == []
    told = [c.data for c in played.chunks if c.type == "notice"]
    assert any(STEP in text and "0 of 1 steps are done" in text for text in map(str, told)), told


async def test_a_plan_that_is_started_over_the_wire_reports_with_proofs_what_was_mended(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def coder(messages: list[Json]) -> Said:
        return edit(project, project.right if project.seen in text_of(messages) else project.wrong)

    done = await started_over_the_wire(project, tmp_path, coder, monkeypatch)
    assert [s["status"] for s in done["plan"]["steps"]] == ["completed"]
    assert done["plan"]["status"] == "completed"
    proofs = [proof for claim in done["report"]["claims"] for proof in claim["proofs"]]
    shown = [(p["subject"], p["ok"]) for p in proofs if p["kind"] == "exit_code"]
    assert (project.check, True) in shown, done["report"]


async def test_a_plan_that_is_started_over_the_wire_is_not_done_by_word(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def coder(messages: list[Json]) -> Said:
        return call("files/write", path="NOTES.md", content=f"Mended, {len(text_of(messages))}.\n")

    done = await started_over_the_wire(project, tmp_path, coder, monkeypatch)
    assert all(step["status"] != "completed" for step in done["plan"]["steps"])
    assert all(not claim["proofs"] or not claim["proofs"][0]["ok"] for claim in done["report"]["claims"])


async def started_over_the_wire(
    project: Project, folder: Path, coder: Model, monkeypatch: pytest.MonkeyPatch
) -> Json:
    """The result of `daiku/plan/run` for a plan that a person wrote as a checklist."""
    checklist = f"# Mend the cart\n\n{GOAL}\n\n- [ ] Step 1: {STEP}\n  Check: `{project.check}`\n"
    async with serving(in_team(project, coder)) as service:
        for name, value in service.environment("openai-chat").items():
            monkeypatch.setenv(name, value)
        settings = {
            "llm": {"model": f"openai/{MODEL}", "openai": {"api": "chat"}},
            "sandbox": {"mode": "off"},
        }
        async with connected(folder / "project", settings=settings, trusted=True) as server:
            plan = await server.client.request("daiku/plan/import", {"markdown": checklist})
            assert plan["steps"][0]["acceptance"] == [project.check]
            async with asyncio.timeout(60):
                params = {"planId": plan["planId"], "approvals": "all"}
                return await server.client.start("daiku/plan/run", params)

"""Plans over the wire: written in, worked by the team with a report, written out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daiku import api
from daiku.domain.chunks import Chunk, encode_event
from daiku.domain.events import Event, PlanEvent, RunStarted
from daiku.domain.work.plans import Plan
from daiku.team.coding.planner import find_planner_request
from tests.lsp.conftest import connected
from tests.runs.nested.test_team import AT_1, AT_2, CODER, NOTHING_TO_LOOK_UP, RUNS_NOTHING, by, write

Script = Callable[..., str]

CHECKLIST = """# Greeting

> Say hello

- [ ] Step 1: Write a
  - Check: `grep -q one a.txt`
- [ ] Step 2: Write b
  - Check: `test -e b.txt`
  - Depends on: 1
"""
JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
SETTINGS = {"llm": {"provider": "scripted"}, "sandbox": {"mode": "off"}}
WORK = (
    NOTHING_TO_LOOK_UP,
    by(CODER, calls=[write("a.txt", "one\n")], when=AT_1),
    by(CODER, calls=[write("b.txt", "two\n")], when=AT_2),
    by(CODER, text="Wrote it.", when="Made "),
    RUNS_NOTHING,
)


def reporting(*claims: dict[str, Any]) -> dict[str, Any]:
    return by("now you report", text=json.dumps({"text": "All is done.", "claims": list(claims)}))


async def test_a_checklist_becomes_a_plan_that_is_worked_and_written_out(
    workspace: Path, script: Script
) -> None:
    model = script(*WORK, reporting())
    async with connected(workspace, settings=SETTINGS) as server:
        ask = server.client.request
        plan = await ask("daiku/plan/import", {"markdown": CHECKLIST})
        assert [s["name"] for s in plan["steps"]] == ["Write a", "Write b"]
        assert plan["status"] == "draft"
        assert await ask("daiku/plan/get", {"planId": plan["planId"]}) == plan

        result = await ask(
            "daiku/plan/run",
            {"planId": plan["planId"], "model": model, "approvals": "all", "partialResultToken": "t"},
        )
        api.PlanRunResult.model_validate(result)
        assert result["status"] == "completed"
        assert [s["status"] for s in result["plan"]["steps"]] == ["completed", "completed"]
        assert (workspace / "a.txt").read_text() == "one\n"
        chunks = server.client.chunks("t")
        assert "planner" not in {c["agent"] for c in chunks}  # there is a plan already

        first = result["report"]["claims"][0]
        assert first["text"] == "Step 1, “Write a”, is done: its checks pass."
        [proof] = first["proofs"]
        called = next(
            c["data"] for c in chunks if c["type"] == "tool_call" and c["data"]["id"] == proof["ref"]
        )
        assert called["args"]["command"] == proof["subject"] == "grep -q one a.txt"
        assert (proof["ok"], proof["value"]) == (True, "0")

        text = (await ask("daiku/plan/export", {"planId": plan["planId"]}))["text"]
        assert f"- [x] Step 1: Write a `{plan['steps'][0]['stepId']}`" in text
        assert "*Progress: 2/2 (100%)*" in text
        session = (await ask("daiku/session/get", {"sessionId": result["sessionId"]}))["session"]
        assert session["title"] == "Greeting"


async def test_a_claim_with_an_invented_reference_is_not_shown_as_proven(
    workspace: Path, script: Script
) -> None:
    invented = {"text": "It runs on the moon.", "proofs": ["call_invented"]}
    model = script(*WORK, *(reporting(invented) for _ in range(9)))
    async with connected(workspace, settings=SETTINGS) as server:
        ask = server.client.request
        plan = await ask("daiku/plan/import", {"markdown": CHECKLIST})
        result = await ask("daiku/plan/run", {"planId": plan["planId"], "model": model, "approvals": "all"})
        assert not [
            claim for claim in result["report"]["claims"] if "moon" in claim["text"] and claim["proofs"]
        ]
        assert len([claim for claim in result["report"]["claims"] if claim["proofs"]]) >= 2


def test_who_works_a_plan_is_told_what_the_planner_was_asked() -> None:
    plan = Plan(plan_id="plan_00000001", name="Roman", goal="Numerals")
    other = plan.model_copy(update={"plan_id": "plan_00000002"})

    def record(agent: str, *events: Event) -> list[Chunk]:
        return [Chunk(1, "", "ses_1", f"run_{agent}", agent, event, encode_event(event)) for event in events]

    planned = record("planner", RunStarted(prompt="Add Roman numerals, with a test."), PlanEvent(plan=plan))
    assert find_planner_request(plan, planned) == "Add Roman numerals, with a test."
    changed = record("team", RunStarted(prompt="Something else"), PlanEvent(plan=plan))
    assert find_planner_request(plan, [*planned, *changed]) == "Add Roman numerals, with a test."
    by_the_coordinator = record("coordinator", RunStarted(prompt="Yes."), PlanEvent(plan=other))
    assert find_planner_request(other, [*planned, *by_the_coordinator]) == "Numerals"
    assert find_planner_request(plan, []) == "Numerals", "imported"


async def test_a_plan_is_imported_into_a_conversation_and_refused_without_steps(
    workspace: Path, script: Script
) -> None:
    async with connected(workspace, settings=SETTINGS) as server:
        ask = server.client.request
        chat = await ask("daiku/chat", {"text": "hi", "model": script({"text": "Hello."})})
        plan = await ask("daiku/plan/import", {"markdown": CHECKLIST, "sessionId": chat["sessionId"]})
        events = (await ask("daiku/session/get", {"sessionId": chat["sessionId"]}))["chunks"]
        assert [e["data"]["plan"]["planId"] for e in events if e["type"] == "plan"] == [plan["planId"]]
        assert (await server.client.refused("daiku/plan/import", {"markdown": "No list."})).code == -32803
        missing = {"markdown": CHECKLIST, "sessionId": "ses_0000000000000000"}
        assert (await server.client.refused("daiku/plan/import", missing)).code == -32803
        assert (await server.client.refused("daiku/plan/run", {"planId": "plan_00000000"})).code == -32803


def step(number: int, *after: int, **more: Any) -> dict[str, Any]:
    return {
        "stepId": f"step_{number:08x}",
        "name": f"s{number}",
        "dependsOn": [f"step_{n:08x}" for n in after],
        **more,
    }


WRONG: list[tuple[list[dict[str, Any]], str]] = [
    ([], "no steps"),
    ([step(1, 2), step(2, 1)], "depend on each other in a cycle"),
    ([step(1, 1)], "depends on itself"),
    ([step(1, 9)], "is not a step of the plan"),
    ([step(1), step(1)], "Two steps have the same id"),
    ([step(n) for n in range(31)], "at most 30"),
]
"""Steps that no plan can have, and what is said of them."""


@pytest.mark.parametrize(("steps", "said"), WRONG)
async def test_a_plan_that_could_not_be_worked_is_not_kept_whoever_changes_it(
    workspace: Path, steps: list[dict[str, Any]], said: str
) -> None:
    async with connected(workspace, settings=SETTINGS) as server:
        ask = server.client.request
        plan = await ask("daiku/plan/import", {"markdown": CHECKLIST})
        refused = await server.client.refused("daiku/plan/update", {"planId": plan["planId"], "steps": steps})
        assert refused.code == -32602
        assert said in " ".join(refused.data)
        assert await ask("daiku/plan/get", {"planId": plan["planId"]}) == plan


async def test_why_a_plan_could_not_be_worked_is_said_in_the_persons_language(workspace: Path) -> None:
    async with connected(workspace, settings=SETTINGS, client={"locale": "ja"}) as server:
        plan = await server.client.request("daiku/plan/import", {"markdown": CHECKLIST})
        for steps, said in (*WRONG, ([{**step(1), "name": " "}], "no name")):
            update = {"planId": plan["planId"], "steps": steps}
            refused = await server.client.refused("daiku/plan/update", update)
            assert refused.data, said
            assert all(JAPANESE.search(problem) for problem in refused.data), refused.data


async def test_approving_a_plan_that_is_done_leaves_it_done(workspace: Path, script: Script) -> None:
    async with connected(workspace, settings=SETTINGS) as server:
        ask = server.client.request
        done = await ask("daiku/plan/import", {"markdown": CHECKLIST.replace("[ ]", "[x]")})
        assert done["status"] == "completed"
        assert await ask("daiku/plan/approve", {"planId": done["planId"]}) == done
        half = await ask("daiku/plan/import", {"markdown": CHECKLIST.replace("[ ] Step 1", "[x] Step 1")})
        assert half["status"] == "draft"
        assert (await ask("daiku/plan/approve", {"planId": half["planId"]}))["status"] == "in_progress"


async def test_a_check_that_a_person_adds_is_theirs(workspace: Path, script: Script) -> None:
    async with connected(workspace, settings=SETTINGS) as server:
        ask = server.client.request
        plan = await ask("daiku/plan/import", {"markdown": CHECKLIST})
        one, two = plan["steps"]
        one = {**one, "acceptance": [*one["acceptance"], "make sure"]}
        changed = await ask("daiku/plan/update", {"planId": plan["planId"], "steps": [one, two]})
        assert [s["ownChecks"] for s in changed["steps"]] == [["make sure"], []]
        again = await ask("daiku/plan/update", {"planId": plan["planId"], "name": "Other"})
        assert [s["ownChecks"] for s in again["steps"]] == [["make sure"], []]


async def test_a_plan_that_was_half_done_goes_on_where_it_is(workspace: Path, script: Script) -> None:
    (workspace / "a.txt").write_text("one\n")
    model = script(*WORK, reporting())
    async with connected(workspace, settings=SETTINGS) as server:
        ask = server.client.request
        plan = await ask("daiku/plan/import", {"markdown": CHECKLIST.replace("- [ ] Step 1", "- [x] Step 1")})
        result = await ask(
            "daiku/plan/run",
            {"planId": plan["planId"], "model": model, "approvals": "all", "partialResultToken": "t"},
        )
        assert [s["status"] for s in result["plan"]["steps"]] == ["completed", "completed"]
        edits = [c for c in server.client.chunks("t") if c["type"] == "edit"]
        assert [c["data"]["files"][0]["path"] for c in edits] == ["b.txt"]


async def test_diagnostics_as_a_check_are_the_editors_and_a_repair_is_told_of_them(
    workspace: Path, script: Script
) -> None:
    source = workspace / "a.py"

    def diagnostics(_: dict[str, Any]) -> dict[str, Any]:
        wrong = source.exists() and "bad" in source.read_text()
        place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}}
        error = {
            "uri": source.as_uri(),
            "range": place,
            "severity": "error",
            "message": "bad name",
            "source": "py",
        }
        return {"diagnostics": [error] if wrong else []}

    model = script(
        NOTHING_TO_LOOK_UP,
        by(CODER, calls=[write("a.py", "good = 1\n")], when="1 errors in a.py"),
        by(CODER, calls=[write("a.py", "bad = 1\n")], when=AT_1),
        by(CODER, text="Wrote it.", when="a.py"),
        RUNS_NOTHING,
        reporting(),
    )
    checklist = "- [ ] Step 1: Write a\n  - Check: `diagnostics: a.py`\n"
    async with connected(workspace, settings=SETTINGS, client={"approvals": True, "editor": True}) as server:
        server.client.on["daiku/editor/diagnostics"] = diagnostics
        ask = server.client.request
        plan = await ask("daiku/plan/import", {"markdown": checklist})
        result = await ask("daiku/plan/run", {"planId": plan["planId"], "model": model, "approvals": "all"})
        assert result["plan"]["steps"][0]["status"] == "completed"
        assert source.read_text() == "good = 1\n"
        [proof] = result["report"]["claims"][0]["proofs"]
        assert (proof["kind"], proof["subject"], proof["ok"], proof["value"]) == (
            "diagnostics",
            "a.py",
            True,
            "0",
        )

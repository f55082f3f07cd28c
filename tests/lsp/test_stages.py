"""`daiku/plan`, `daiku/code`, `daiku/run` in the roles' own forms: each is told what the stages before it found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from daiku import api
from tests.lsp.conftest import connected
from tests.lsp.pair import Client

Script = Callable[..., str]
LINES = """Project Name: Greeter
Your Reply to the Human Prompter: Sure, a greeter it is.
Current Focus: Python print
Plan:
- [ ] Step 1: Write greet.py
  Check: `python3 greet.py`
- [ ] Step 2: Run it
Summary: It greets."""
FILE = "File: `greet.py`:\n```py\nprint('hello')\n```\n"


def told(client: Client, token: str) -> str:
    """What the run's agent read."""
    return next(c["data"]["told"] for c in client.chunks(token) if c["type"] == "run_started")


async def test_each_stage_is_told_what_went_before(workspace: Path, script: Script) -> None:
    model = script(
        {"text": LINES, "agent": "now you plan"},
        {"text": FILE, "agent": "now you write code"},
        {"text": '{"commands": ["python3 greet.py"]}', "agent": "now you run commands"},
    )
    rest: dict[str, Any] = {"model": model, "approvals": "all"}
    async with connected(workspace) as server:
        client = server.client

        async def ask(method: str, token: str, **params: Any) -> Any:
            return await client.request(method, {**rest, **params, "partialResultToken": token})

        planned = await ask("daiku/plan", "a", goal="A greeter")
        api.PlanResult.model_validate(planned)
        assert (planned["status"], planned["text"]) == ("completed", "It greets.")
        assert told(client, "a") == "The user asked: A greeter"
        plan = planned["plan"]

        coded = await ask("daiku/code", "b", planId=plan["planId"], stepId=plan["steps"][0]["stepId"])
        assert [(f["path"], f["kind"]) for f in coded["files"]] == [("greet.py", "create")]
        assert coded["sessionId"] == planned["sessionId"]
        text = told(client, "b")
        assert "- [ ] Step 2: Run it" in text
        assert "Step 1: Write greet.py\nIt is done when this passes: python3 greet.py" in text
        assert "Context From User:\n```\nCarry out “Write greet.py” of the plan “Greeter”.\n```" in text
        assert "Context From Knowledge Base" not in text, "nothing was looked up"

        ran = await ask("daiku/run", "c", planId=plan["planId"], stepId="2")
        api.CommandsResult.model_validate(ran)
        assert [(c["command"], c["exitCode"], c["output"]) for c in ran["commands"]] == [
            ("python3 greet.py", 0, "hello\n")
        ]
        text = told(client, "c")
        assert "Full Code:\n~~~\nFile: `greet.py`:\n```py\nprint('hello')\n```\n~~~" in text
        assert "Planner: It greets.\nUser: Carry out “Run it” of the plan “Greeter”." in text
        started = next(c for c in client.chunks("c") if c["type"] == "run_started")
        assert started["data"]["prompt"] == "Carry out “Run it” of the plan “Greeter”."


async def test_a_plan_or_a_step_that_is_not_there_is_told(workspace: Path, script: Script) -> None:
    model = script({"text": LINES})
    async with connected(workspace) as server:
        ask, refused = server.client.request, server.client.refused
        planned = await ask("daiku/plan", {"goal": "A greeter", "model": model, "approvals": "all"})
        plan = planned["plan"]["planId"]
        for method in ("daiku/code", "daiku/run"):
            unknown = await refused(method, {"planId": "plan_00000000"})
            assert unknown.data["kind"] == "not_found"
            unknown = await refused(method, {"planId": plan, "stepId": "9"})
            assert "step '9'" in json.dumps(unknown.data)
            homeless = await refused(method, {"stepId": "1"})
            assert (homeless.code, bool(homeless.data)) == (-32602, True)

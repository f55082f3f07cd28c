"""What each role is asked, word for word: the tools that it is sent, and its request for a whole brief and an empty one."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from daiku.domain.work.handovers import Brief, CommandOutcome, CommandsRun, EditsMade, Findings, Proof
from daiku.domain.work.patches import FileStat
from daiku.domain.work.plans import Plan, Step
from daiku.domain.work.research import Finding
from daiku.prompts import find_prompts_folder
from daiku.run.nested.taskloop import MAX_ROUNDS, MAX_WORDS
from daiku.run.rules.calls.toolnames import wire_name
from daiku.team.table import find_agent
from daiku.tools.registry import ToolRegistry
from daiku.tools.table import build_builtin_tools
from tests.cases import for_each

GOLDEN = Path(__file__).parents[1] / "golden" / "prompts"
ROLES = ("planner", "researcher", "coder", "runner", "reporter")
STEP = Step(step_id="step_00000001", name="Add the tax", description="In price().", acceptance=("pytest -q",))
PLAN = Plan(
    plan_id="plan_00000001", name="Shop", goal="Prices with tax", focus="Python prices", steps=(STEP,)
)
WHOLE = Brief(
    request="Prices with tax, please.",
    plan=PLAN,
    step_id=STEP.step_id,
    findings=Findings(
        queries=("VAT rates",),
        results=(Finding(query="VAT rates", url="https://a.example.com/", title="VAT", text="20 %"),),
        notes="price() is in shop.py:3.",
    ),
    edits=EditsMade(files=(FileStat(path="shop.py", kind="edit", added=1),), notes="I added it."),
    commands=CommandsRun(commands=(CommandOutcome(command="pytest -q", exit_code=1, output="1 failed"),)),
    proofs=(Proof(kind="exit_code", subject="pytest -q", ref="call_1", ok=False, value="1"),),
    code="File: `shop.py`:\n```py\nx = 1\n```",
    files="shop.py: price, total",
)


@for_each("agent", ROLES)
def test_what_a_role_is_asked_is_what_is_on_record(agent: str) -> None:
    found = find_agent(agent)
    assert found.stage is not None
    assert found.stage.request is not None
    specs = ToolRegistry(build_builtin_tools(editor=True)).specs()
    sent = (*found.allowed(specs, "act"), *(found.role.tools if found.role else ()))
    parts = {
        "Tools": ", ".join(wire_name(spec.name) for spec in sent),
        "Request with everything": found.stage.request(WHOLE),
        "Request with nothing": found.stage.request(Brief(request="Prices with tax, please.")),
    }
    text = "\n\n".join(f"==== {name}\n{part}" for name, part in parts.items()) + "\n"
    text = text.replace(f"{platform.system()} {platform.machine()}", "Linux x86_64")
    golden = GOLDEN / f"{agent}.request.txt"
    if os.environ.get("GOLDEN") == "write":
        golden.write_text(text, "utf-8")
    assert text == golden.read_text("utf-8"), "GOLDEN=write makes it anew: then read the diff"


def test_the_explorer_is_told_its_real_bounds() -> None:
    prompt = (find_prompts_folder() / "agents" / "explorer.j2").read_text("utf-8")
    assert f"you have at most {MAX_ROUNDS} replies" in prompt
    assert f"{MAX_WORDS:,} words are handed on" in prompt

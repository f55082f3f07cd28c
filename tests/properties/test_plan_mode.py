"""Plan mode and ask mode change nothing, whatever the model calls, however deep, whatever was granted."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daiku.domain.config import ApprovalSettings
from daiku.domain.runs import ApprovalMode, Mode
from daiku.domain.tools import Effect, ToolCall, ToolSpec
from daiku.guard.rules.guard import verdict
from daiku.guard.rules.policy import Policy
from daiku.run.request import RunRequest
from daiku.team.table import find_agent
from daiku.tools.table import build_builtin_tools
from tests.runs.playing import Watch, make_app

CHANGES: frozenset[Effect] = frozenset({"edit", "command", "mcp"})
EVIL: dict[str, dict[str, Any]] = {
    "files/write": {"path": "made.txt", "content": "x"},
    "files/edit": {"path": "kept.txt", "edits": [{"search": "kept", "replace": "gone"}]},
    "files/patch": {"patch": "*** Begin Patch\n*** Delete File: kept.txt\n*** End Patch"},
    "files/move": {"path": "kept.txt", "to": "moved.txt"},
    "files/delete": {"path": "kept.txt"},
    "document/apply": {"path": "kept.txt", "changes": [{"op": "delete", "start": 0, "end": 1}]},
    "shell/run": {"command": "touch made; rm -f kept.txt"},
    "shell/output": {"id": "x"},
    "shell/kill": {"id": "x"},
    "git/commit": {"message": "m"},
    "plan/update_step": {"step_id": "1", "status": "completed"},
    "plan/approve": {},
    "task/generate_list": {"step_id": "1"},
    "task_loop/run": {
        "task_list": [
            {"operation": "files/write", "args": {"path": "made.txt", "content": "x"}},
            {"operation": "shell/run", "args": {"command": "touch made"}},
        ]
    },
}
ENDS: tuple[dict[str, Any], ...] = (
    {"agent": "now you research", "text": '{"queries": [], "ask_user": ""}'},
    {"agent": "now you run commands", "text": '{"commands": []}'},
    {"agent": "now you report", "text": '{"text": "Nothing was done.", "claims": []}'},
    {"agent": "now you write code", "text": "No change: done."},
    {"agent": "now you plan", "text": "There it is."},
    {"text": "Done."},
)
"""How each agent ends in the form that is asked of it."""
AGENTS = ("coordinator", "planner", "researcher", "coder", "runner", "reporter", "team")


@given(
    effect=st.sampled_from(["none", "read", "edit", "command", "network", "mcp", "plan", "ask"]),
    mode=st.sampled_from(["ask", "plan", "act"]),
    approvals=st.sampled_from(["ask", "edits", "sandbox", "all", "none"]),
    granted=st.sampled_from([None, "allow", "reject"]),
    setting=st.sampled_from(["allow", "ask", "deny"]),
    trusted=st.booleans(),
    tainted=st.booleans(),
)
def test_no_grant_and_no_setting_lets_plan_mode_change_anything(
    effect: Effect,
    mode: Mode,
    approvals: ApprovalMode,
    granted: Any,
    setting: Any,
    trusted: bool,
    tainted: bool,
) -> None:
    spec = ToolSpec(name="x/y", description="", parameters={}, effect=effect)
    policy = Policy(
        approvals=ApprovalSettings(read=setting, edit=setting, command=setting, network=setting, mcp=setting),
        mode=mode,
        approval_mode=approvals,
        trusted=trusted,
        tainted=tainted,
        granted=lambda _: granted,
    )
    answer = verdict(ToolCall(tool="x/y", args={"command": "true", "path": "a"}), spec, policy).answer
    if mode != "act" and effect in CHANGES:
        assert answer == "deny"


def test_every_tool_that_changes_something_is_tried_here() -> None:
    tools = build_builtin_tools(editor=True)
    assert {t.name for t in tools if t.effect in CHANGES} <= EVIL.keys()


def picture(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


CALLS = st.lists(st.sampled_from(sorted(EVIL)), min_size=1, max_size=6)


@pytest.mark.slow
@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.differing_executors),
)
@given(
    mode=st.sampled_from(["plan", "ask"]),
    path=st.lists(st.sampled_from(AGENTS), min_size=1, max_size=3),
    calls=CALLS,
)
def test_nothing_is_written_however_deep_the_call(mode: Mode, path: list[str], calls: list[str]) -> None:
    """`path` are the agents that hand over to one another; the last one makes the calls."""
    asyncio.run(_tried(mode, path, calls))


async def _tried(mode: Mode, path: list[str], calls: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project = folder / "project"
        project.mkdir()
        (project / "kept.txt").write_text("kept\n")
        before = picture(project)
        evil = [{"tool": tool, "args": EVIL[tool]} for tool in calls]
        hands: list[dict[str, Any]] = [
            {
                "when": f"level {n}",
                "calls": [{"tool": "agent/handoff", "args": {"agent": agent, "request": f"level {n + 1}"}}],
            }
            for n, agent in enumerate(path[1:])
        ]
        steps = [{"name": "s", "acceptance": ["touch made"]}]
        propose = {"tool": "plan/propose", "args": {"goal": "g", "steps": steps}}
        last: list[dict[str, Any]] = [
            {"when": f"level {len(path) - 1}", "calls": [propose, *evil]},
            {"calls": evil},
            *(line for _ in range(3) for line in ENDS),
        ]
        app = make_app(folder, *hands, *last, command="allow")
        watch = Watch()
        await app.runs.run(RunRequest("level 0", agent=path[0], mode=mode, approvals="all"), watch)
        assert picture(project) == before
        assert not [c for c in watch.chunks if c.type in ("edit", "checkpoint")]
        assert {c.event.mode for c in watch.chunks if c.type == "run_started"} == {mode}  # type: ignore[union-attr]
        await app.aclose()


@pytest.mark.parametrize("agent", AGENTS)
async def test_no_agent_is_allowed_what_changes_something(agent: str, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    app = make_app(tmp_path, {"text": "x"})
    for mode in ("plan", "ask"):
        allowed = find_agent(agent).allowed(app.tools(), mode)
        assert not [spec.name for spec in allowed if spec.effect in CHANGES]
    await app.aclose()

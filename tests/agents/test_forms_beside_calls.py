"""A reply that calls tools and holds its role's form as well: both are carried out, or the model is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from daiku.domain.messages import AssistantMessage, UserMessage
from daiku.domain.tools import ToolCall
from daiku.team.role import Role
from daiku.team.table import find_agent
from daiku.texts.text import Text
from tests.agents.acting import act, app_with, called
from tests.cases import for_each

LOOK = ToolCall(tool="files/list", args={"path": "."})
PLAN = """Project Name: p
Your Reply to the Human Prompter: Sure.
Current Focus: f
Plan:
- [ ] Step 1: Write b.py
Summary: s"""
PLAN_JA = """プロジェクト名：p
返答：はい。
現在の焦点：f
計画：
- [ ] ステップ1：b.py を書く
要約：s"""
FORMS = [
    ("planner", PLAN, "plan/propose"),
    ("planner", PLAN_JA, "plan/propose"),
    ("planner", f"I look and plan.\n\n{PLAN}", "plan/propose"),
    ("researcher", '{"queries": ["q"], "ask_user": ""}', "web/research"),
    ("researcher", '調べます。{"queries": ["q"], "ask_user": ""}', "web/research"),
    ("coder", "File: `b.py`:\n```py\nx = 1\n```", "files/write"),
    ("coder", "ファイルです。\n\nb.py\n<<<<<<< SEARCH\n=======\nx = 1\n>>>>>>> REPLACE\n", "files/patch"),
    ("runner", '{"commands": ["touch ran"]}', "shell/run"),
    ("runner", '実行します。{"commands": ["touch ran"]}', "shell/run"),
]
BROKEN = [
    ("planner", "Project Name: p\nPlan:\n- [ ] Step 1: a", "the plan is missing"),
    ("researcher", '{"queries": "q"}', '"queries" must be a list'),
    ("coder", "File: `b.py`:\n```py\nx = 1\n", "code fence is not closed"),
    ("runner", '{"commands": [1]}', 'item 1 of "commands" must be a string'),
]
WORDS = [
    ("planner", "I look around first."),
    ("researcher", "まず見ます。"),
    ("coder", "I look at `a.py` first."),
    ("runner", "先に確認します。"),
]


def role(agent: str) -> Role:
    found = find_agent(agent).role
    assert found is not None
    return found


def read(agent: str, text: str, *calls: ToolCall) -> AssistantMessage:
    message = AssistantMessage(text=Text(text), calls=calls or (LOOK,))
    found = role(agent).read(message, (UserMessage(text="Do it."),), False)
    assert isinstance(found, AssistantMessage)
    return found


@for_each(("agent", "text", "tool"), FORMS)
def test_the_form_is_carried_out_after_the_calls(agent: str, text: str, tool: str) -> None:
    found = read(agent, text)
    assert [call.tool for call in found.calls] == ["files/list", tool]
    alone = role(agent).read(AssistantMessage(text=Text(text)), (UserMessage(text="Do it."),), False)
    assert isinstance(alone, AssistantMessage)
    assert (found.calls[1].args, found.text, found.opaque) == (alone.calls[0].args, alone.text, alone.opaque)


@for_each(("agent", "text", "problem"), BROKEN)
def test_a_form_that_cannot_be_read_is_told_with_the_next_request(
    agent: str, text: str, problem: str
) -> None:
    found = read(agent, text)
    assert found.calls == (LOOK,)
    told = found.opaque["daiku"]
    assert isinstance(told, dict)
    assert problem in str(told["unread"])


@for_each(("agent", "text"), WORDS)
def test_words_beside_calls_are_only_words(agent: str, text: str) -> None:
    assert read(agent, text) == AssistantMessage(text=Text(text), calls=(LOOK,))


@for_each(
    ("agent", "call", "text"),
    [
        ("planner", ToolCall(tool="plan/propose", args={"goal": "g", "steps": []}), PLAN),
        ("researcher", ToolCall(tool="web/research", args={"queries": ["q"]}), FORMS[3][1]),
        ("researcher", ToolCall(tool="web/search", args={"query": "Q"}), FORMS[3][1]),
        ("coder", ToolCall(tool="files/write", args={"path": "b.py", "content": "x = 1\n"}), FORMS[5][1]),
        ("runner", ToolCall(tool="shell/run", args={"command": "touch ran"}), FORMS[7][1]),
    ],
)
def test_what_a_reply_calls_itself_and_says_as_well_is_done_once(
    agent: str, call: ToolCall, text: str
) -> None:
    assert read(agent, text, call).calls == (call,)


def test_of_a_list_only_what_is_not_called_already_is_left() -> None:
    call = ToolCall(tool="shell/run", args={"command": "a"})
    found = read("runner", '{"commands": ["a", "b", "c"]}', call)
    assert [c.args["command"] for c in found.calls] == ["a", "b"]
    assert found.opaque == {"daiku": {"then": ["c"]}}


# -- whole runs ----------------------------------------------------------------------------


def beside(text: str, tool: str = "files/list", **args: Any) -> dict[str, Any]:
    return {"text": text, "calls": [{"tool": tool, "args": args or {"path": "."}}]}


async def test_a_runner_runs_what_it_listed(tmp_path: Path) -> None:
    app = app_with(tmp_path, beside('{"commands": ["touch ran", "touch ran2"]}'), {"text": "All pass."})
    result, state, watch = await act(app, "runner")
    assert result.status == "completed"
    assert [c.command for c in state.done.commands] == ["touch ran", "touch ran2"]
    assert [tool for tool, _ in called(watch)] == ["files/list", "shell/run", "shell/run"]


async def test_a_runner_whose_look_failed_still_runs_its_list(tmp_path: Path) -> None:
    lines = (beside('{"commands": ["touch one", "touch two"]}', "files/read", path="missing"),)
    _, state, _ = await act(app_with(tmp_path, *lines, {"text": "All pass."}), "runner")
    assert [c.command for c in state.done.commands] == ["touch one", "touch two"]


async def test_a_coder_writes_both_files(tmp_path: Path) -> None:
    block = "File: `b.py`:\n```py\nb = 1\n```"
    app = app_with(
        tmp_path, beside(block, "files/write", path="a.py", content="a = 1\n"), {"text": "All written."}
    )
    result, _, _ = await act(app, "coder")
    assert result.status == "completed"
    assert sorted(p.name for p in (tmp_path / "project").iterdir()) == ["a.py", "b.py"]


async def test_a_planner_proposes_its_plan(tmp_path: Path) -> None:
    result, state, _ = await act(app_with(tmp_path, beside(PLAN)), "planner", mode="plan")
    assert (result.status, [s.name for s in state.plans.all[0].steps]) == ("completed", ["Write b.py"])


async def test_a_researcher_looks_up_its_queries(tmp_path: Path) -> None:
    form = json.dumps({"queries": ["q"], "ask_user": "Which?"})
    app = app_with(tmp_path, beside(form), research={"engine": "searxng", "base_url": "http://127.0.0.1:9"})
    result, state, _ = await act(app, "researcher")
    assert result.status == "completed"
    assert (state.research.queries, state.research.ask_user) == (("q",), "Which?")


async def test_the_model_is_told_of_a_form_that_was_not_carried_out(tmp_path: Path) -> None:
    when = "the rest of it was not: item 1 of"
    app = app_with(
        tmp_path, beside('{"commands": [1]}'), {"text": '{"commands": ["touch ran"]}', "when": when}
    )
    result, state, _ = await act(app, "runner")
    assert result.status == "completed"
    assert [c.command for c in state.done.commands] == ["touch ran"]

"""A model with tools of its own: roles end by a tool, what they say in words counts, and nothing said is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daiku.app import build
from daiku.domain.work.handovers import EditsMade, Findings, PlanMade, ReportMade, SaidInWords
from daiku.run.request import RunRequest
from daiku.settings import load
from daiku.settings.config import Config
from daiku.team.coding.coder import collect_edits
from daiku.team.coding.planner import find_plan
from daiku.team.coding.reporter import build_report
from daiku.team.coding.researcher import collect_findings
from daiku.workspace.disk import DiskWorkspace
from tests.agents.acting import act, app_with, called, said
from tests.runs.playing import Watch
from tests.services.models import MODEL, Protocol, Said, serving
from tests.services.web import local_web

HISTORY = ("messages", "input", "contents")
NUMBERED = "1. Write the board.\n2. Write the snake.\n3. Test it."
SNIPPET = "Put this where the price is made:\n```py\nreturn net * 1.2\n```"
FOUND = "price() is in shop.py:3 and total() calls it in shop.py:8."
PROSE = [
    ("coder", "No change is needed because the rate is a constant already."),
    ("coder", SNIPPET),
    ("researcher", FOUND),
    ("planner", NUMBERED),
    ("planner", f"Plan:\n{NUMBERED}"),
    ("runner", "Nothing has to be run: the tests ran in the step before."),
]


def call(tool: str, **args: Any) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "args": args}]}


def retries(watch: Watch) -> int:
    return sum("Retrying" in json.loads(c.data)["text"] for c in watch.chunks if c.type == "notice")


@pytest.mark.parametrize(("agent", "words"), PROSE)
async def test_a_hand_off_to_a_role_that_stays_in_prose_hands_its_words_back(
    tmp_path: Path, agent: str, words: str
) -> None:
    app = app_with(
        tmp_path,
        call("agent/handoff", agent=agent, request="Look after the price."),
        *[{"text": words, "agent": "now you"}] * 2,
        {"text": "I pass it on.", "when": words.splitlines()[0]},
    )
    result, state, watch = await act(app, "coordinator")
    assert (result.status, result.text) == ("completed", "I pass it on.")
    [back] = state.nested.returned
    assert (back.status, back.problem) == ("completed", "")
    assert words in back.result
    assert retries(watch) == (1 if agent == "planner" else 0), "a plan that is missing is asked for once"


async def test_words_of_a_model_without_tools_are_handed_back_though_its_form_is_missing(
    tmp_path: Path,
) -> None:
    hand = {"operation": "agent/handoff", "args": {"agent": "planner", "request": "Plan the price."}}
    app = app_with(
        tmp_path,
        {"text": json.dumps({"actions": [hand]})},
        *[{"text": NUMBERED, "agent": "now you plan"}] * 5,
        {"text": '{"actions": [], "comment": "I pass it on."}', "when": "Write the board"},
        protocol="action_list",
    )
    result, state, _ = await act(app, "coordinator")
    assert (result.status, result.text) == ("completed", "I pass it on.")
    [back] = state.nested.returned
    assert (back.status, back.result) == ("failed", NUMBERED)
    assert back.problem.startswith("All retry attempts failed")


# -- planner -------------------------------------------------------------------------------


async def test_a_planner_ends_with_the_plan_that_it_proposes(tmp_path: Path) -> None:
    plan = call("plan/propose", name="Snake", summary="A small game.", steps=[{"name": "Write it"}])
    result, state, watch = await act(app_with(tmp_path, plan), "planner", "A game", mode="plan")
    assert (result.status, result.text) == ("completed", "A small game.")
    made = find_plan(state)
    assert isinstance(made, PlanMade)
    assert [s.name for s in made.plan.steps] == ["Write it"]
    assert [tool for tool, _ in called(watch)] == ["plan/propose"], "nothing is asked for after it"


async def test_a_planner_that_stays_in_words_has_failed(tmp_path: Path) -> None:
    why = "There is nothing to plan: the project has the feature."
    result, state, watch = await act(app_with(tmp_path, *[{"text": why}] * 2), "planner", mode="plan")
    assert (result.status, result.text, retries(watch)) == ("failed", why, 1)
    assert find_plan(state) == SaidInWords(text=why)


# -- researcher ----------------------------------------------------------------------------


async def test_a_report_is_the_researchers_last_word(tmp_path: Path) -> None:
    report = call(
        "report__findings",
        findings="The rate is a constant.",
        sources=["shop.py:3", "https://invented.example.com/"],
        ask_user="Which rate?",
    )
    result, state, watch = await act(app_with(tmp_path, report), "researcher")
    assert result.status == "completed"
    assert result.text == (
        "The rate is a constant.\n\nSources:\n- shop.py:3\n"
        "- https://invented.example.com/ (not opened in this run)\n\nWhich rate?"
    )
    assert called(watch) == [], "the report is no call that is run"
    handed = collect_findings(state)
    assert isinstance(handed, Findings)
    assert (handed.ask_user, handed.queries) == ("Which rate?", ())
    assert handed.notes.startswith("The rate is a constant.")


async def test_the_queries_of_a_report_are_looked_up(tmp_path: Path) -> None:
    report = call("report/findings", findings="It is Python 3.12.", queries=["a", "b", "c", "d"])
    async with local_web() as web:
        web.links = [("https://a.example.com/one", "First")]
        app = app_with(tmp_path, report, research={"engine": "searxng", "base_url": web.url("")})
        result, state, watch = await act(app, "researcher")
    assert result.status == "completed"
    assert called(watch) == [("web/research", {"queries": ["a", "b", "c"]})]
    assert result.text.startswith("It is Python 3.12.\n\n**a**\n- [1] [First](https://a.example.com/one)")
    handed = collect_findings(state)
    assert isinstance(handed, Findings)
    assert (handed.queries, handed.notes) == (("a", "b", "c"), "It is Python 3.12.")
    assert [f.url for f in handed.results] == ["https://a.example.com/one"]


async def test_a_report_whose_arguments_are_wrong_is_asked_for_again(tmp_path: Path) -> None:
    wrong, right = (
        call("report/findings", findings={"x": 1}),
        call("report/findings", findings="It is there."),
    )
    broken = {"calls": [{"tool": "report/findings", "malformed": '{"findings": "It is'}]}
    result, _, watch = await act(app_with(tmp_path, wrong, broken, right), "researcher")
    assert (result.status, result.text, retries(watch)) == ("completed", "It is there.", 2)


async def test_a_report_is_understood_though_it_is_not_quite_as_asked(tmp_path: Path) -> None:
    report = call("report.findings", findings=["One.", "Two."], sources='["a.py:1"]', confidence="high")
    result, _, _ = await act(app_with(tmp_path, report), "researcher")
    assert result.text == "One.\n\nTwo.\n\nSources:\n- a.py:1"


async def test_what_a_researcher_calls_beside_its_report_is_done_first(tmp_path: Path) -> None:
    both = {
        "calls": [
            {"tool": "files/list", "args": {"path": "."}},
            {"tool": "report/findings", "args": {"findings": "So far."}},
        ]
    }
    app = app_with(tmp_path, both, call("report/findings", findings="All of it."))
    result, _, watch = await act(app, "researcher")
    assert (result.text, [tool for tool, _ in called(watch)]) == ("All of it.", ["files/list"])


async def test_a_report_is_told_in_the_persons_words_only_where_nothing_is_found(tmp_path: Path) -> None:
    result, _, _ = await act(app_with(tmp_path, call("report/findings")), "researcher")
    assert (result.status, result.text) == ("completed", "Nothing needs to be looked up.")


# -- coder and runner ----------------------------------------------------------------------


async def test_a_coder_that_only_says_something_has_failed(tmp_path: Path) -> None:
    result, state, watch = await act(app_with(tmp_path, *[{"text": SNIPPET}] * 2), "coder")
    assert (result.status, retries(watch)) == ("failed", 1)
    assert said(watch) == [SNIPPET]
    handed = collect_edits(state)
    assert isinstance(handed, EditsMade)
    assert (handed.files, handed.notes.startswith("Put this")) == ((), True)


async def test_a_change_that_cannot_be_read_is_no_prose(tmp_path: Path) -> None:
    broken = "File: `a.py`:\n```py\nx = 1\n"
    result, _, watch = await act(app_with(tmp_path, {"text": broken}, {"text": f"{broken}```"}), "coder")
    assert (result.status, retries(watch)) == ("completed", 1)
    assert (tmp_path / "project" / "a.py").read_text() == "x = 1\n"


async def test_a_runner_mends_by_its_tools(tmp_path: Path) -> None:
    app = app_with(
        tmp_path,
        call("shell/run", command="python3 t.py"),
        {**call("files/edit", path="t.py", edits=[{"search": "1 == 2", "replace": "1 == 1"}]), "when": "2 of 2 repairs"},
        call("shell/run", command="python3 t.py"),
        {"text": "It passes now."},
    )  # fmt: skip
    (tmp_path / "project" / "t.py").write_text("assert 1 == 2\n")
    result, state, _ = await act(app, "runner")
    assert (result.status, result.text) == ("completed", "It passes now.")
    assert [c.exit_code for c in state.done.commands] == [1, 0]


async def test_a_runners_repairs_are_bounded_by_tools_as_well(tmp_path: Path) -> None:
    runs = [call("shell/run", command=f"sh -c 'exit {n}'") for n in (1, 2, 3, 4)]
    result, state, _ = await act(app_with(tmp_path, *runs), "runner")
    assert result.status == "failed"
    assert [c.exit_code for c in state.done.commands] == [1, 2, 3]


async def test_a_runner_that_stops_in_words_has_failed_and_its_words_are_kept(tmp_path: Path) -> None:
    words = "The network is missing; nothing here can mend that."
    result, _, _ = await act(
        app_with(tmp_path, call("shell/run", command="sh -c 'exit 7'"), {"text": words}), "runner"
    )
    assert (result.status, result.text) == ("failed", words)
    assert result.error is not None
    assert "exit code 7" in result.error.message


async def test_a_runner_that_only_promises_to_mend_is_asked_once_to_do_it(tmp_path: Path) -> None:
    fails, promise = call("shell/run", command="sh -c 'exit 7'"), {"text": "It fails. Let me fix it."}
    mends = call("shell/run", command="sh -c 'exit 0'")
    app = app_with(
        tmp_path, fails, promise, mends, call("shell/run", command="sh -c 'exit 7'"), promise, promise
    )
    result, state, watch = await act(app, "runner")
    assert [c.exit_code for c in state.done.commands] == [7, 0, 7]
    assert result.status == "failed"
    assert retries(watch) >= 1


async def test_a_runner_that_promises_twice_has_failed_with_its_command(tmp_path: Path) -> None:
    fails, promise = call("shell/run", command="sh -c 'exit 7'"), {"text": "It fails. Let me fix it."}
    result, _, watch = await act(app_with(tmp_path, fails, promise, promise), "runner")
    assert (result.status, retries(watch)) == ("failed", 1)
    assert result.error is not None
    assert "exit code 7" in result.error.message


@pytest.mark.parametrize("agent", ["coder", "runner", "researcher", "planner"])
async def test_silence_is_asked_about_once_as_in_every_run(tmp_path: Path, agent: str) -> None:
    result, _, watch = await act(app_with(tmp_path, *[{"text": ""}] * 3), agent)
    assert (result.status, retries(watch)) == ("failed", 0)
    assert watch.types().count("usage") <= 2


# -- reporter ------------------------------------------------------------------------------


async def test_a_report_in_words_is_shown_as_one_that_nothing_proves(tmp_path: Path) -> None:
    words = "The greeter is written and all tests pass."
    result, state, watch = await act(app_with(tmp_path, *[{"text": words}] * 2), "reporter")
    assert (result.status, retries(watch)) == ("completed", 1)
    made = build_report(state)
    assert isinstance(made, ReportMade)
    assert words in made.report.text or words in [claim.text for claim in made.report.claims]
    assert not any(claim.proofs for claim in made.report.claims)


async def test_a_reporter_ends_by_its_tool(tmp_path: Path) -> None:
    report = {"text": "The person wants a greeter.", "claims": [{"text": "It greets.", "refs": ["P9"]}]}
    honest = {**report, "claims": [{"text": "It greets."}]}
    broken = {"calls": [{"tool": "report__work", "malformed": '{"text": "The'}]}
    app = app_with(
        tmp_path,
        call("report/work", claims=[]),
        broken,
        call("report__work", **report),
        call("report.work", **honest),
    )
    result, state, watch = await act(app, "reporter")
    assert (result.status, retries(watch)) == ("completed", 3)
    assert called(watch) == [], "the report is no call that is run"
    made = build_report(state)
    assert isinstance(made, ReportMade)
    assert made.report.text == "The person wants a greeter."
    assert [claim.text for claim in made.report.claims] == ["It greets."]


# -- the wire ------------------------------------------------------------------------------


async def asked(folder: Path, protocol: str, *replies: Said) -> tuple[str, list[str], str]:
    """What a model service is sent for a researcher (its system text, the names of the tools), and the answer."""
    (folder / "project").mkdir()
    async with serving(replies) as service:
        own = {"api": "chat", "base_url": f"http://127.0.0.1:{service.port}/v1", "api_key": "sk-test"}
        llm = {"model": f"openai/{MODEL}", "openai": {**own, "tool_protocol": protocol}}
        workspace = DiskWorkspace((folder / "project",))
        app = build(Config.model_validate({"llm": llm}), workspace=workspace, home=folder / "home")
        result = await app.runs.run(RunRequest("Find out.", agent="researcher"), Watch())
        await app.aclose()
    request = next(one["body"] for one in service.requests if "messages" in one["body"])
    names = [tool["function"]["name"] for tool in request.get("tools", ())]
    return str(request["messages"][0]["content"]), names, result.text


async def test_a_service_with_tools_is_sent_the_report_and_no_form(tmp_path: Path) -> None:
    said = Said(calls=[("report__findings", {"findings": "It is there."})])
    system, names, answer = await asked(tmp_path, "native", said)
    assert (names[-1], answer) == ("report__findings", "It is there.")
    assert "`report__findings`" in system
    assert '{"queries"' not in system


async def test_a_service_without_tools_is_sent_the_form_and_no_report(tmp_path: Path) -> None:
    said = Said(['{"queries": [], "ask_user": ""}'])
    system, names, answer = await asked(tmp_path, "action_list", said)
    assert (names, answer) == ([], "Nothing needs to be looked up.")
    assert '{"queries": [], "ask_user": ""}' in system
    assert "report__findings" not in system


@pytest.mark.parametrize("protocol", ["openai-chat", "openai-responses", "anthropic", "gemini"])
async def test_a_service_is_told_what_is_wrong_with_a_report_as_the_result_of_its_call(
    tmp_path: Path, protocol: Protocol
) -> None:
    (tmp_path / "project").mkdir()
    wrong, right = (
        Said(calls=[("report__work", args)]) for args in ({"claims": []}, {"text": "It is asked."})
    )
    async with serving([wrong, right]) as service:
        environ = service.environment(protocol)
        found = load(workspace=tmp_path / "project", trusted=True, environ=environ)
        app = build(found.config, workspace=DiskWorkspace((tmp_path / "project",)), home=tmp_path / "home")
        result = await app.runs.run(RunRequest("Report.", agent="reporter"), Watch())
        await app.aclose()
    assert (result.status, result.text) == ("completed", "It is asked.")
    bodies = [one["body"] for one in service.requests]
    last = next(body[key][-1] for body in reversed(bodies) for key in HISTORY if key in body)
    assert any(
        mark in str(last)
        for mark in ("tool_call_id", "tool_result", "function_call_output", "functionResponse")
    )
    assert "could not be used: text: field required" in str(last)

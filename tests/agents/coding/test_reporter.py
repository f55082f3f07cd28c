"""The reporter: every claim names what it rests on, an invented reference is refused, records speak without a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daiku.domain.events import MessageEvent, RunStarted
from daiku.domain.messages import AssistantMessage, UserMessage
from daiku.domain.work.handovers import (
    Brief,
    Claim,
    CommandOutcome,
    CommandsRun,
    EditsMade,
    Findings,
    Proof,
    ReportMade,
)
from daiku.domain.work.patches import FileStat
from daiku.domain.work.plans import Plan, Step
from daiku.domain.work.research import Finding
from daiku.models.rules.replies.parse import Unreadable
from daiku.run.rules.state.fold import fold
from daiku.run.rules.state.state import Request, State
from daiku.team.coding.reporter import REPORT, build_report, build_report_request
from daiku.team.rules.summary import build_plain_report, format_claims, list_proofs
from daiku.team.table import find_agent
from daiku.texts.text import Text
from tests.agents.acting import PROTOCOLS, act, app_with
from tests.cases import for_each

PASSED = CommandOutcome(command="pytest -q", exit_code=0, output="2 passed", call_id="call_1")
BROKE = CommandOutcome(command="ruff check", exit_code=1, output="E501", call_id="call_2")
CLEAN = Proof(kind="diagnostics", subject="a.py", ref="call_3", ok=True, value="0")
BRIEF = Brief(
    request="Add a snake.",
    plan=Plan(name="Snake", goal="g", steps=(Step(name="Write it", status="completed"),)),
    findings=Findings(
        queries=("q",),
        results=(Finding(query="q", url="https://a.example/", title="A", text="long"),),
        notes="A board has 20 rows.",
    ),
    edits=EditsMade(files=(FileStat(path="a.py", kind="create", added=3),), checkpoints=("checkpoint_1",)),
    commands=CommandsRun(commands=(PASSED, BROKE)),
    proofs=(CLEAN,),
)
ASKED = (UserMessage(text=build_report_request(BRIEF)),)
REPLY = {
    "text": "The snake is there.",
    "claims": [{"text": "The tests pass.", "refs": ["P3"]}, {"text": "It is fun."}],
}


def read(text: str) -> AssistantMessage | Unreadable:
    found = REPORT.read(AssistantMessage(text=Text(text)), ASKED, False)
    wrong = REPORT.unfit(found, BRIEF) if isinstance(found, AssistantMessage) else ""
    return Unreadable(wrong) if wrong else found


def handed(text: str) -> ReportMade:
    said = read(text)
    assert isinstance(said, AssistantMessage), said
    state = fold(
        (
            RunStarted(prompt=ASKED[0].text, brief=BRIEF),
            MessageEvent(role="assistant", text=said.text, opaque=said.opaque),
        )
    )
    made = build_report(state)
    assert isinstance(made, ReportMade)
    return made


def test_the_request_lists_what_is_proven_under_short_references() -> None:
    text = build_report_request(BRIEF)
    assert text.startswith("The user asked: Add a snake.")
    assert "- [x] Step 1: Write it" in text
    assert "[A](https://a.example/)" in text
    assert "A board has 20 rows." in text
    assert text.endswith(
        "What is proven, each with its reference:\n"
        "- [P1] a.py has no errors.\n"
        "- [P2] a.py was changed (+3 -0).\n"
        "- [P3] `pytest -q` passed.\n"
        "- [P4] `ruff check` failed with exit code 1."
    )
    assert build_report_request(Brief(request="x")).endswith("\nNothing.")


@for_each(
    "text",
    [
        json.dumps(REPLY),
        f"```json\n{json.dumps(REPLY)}\n```",
        json.dumps(REPLY).replace('["P3"]', '"[P3]"'),
        "The snake is there.\n\n- The tests pass. [P3]\n- It is fun.\n",
    ],
)
def test_claims_are_linked_to_what_they_name(text: str) -> None:
    report = handed(text).report
    assert report.text == "The snake is there."
    proof = Proof(kind="exit_code", subject="pytest -q", ref="call_1", ok=True, value="0")
    assert report.claims == (
        Claim(text=Text("The tests pass."), proofs=(proof,)),
        Claim(text=Text("It is fun.")),
    )


def test_an_invented_reference_is_refused_with_those_there_are() -> None:
    found = read(json.dumps({"text": "x", "claims": [{"text": "y", "refs": ["P9", "P1"]}]}))
    assert isinstance(found, Unreadable)
    assert found.problem == "there is no reference P9; there are: P1, P2, P3, P4"


@for_each("text", ["", "All is well.", "{}", '{"claims": []}', '{"text": ""}', "- it works [P1]"])
def test_any_other_reply_is_unreadable(text: str) -> None:
    assert isinstance(read(text), Unreadable)


def test_without_a_readable_report_the_records_speak() -> None:
    made = build_report(State(request=Request(brief=BRIEF)))
    assert made == ReportMade(report=build_plain_report(BRIEF))
    assert isinstance(made, ReportMade)
    assert "1 of 1 steps done" in made.report.text
    assert [claim.text for claim in made.report.claims] == [
        "a.py has no errors.",
        "a.py was changed (+3 -0).",
        "`pytest -q` passed.",
        "`ruff check` failed with exit code 1.",
    ]
    assert all(claim.proofs for claim in made.report.claims)
    assert "Nothing was changed" in build_plain_report(Brief(request="x")).text
    assert isinstance(build_report(State()), Unreadable)


def test_claims_are_shown_with_what_they_rest_on() -> None:
    proofs = list_proofs(BRIEF)
    text = format_claims(
        (
            Claim(text=Text("All is well."), proofs=proofs),
            Claim(text=Text("`pytest -q` passed."), proofs=proofs[2:3]),
            Claim(text=Text("It is fun.")),
        )
    )
    assert text.split("\n") == [
        "- All is well. (a.py: no errors; a.py: +3 -0; `pytest -q`: exit code 0; `ruff check`: exit code 1)",
        "- `pytest -q` passed. (exit code 0)",
        "- It is fun. (not checked)",
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_it_works_alone(tmp_path: Path, protocol: str) -> None:
    reply = {"text": "Nothing was done.", "claims": [{"text": "It is quiet."}]}
    result, state, _ = await act(
        app_with(tmp_path, {"text": json.dumps(reply)}, protocol=protocol), "reporter"
    )
    assert (result.status, result.text) == ("completed", "Nothing was done.\n\n- It is quiet. (not checked)")
    assert isinstance(build_report(state), ReportMade)
    assert find_agent("reporter").role is REPORT

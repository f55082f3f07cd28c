"""The team's moves, as a function of what is on record."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from daiku.domain.errors import Failure
from daiku.domain.events import Event, HandoffEnd, MessageEvent, RunStarted, ToolCallEvent, ToolResponse
from daiku.domain.runs import ApprovalMode
from daiku.domain.tools import ToolCall
from daiku.domain.work.handovers import (
    Brief,
    Claim,
    CommandOutcome,
    Findings,
    NestedEvidence,
    PlanMade,
    Proof,
    Report,
    ReportMade,
)
from daiku.domain.work.patches import FileStat
from daiku.domain.work.plans import Plan, Step, WorkStatus
from daiku.run.rules.state.fold import fold
from daiku.run.rules.state.machine import EndRun, MakeCall, Move
from daiku.run.rules.state.state import State
from daiku.team.rules.checks import TeamCall, build_check_call
from daiku.team.rules.moves import build_brief, find_team_plan, next_move
from daiku.team.rules.report import build_final_report, match_records
from daiku.texts.text import Text
from tests.cases import for_each

STATUS: st.SearchStrategy[WorkStatus] = st.sampled_from(["pending", "in_progress", "completed", "failed"])
APPROVALS: st.SearchStrategy[ApprovalMode] = st.sampled_from(["ask", "edits", "sandbox", "all", "none"])


def plan(*steps: Step, status: str = "approved") -> Plan:
    return Plan.model_validate({"name": "P", "goal": "G", "status": status, "steps": steps})


def started(given_plan: Plan | None = None) -> State:
    brief = None if given_plan is None else Brief(request="G", plan=given_plan)
    return fold([RunStarted(prompt="G", driven=True, brief=brief)])


def call_of(move: Move) -> ToolCall:
    assert isinstance(move, MakeCall)
    return move.call


def answered(call: ToolCall, ok: bool, text: str, *between: Event) -> list[Event]:
    return [
        MessageEvent(role="assistant", text=Text(""), agent="team", calls=(call,)),
        ToolCallEvent(id=call.id, tool=call.tool, args=call.args),
        *between,
        ToolResponse(id=call.id, tool=call.tool, ok=ok, result=text),
    ]


def back(call: ToolCall, to: str, **fields: object) -> HandoffEnd:
    return HandoffEnd.model_validate({"from": "team", "to": to, "result": "", "call_id": call.id, **fields})


@for_each(
    ("check", "do"),
    [
        (
            "pytest -q",
            TeamCall("shell/run", {"command": "pytest -q", "timeout": 600}, Text("Check: `pytest -q`")),
        ),
        ("diagnostics", TeamCall("editor/diagnostics", {}, Text("Check: diagnostics"))),
        (
            "diagnostics: a.py",
            TeamCall("editor/diagnostics", {"path": "a.py"}, Text("Check: diagnostics: a.py")),
        ),
        ("diagnostics: src", TeamCall("editor/diagnostics", {}, Text("Check: diagnostics: src"))),
        ("diagnostics: **/*.py", TeamCall("editor/diagnostics", {}, Text("Check: diagnostics: **/*.py"))),
    ],
)
def test_a_check_is_shown_by_the_call_that_its_proof_is_read_from(check: str, do: TeamCall) -> None:
    assert build_check_call(check, 600) == do


def test_first_comes_a_plan_and_a_draft_is_put_to_the_person() -> None:
    call = call_of(next_move(started(), "ask"))
    assert call.args["agent"] == "planner"
    made = plan(Step(name="a"), status="draft")
    state = fold(answered(call, True, "", back(call, "planner", handover=PlanMade(plan=made))), started())
    assert find_team_plan(state) == made
    ask = call_of(next_move(state, "ask"))
    assert (ask.tool, ask.args) == ("plan/approve", {"plan_id": made.plan_id})
    refused = fold(answered(ask, False, "The person rejected this call."), state)
    end = next_move(refused, "ask")
    assert isinstance(end, EndRun)
    assert "not approved" in end.text


def test_what_is_found_reaches_the_coder_once_for_the_whole_plan() -> None:
    state = started(plan(Step(name="a"), Step(name="b")))
    call = call_of(next_move(state, "all"))
    assert call.args["agent"] == "researcher"
    found = Findings(queries=("q",))
    state = fold(answered(call, True, "", back(call, "researcher", handover=found, tainted=True)), state)
    assert build_brief(state, "coder", "r").findings == found
    assert state.tainted  # the guard asks more where text from outside is in the conversation
    assert call_of(next_move(state, "all")).args.get("agent") != "researcher"


def test_a_failure_that_every_stage_would_have_ends_the_run() -> None:
    state = started(plan(Step(name="a")))
    call = call_of(next_move(state, "all"))
    broken = Failure(kind="auth", message=Text("bad key"))
    state = fold(
        answered(call, False, "bad key", back(call, "researcher", status="failed", error=broken)), state
    )
    assert next_move(state, "all") == broken


@given(
    st.lists(st.tuples(STATUS, st.sets(st.integers(0, 3))), min_size=1, max_size=4), APPROVALS, st.booleans()
)
def test_from_any_plan_there_is_a_next_move_and_no_step_begins_before_what_it_waits_for(
    shapes: list[tuple[WorkStatus, set[int]]], approvals: ApprovalMode, looked_up: bool
) -> None:
    steps: list[Step] = []
    for number, (status, after) in enumerate(shapes):
        waits = tuple(steps[i].step_id for i in sorted(after) if i < number)
        steps.append(Step(name=f"s{number}", status=status, depends_on=waits))
    state = started(plan(*steps))
    if looked_up:
        call = ToolCall(tool="agent/handoff", args={"agent": "researcher", "request": "G"})
        state = fold(answered(call, True, "", back(call, "researcher")), state)
    move = next_move(state, approvals)
    assert isinstance(move, MakeCall) or (isinstance(move, EndRun) and move.text)
    done = {s.step_id for s in steps if s.status == "completed"}
    for call in (move.call,) if isinstance(move, MakeCall) else ():
        if call.tool == "plan/update_step" and call.args["status"] == "in_progress":
            begun = next(s for s in steps if s.step_id == call.args["step_id"])
            assert begun.status == "in_progress" or done.issuperset(begun.depends_on)


@given(
    st.lists(st.tuples(STATUS, st.booleans(), st.booleans()), min_size=1, max_size=4),
    APPROVALS,
    st.booleans(),
)
def test_with_no_model_to_ask_only_what_is_coded_is_begun_and_no_step_is_given_up(
    shapes: list[tuple[WorkStatus, bool, bool]], approvals: ApprovalMode, well: bool
) -> None:
    steps = [
        Step(name=f"s{n}", status=status, acceptance=("test -f a",) if checked else ())
        for n, (status, checked, _) in enumerate(shapes)
    ]
    coded = {s.step_id for s, (_, _, by_coder) in zip(steps, shapes, strict=True) if by_coder}
    pieces: list[JsonValue] = [
        {"agent": "coder", "request": "r", "step_id": s.step_id} for s in steps if s.step_id in coded
    ]
    looked = ToolCall(tool="agent/handoff", args={"agent": "researcher", "request": "G"})
    apart = ToolCall(tool="agent/parallel", args={"requests": pieces})
    status = "completed" if well else "limit"
    backs = [
        back(apart, "coder", status=status).model_copy(update={"call_id": f"{apart.id}:{n}"})
        for n in range(len(pieces))
    ]
    state = fold(answered(looked, True, "", back(looked, "researcher")), started(plan(*steps)))
    state = fold(answered(apart, True, "", *backs), state)
    nothing_left = Failure(kind="limit", message=Text("nothing is left"))
    begun = any(s.status == "in_progress" for s in steps)
    ready = well and any(s.status == "pending" and s.step_id in coded for s in steps)
    move = next_move(state, approvals, nothing_left)
    if isinstance(move, Failure):
        assert begun or not ready, "what is coded could have been checked"
        assert move == nothing_left
        return
    call = call_of(move)
    if call.tool == "plan/update_step":
        assert call.args["status"] == "in_progress"
        assert call.args["step_id"] in coded
        assert well
    else:
        assert (call.tool, call.args["command"]) == ("shell/run", "test -f a")


def test_a_proof_counts_as_it_is_on_record_and_an_invented_one_does_not() -> None:
    ran = CommandOutcome(command="make", exit_code=2, output="no", call_id="call_1")
    state = started(plan(Step(name="a", status="completed", acceptance=("make",))))
    call = ToolCall(tool="agent/handoff", args={"agent": "reporter", "request": "G"})
    liar = Report(
        text=Text("All well."),
        claims=(
            Claim(
                text=Text("It builds."),
                proofs=(Proof(kind="exit_code", subject="make", ref="call_1", ok=True, value="0"),),
            ),
            Claim(
                text=Text("It flies."),
                proofs=(Proof(kind="exit_code", subject="fly", ref="call_9", ok=True, value="0"),),
            ),
        ),
    )
    deeds = NestedEvidence(commands=(ran,))
    state = fold(
        answered(call, True, "", back(call, "reporter", handover=ReportMade(report=liar), deeds=deeds)), state
    )
    claims = {str(c.text): c.proofs for c in build_final_report(state, find_team_plan(state)).claims}
    [proof] = claims["It builds."]
    assert (proof.ok, proof.value) == (False, "2")
    assert claims["It flies."] == ()
    assert match_records((proof,), state.done) == (proof,)


REFUSED = {"tool": "files/write", "subject": "AGENTS.md", "outcome": "unattended"}
COMMAND = {"tool": "shell/run", "subject": "npm publish", "outcome": "unattended"}
EDITED = NestedEvidence(
    files=(FileStat(path="a.py", kind="edit"),), checkpoints=("cp_1",), edits=(0,)
).model_dump()
WRITTEN = {**EDITED, "files": [FileStat(path="AGENTS.md", kind="edit")]}
PACKED = {"commands": [CommandOutcome(command="npm pack", exit_code=0, output="", call_id="c1")]}
BROKEN = {"commands": [CommandOutcome(command="npm pack", exit_code=1, output="", call_id="c1")]}
GREEN = {"commands": [CommandOutcome(command="pytest", exit_code=0, output="1 passed", call_id="c2")]}
PROVEN = {**GREEN, "proofs": [Proof(kind="exit_code", subject="pytest", ref="c2", ok=True, value="0")]}
Stage = tuple[str, dict[str, object], list[dict[str, object]]]
"""An agent of a step, what it did, and its calls without effect."""


def after_stages(checks: tuple[str, ...], *stages: Stage) -> str:
    """Return what the team does next for a step after these stages: an agent, a status, or `end`."""
    step = Step(name="a", acceptance=checks)
    research = ToolCall(tool="agent/handoff", args={"agent": "researcher", "request": "G"})
    state = fold(
        answered(research, True, "", back(research, "researcher")),
        started(plan(step.model_copy(update={"status": "in_progress"}), status="in_progress")),
    )
    begun = ToolCall(tool="plan/update_step", args={"step_id": step.step_id, "status": "in_progress"})
    state = fold(answered(begun, True, ""), state)
    for agent, deeds, failed in stages:
        call = ToolCall(tool="agent/handoff", args={"agent": agent, "request": "G"})
        state = fold(answered(call, True, "Done.", back(call, agent, deeds=deeds, refused=failed)), state)
    move = next_move(state, "all")
    if isinstance(move, EndRun):
        return "end"
    call = call_of(move)
    return str(call.args.get("agent") or call.args.get("status") or call.tool)


@for_each(
    ("checks", "stages", "expected"),
    [
        ((), [("coder", {}, [REFUSED])], "end"),
        ((), [("coder", EDITED, [REFUSED]), ("runner", {}, [])], "coder"),
        ((), [("coder", EDITED, [{**REFUSED, "outcome": "denied"}]), ("runner", {}, [])], "coder"),
        ((), [("coder", EDITED, []), ("runner", BROKEN, [COMMAND])], "end"),
        ((), 3 * [("coder", EDITED, [REFUSED]), ("runner", {}, [])], "failed"),
        ((), [("coder", EDITED, [REFUSED]), ("runner", {}, []), ("coder", WRITTEN, []), ("runner", {}, [])], "completed"),
        ((), [("coder", EDITED, [{**REFUSED, "outcome": "failed"}]), ("runner", {}, [])], "completed"),
        ((), [("coder", EDITED, []), ("runner", PACKED, [COMMAND])], "completed"),
        ((), [("coder", EDITED, []), ("runner", {}, [])], "completed"),
        ((), [("coder", {}, []), ("runner", {}, [])], "completed"),
        (("pytest",), [("coder", EDITED, [REFUSED]), ("runner", PROVEN, [])], "completed"),
    ],
)  # fmt: skip
def test_a_step_without_checks_is_not_done_where_its_work_was_refused(
    checks: tuple[str, ...], stages: list[Stage], expected: str
) -> None:
    """A23.1: the record of its agents decides, unless they found another way."""
    assert after_stages(checks, *stages) == expected

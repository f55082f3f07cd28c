"""The team's report: steps and proofs from the records, and the reporter's text as its own statement."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from daiku.domain.work.handovers import Brief, Claim, CommandsRun, EditsMade, Proof, Report, ReportMade
from daiku.domain.work.plans import Plan, Step, WorkStatus
from daiku.run.rules.state.state import State
from daiku.team.rules.checks import find_failed_checks
from daiku.team.rules.proof.evidence import Evidence, find_proof
from daiku.team.rules.proof.placeholders import select_new_leftovers
from daiku.team.rules.record import (
    AnsweredCall,
    find_unanswered_questions,
    has_begun,
    list_answered_calls,
    select_since_begin,
)
from daiku.team.rules.steps import TOOL
from daiku.team.rules.summary import build_plain_report, format_claims
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import Text, joined, text

CAUSE = 300
"""Maximum characters of why a step failed."""
STATUS: Mapping[WorkStatus, str] = MappingProxyType(
    {
        "pending": "plan.pending",
        "in_progress": "plan.in_progress",
        "completed": "plan.completed",
        "failed": "plan.failed",
    }
)
"""Text id of each step status."""
OPEN_STEP: Mapping[WorkStatus, str] = MappingProxyType(
    {"failed": "team.claim_failed", "in_progress": "team.claim_not_finished"}
)


def build_final_report(state: State, plan: Plan | None) -> Report:
    """Return the reporter's report, or one from the records (C4.11), with a claim and proofs for each step."""
    reports = [b.handover.report for b in state.nested.returned if isinstance(b.handover, ReportMade)]
    report = reports[-1] if reports else build_plain_report(_build_brief(state, plan))
    claims = tuple(
        claim.model_copy(update={"proofs": match_records(claim.proofs, state.done)})
        for claim in report.claims
    )
    steps = build_step_claims(plan, state.done, _find_met_steps(state))
    return report.model_copy(update={"claims": (*steps, *claims)})


def _find_met_steps(state: State) -> frozenset[str]:
    """Return the ids of steps completed without a coder, because their checks passed before any work."""
    log = list_answered_calls(state)
    begin_indexes: dict[str, int] = {
        t.step_update[0]: i for i, t in enumerate(log) if t.step_update and t.step_update[1] == "in_progress"
    }
    end_indexes = {
        t.step_update[0]: i for i, t in enumerate(log) if t.step_update and t.step_update[1] == "completed"
    }
    coded_steps = {
        step
        for step, first in begin_indexes.items()
        if any(t.agent == "coder" for t in log[first : end_indexes.get(step, len(log))])
        or _has_run_in_parallel(log, step)
    }
    return frozenset(step for step in end_indexes if step in begin_indexes and step not in coded_steps)


def _has_run_in_parallel(log: tuple[AnsweredCall, ...], step: str) -> bool:
    return any(step in str(t.call.args.get("requests")) for t in log if t.call.tool == TOOL)


def match_records(proofs: tuple[Proof, ...], evidence: Evidence) -> tuple[Proof, ...]:
    """Return the recorded versions of `proofs`, without unrecorded ones."""
    recorded = index_proofs(evidence)
    matches = (
        recorded.get((proof.kind, proof.ref, proof.subject if proof.kind != "exit_code" else ""))
        for proof in proofs
    )
    return tuple(dict.fromkeys(proof for proof in matches if proof is not None))


def index_proofs(evidence: Evidence) -> dict[tuple[str, str, str], Proof]:
    """Return all recorded proofs by kind and reference, and by path if one reference has several."""
    commands = (
        Proof(kind="exit_code", subject=c.command, ref=c.call_id, ok=c.exit_code == 0, value=str(c.exit_code))
        for c in evidence.commands
    )
    return {
        (p.kind, p.ref, "" if p.kind == "exit_code" else p.subject): p
        for p in (*commands, *evidence.proofs)
        if p.ref
    }


def build_step_claims(plan: Plan | None, evidence: Evidence, met: Collection[str] = ()) -> tuple[Claim, ...]:
    """Build the claim of each step: done with its proofs, or not done. `met`: steps that needed no work."""
    return tuple(
        _build_step_claim(number, step, evidence, met=step.step_id in met)
        for number, step in enumerate(plan.steps if plan else (), 1)
    )


def _build_step_claim(number: int, step: Step, evidence: Evidence, *, met: bool) -> Claim:
    if step.status != "completed":
        key = OPEN_STEP.get(step.status, "team.claim_not_begun")
        open_proofs = (find_proof(check, evidence) for check in step.acceptance)
        failed_proofs = tuple(proof for proof in open_proofs if proof is not None and not proof.ok)
        return Claim(text=text(key, number=number, name=step.name), proofs=failed_proofs)
    if not step.acceptance:
        return Claim(text=text("team.claim_by_word", number=number, name=step.name))
    all_proofs = tuple(find_proof(check, evidence) for check in step.acceptance)
    proofs = tuple(proof for proof in all_proofs if proof is not None)
    if len(proofs) == len(all_proofs) and all(proof.ok for proof in proofs):
        is_weak = all(proof.remarks for proof in proofs)
        key = "team.claim_met" if met else "team.claim_not_proven" if is_weak else "team.claim_done"
        return Claim(text=text(key, number=number, name=step.name), proofs=proofs)
    failing = tuple(proof for proof in proofs if not proof.ok)
    key = "team.claim_fails_now" if failing else "team.claim_outdated"
    return Claim(text=text(key, number=number, name=step.name), proofs=failing)


def build_closing_words(state: State, plan: Plan | None, why: Text) -> Text:
    """Return the team's closing text: why it stopped, what is missing, and the report."""
    report = build_final_report(state, plan)
    problems = _list_missing(state, plan) if plan is not None else []
    items = [text("team.item", what=entry) for entry in problems]
    missing = joined("lines", [text("team.not_finished"), *items]) if items else ""
    claims = format_claims(report.claims) if report.claims and not (why and plan is None) else ""
    assumptions = joined(
        "lines", [text("team.assumed", question=entry) for entry in find_unanswered_questions(state)]
    )
    dropped = ", ".join(f"`{check}`" for check in plan.dropped_checks) if plan is not None else ""
    dropped_note = text("team.checks_gone", names=dropped) if dropped else ""
    statement = "" if why else _format_statement(report)
    return joined("paragraphs", (why, missing, statement, assumptions, dropped_note, claims))


def _format_statement(report: Report) -> Text:
    """Return the text of a report; a model's is marked as its statement, which nothing checks."""
    marked = report.text and not report.from_records
    return text("team.statement", text=report.text) if marked else report.text


def _list_missing(state: State, plan: Plan) -> list[Text]:
    leftovers = [
        Text(f"{leftover.path}: `{leftover.text}`") for leftover in select_new_leftovers(state.done.leftovers)
    ]
    return [
        *(_format_open_step(state, step) for step in plan.steps if step.status != "completed"),
        *leftovers,
    ]


def _format_open_step(state: State, step: Step) -> Text:
    status, why = text(STATUS[step.status]), _find_reason(state, step)
    if why:
        return text("team.open_step_because", name=step.name, status=status, why=why)
    return text("team.open_step", name=step.name, status=status)


def _find_reason(state: State, step: Step) -> Text:
    """Return why the step failed: the first failing check, else the first line of its coder's last text."""
    if step.status != "failed":
        return Text("")
    problems = find_failed_checks(state, step.acceptance)
    if problems:
        return problems[0].why
    entries = select_since_begin(list_answered_calls(state), step)
    coders = (
        [t for t in entries if t.agent == "coder" and not t.ok]
        if has_begun(list_answered_calls(state), step)
        else []
    )
    return Text(
        truncate_middle(coders[-1].text.strip().partition("\n")[0].rstrip(":"), CAUSE) if coders else ""
    )


def _build_brief(state: State, plan: Plan | None) -> Brief:
    evidence = state.done
    return Brief(
        request=state.request.prompt,
        plan=plan,
        edits=EditsMade(files=evidence.files, checkpoints=evidence.checkpoints),
        commands=CommandsRun(commands=evidence.commands),
        proofs=evidence.proofs,
    )

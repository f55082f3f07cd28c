"""The team's report: the steps and proofs from the records, and what the reporter says as its own statement."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from daiku.domain.work.handovers import Brief, Claim, CommandsRun, EditsMade, Proof, Report, ReportMade
from daiku.domain.work.plans import Plan, Step, WorkStatus
from daiku.run.rules.state.state import State
from daiku.team.rules.checks import failed_checks
from daiku.team.rules.parallel import TOOL
from daiku.team.rules.person import unanswered_questions
from daiku.team.rules.proof.evidence import Evidence, proof_of
from daiku.team.rules.proof.placeholders import new_leftovers
from daiku.team.rules.record import AnsweredCall, answered_calls, begins, since_begun
from daiku.team.rules.summary import claims_markdown, plain_report
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import Text, joined, text

CAUSE = 300
"""Characters of why a step failed."""
STATUS: Mapping[WorkStatus, str] = MappingProxyType(
    {
        "pending": "plan.pending",
        "in_progress": "plan.in_progress",
        "completed": "plan.completed",
        "failed": "plan.failed",
    }
)
"""What a step's status is called."""
OPEN_STEP: Mapping[WorkStatus, str] = MappingProxyType(
    {"failed": "team.claim_failed", "in_progress": "team.claim_not_finished"}
)


def final_report(state: State, plan: Plan | None) -> Report:
    """Return the report, the reporter's or from the records (C4.11), with a claim for each step and its proofs."""
    made = [b.handover.report for b in state.nested.returned if isinstance(b.handover, ReportMade)]
    report = made[-1] if made else plain_report(_brief(state, plan))
    claims = tuple(
        claim.model_copy(update={"proofs": on_record(claim.proofs, state.done)}) for claim in report.claims
    )
    steps = step_claims(plan, state.done, _met_already(state))
    return report.model_copy(update={"claims": (*steps, *claims)})


def _met_already(state: State) -> frozenset[str]:
    """The steps that were completed without a coder, because their checks passed before any work."""
    log = answered_calls(state)
    begun: dict[str, int] = {
        t.step_update[0]: i for i, t in enumerate(log) if t.step_update and t.step_update[1] == "in_progress"
    }
    ended = {
        t.step_update[0]: i for i, t in enumerate(log) if t.step_update and t.step_update[1] == "completed"
    }
    worked = {
        step
        for step, first in begun.items()
        if any(t.agent == "coder" for t in log[first : ended.get(step, len(log))]) or _pieces_for(log, step)
    }
    return frozenset(step for step in ended if step in begun and step not in worked)


def _pieces_for(log: tuple[AnsweredCall, ...], step: str) -> bool:
    return any(step in str(t.call.args.get("requests")) for t in log if t.call.tool == TOOL)


def on_record(proofs: tuple[Proof, ...], done: Evidence) -> tuple[Proof, ...]:
    """Those of `proofs` that the records know, as the records have them."""
    known = records(done)
    found = (
        known.get((proof.kind, proof.ref, proof.subject if proof.kind != "exit_code" else ""))
        for proof in proofs
    )
    return tuple(dict.fromkeys(proof for proof in found if proof is not None))


def records(done: Evidence) -> dict[tuple[str, str, str], Proof]:
    """Every proof there is, by kind and reference (and path, where one reference is about several)."""
    ran = (
        Proof(kind="exit_code", subject=c.command, ref=c.call_id, ok=c.exit_code == 0, value=str(c.exit_code))
        for c in done.commands
    )
    return {
        (p.kind, p.ref, "" if p.kind == "exit_code" else p.subject): p for p in (*ran, *done.proofs) if p.ref
    }


def step_claims(plan: Plan | None, done: Evidence, met: Collection[str] = ()) -> tuple[Claim, ...]:
    """What is said of each step: done with what shows it, or not done; `met` needed no work."""
    return tuple(
        _step_claim(number, step, done, met=step.step_id in met)
        for number, step in enumerate(plan.steps if plan else (), 1)
    )


def _step_claim(number: int, step: Step, done: Evidence, *, met: bool) -> Claim:
    if step.status != "completed":
        key = OPEN_STEP.get(step.status, "team.claim_not_begun")
        shown = (proof_of(check, done) for check in step.acceptance)
        against = tuple(proof for proof in shown if proof is not None and not proof.ok)
        return Claim(text=text(key, number=number, name=step.name), proofs=against)
    if not step.acceptance:
        return Claim(text=text("team.claim_by_word", number=number, name=step.name))
    found = tuple(proof_of(check, done) for check in step.acceptance)
    proofs = tuple(proof for proof in found if proof is not None)
    if len(proofs) == len(found) and all(proof.ok for proof in proofs):
        weak = all(proof.remarks for proof in proofs)
        key = "team.claim_met" if met else "team.claim_not_proven" if weak else "team.claim_done"
        return Claim(text=text(key, number=number, name=step.name), proofs=proofs)
    failing = tuple(proof for proof in proofs if not proof.ok)
    key = "team.claim_fails_now" if failing else "team.claim_outdated"
    return Claim(text=text(key, number=number, name=step.name), proofs=failing)


def closing_words(state: State, plan: Plan | None, why: Text) -> Text:
    """The team's last words: why it stopped, and what is missing; then the report, whatever that says."""
    report = final_report(state, plan)
    lacking = _lacking(state, plan) if plan is not None else []
    items = [text("team.item", what=each) for each in lacking]
    missing = joined("lines", [text("team.not_finished"), *items]) if items else ""
    claims = claims_markdown(report.claims) if report.claims and not (why and plan is None) else ""
    assumed = joined("lines", [text("team.assumed", question=each) for each in unanswered_questions(state)])
    dropped = ", ".join(f"`{check}`" for check in plan.dropped_checks) if plan is not None else ""
    gone = text("team.checks_gone", names=dropped) if dropped else ""
    said = "" if why else _statement(report)
    return joined("paragraphs", (why, missing, said, assumed, gone, claims))


def _statement(report: Report) -> Text:
    """Return the text of a report; a model's is marked as its statement, which nothing checks."""
    marked = report.text and not report.from_records
    return text("team.statement", text=report.text) if marked else report.text


def _lacking(state: State, plan: Plan) -> list[Text]:
    left = [Text(f"{each.path}: `{each.text}`") for each in new_leftovers(state.done.leftovers)]
    return [*(_open_step(state, step) for step in plan.steps if step.status != "completed"), *left]


def _open_step(state: State, step: Step) -> Text:
    status, why = text(STATUS[step.status]), _because(state, step)
    if why:
        return text("team.open_step_because", name=step.name, status=status, why=why)
    return text("team.open_step", name=step.name, status=status)


def _because(state: State, step: Step) -> Text:
    """What the step failed of, in a few words: the first check that fails, else how its coder ended."""
    if step.status != "failed":
        return Text("")
    problems = failed_checks(state, step.acceptance)
    if problems:
        return problems[0].why
    here = since_begun(answered_calls(state), step)
    coders = (
        [t for t in here if t.agent == "coder" and not t.ok] if begins(answered_calls(state), step) else []
    )
    return Text(
        truncate_middle(coders[-1].text.strip().partition("\n")[0].rstrip(":"), CAUSE) if coders else ""
    )


def _brief(state: State, plan: Plan | None) -> Brief:
    done = state.done
    return Brief(
        request=state.request.prompt,
        plan=plan,
        edits=EditsMade(files=done.files, checkpoints=done.checkpoints),
        commands=CommandsRun(commands=done.commands),
        proofs=done.proofs,
    )

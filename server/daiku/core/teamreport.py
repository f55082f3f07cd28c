"""The team's report: every claim held against the records, and what is missing said."""

from __future__ import annotations

from daiku.core.evidence import Done, proof_of
from daiku.core.placeholders import left_behind
from daiku.core.reporting import listed, plain_report
from daiku.core.state import State
from daiku.domain.handovers import Brief, Claim, CommandsRun, EditsMade, Proof, Report, ReportMade
from daiku.domain.plans import Plan, Step


def final_report(state: State, plan: Plan | None) -> Report:
    """What the reporter handed over, or what follows from the records alone (C4.11); with a claim for
    each step, and every proof as it is on record: what is not there proves nothing."""
    made = [b.handover.report for b in state.returned if isinstance(b.handover, ReportMade)]
    report = made[-1] if made else plain_report(_brief(state, plan))
    claims = tuple(
        claim.model_copy(update={"proofs": on_record(claim.proofs, state.done)}) for claim in report.claims
    )
    return report.model_copy(update={"claims": (*step_claims(plan, state.done), *claims)})


def on_record(proofs: tuple[Proof, ...], done: Done) -> tuple[Proof, ...]:
    """Those of `proofs` that the records know, as the records have them."""
    known = records(done)
    found = (
        known.get((proof.kind, proof.ref, proof.subject if proof.kind != "exit_code" else ""))
        for proof in proofs
    )
    return tuple(dict.fromkeys(proof for proof in found if proof is not None))


def records(done: Done) -> dict[tuple[str, str, str], Proof]:
    """Every proof there is, by kind and reference (and path, where one reference is about several)."""
    ran = (
        Proof(kind="exit_code", subject=c.command, ref=c.call_id, ok=c.exit_code == 0, value=str(c.exit_code))
        for c in done.commands
    )
    return {
        (p.kind, p.ref, "" if p.kind == "exit_code" else p.subject): p for p in (*ran, *done.proofs) if p.ref
    }


def step_claims(plan: Plan | None, done: Done) -> tuple[Claim, ...]:
    """What is said of each step: done with what shows it, or not done."""
    return tuple(_step_claim(number, step, done) for number, step in enumerate(plan.steps if plan else (), 1))


def _step_claim(number: int, step: Step, done: Done) -> Claim:
    if step.status != "completed":
        how = {"failed": "failed", "in_progress": "is not finished"}.get(step.status, "was not begun")
        shown = (proof_of(check, done) for check in step.acceptance)
        against = tuple(proof for proof in shown if proof is not None and not proof.ok)
        return Claim(text=f"Step {number}, “{step.name}”, {how}.", proofs=against)
    if not step.acceptance:
        return Claim(
            text=f"Step {number}, “{step.name}”, is done by word: it has no checks, so it is not proven."
        )
    found = tuple(proof_of(check, done) for check in step.acceptance)
    proofs = tuple(proof for proof in found if proof is not None)
    if len(proofs) == len(found) and all(proof.ok for proof in proofs):
        return Claim(text=f"Step {number}, “{step.name}”, is done: its checks pass.", proofs=proofs)
    failing = [proof for proof in proofs if not proof.ok]
    why = "a check of it fails now" if failing else "its checks passed, but not since the last edit"
    return Claim(text=f"Step {number}, “{step.name}”, was done; {why}.", proofs=tuple(failing))


def closing_words(state: State, plan: Plan | None, why: str) -> str:
    """The team's last words: why it stopped, and what is missing; then the report, whatever that says."""
    report = final_report(state, plan)
    lacking = _lacking(state, plan) if plan is not None else []
    missing = "Not finished:\n" + "\n".join(f"- {each}" for each in lacking) if lacking else ""
    claims = listed(report.claims) if report.claims and not (why and plan is None) else ""
    return "\n\n".join(part for part in (why, missing, "" if why else report.text, claims) if part)


def _lacking(state: State, plan: Plan) -> list[str]:
    open_ones = [
        f"step “{s.name}” ({s.status.replace('_', ' ')})" for s in plan.steps if s.status != "completed"
    ]
    left = [f"{each.path}: `{each.text}`" for each in left_behind(state.done.leftovers)]
    return [*open_ones, *left]


def _brief(state: State, plan: Plan | None) -> Brief:
    done = state.done
    return Brief(
        request=state.prompt,
        plan=plan,
        edits=EditsMade(files=done.files, checkpoints=done.checkpoints),
        commands=CommandsRun(commands=done.commands),
        proofs=done.proofs,
    )

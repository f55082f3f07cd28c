"""Decide when a step may be completed: which of its checks still lack a proof, and the messages for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from daiku.domain.work.handovers import Proof
from daiku.domain.work.plans import Plan, Step
from daiku.team.rules.proof.checks import LONGEST
from daiku.team.rules.proof.evidence import EVERYWHERE, Evidence, diagnosed_place, unproven_checks
from daiku.texts.text import NO_TEXT, Text, text

VOUCH = text("plan.vouch")
LEAVE = text("plan.leave_open")


class MissingProofs(NamedTuple):
    """Unproven checks of a step: those `to_run`, and those `unseen` because no editor is connected."""

    to_run: tuple[tuple[str, Proof | None], ...]
    unseen: tuple[str, ...]


def missing_proofs(step: Step, done: Evidence, *, editor: bool) -> MissingProofs:
    """Return the checks of a step that still need a proof before it may be completed."""
    rest = unproven_checks(step.acceptance, done)
    unseen = tuple(c for c, proof in rest if not editor and diagnosed_place(c) is not None and proof is None)
    return MissingProofs(tuple((c, proof) for c, proof in rest if c not in unseen), unseen)


def refusal(step: Step, lacking: MissingProofs, check_seconds: int) -> str:
    """Why the step stays open, and what to run; `check_seconds`: how long, where the step says nothing."""
    lines = [
        f"- {_what(check, proof, step.check_seconds.get(check, check_seconds) or LONGEST)}"
        for check, proof in lacking.to_run
    ]
    lines += [
        f"- `{check}`: no editor is connected, so nothing here can show diagnostics. A person can count it "
        "as met, or give the step a command as its check (a linter, a compiler, a test)."
        for check in lacking.unseen
    ]
    checks = "\n".join(lines)
    return (
        f"Step “{step.name}” stays open: not every check of it has passed since the last edit.\n{checks}\n"
        "Do that, put right what fails, then complete the step."
    )


def question(step: Step, check: str) -> Text:
    """What the person is asked about a check that cannot be shown here."""
    return text("plan.count_as_met", name=step.name, check=check)


def open_steps(plans: tuple[Plan, ...]) -> tuple[tuple[Plan, tuple[Step, ...]], ...]:
    """The plans that are being worked, each with its steps that are not completed."""
    under_way = (plan for plan in plans if plan.status in ("approved", "in_progress", "failed"))
    left = ((plan, tuple(s for s in plan.steps if s.status != "completed")) for plan in under_way)
    return tuple((plan, steps) for plan, steps in left if steps)


def next_open(plans: tuple[Plan, ...]) -> Plan | None:
    """The newest plan that is not finished, a draft too."""
    return next((plan for plan in reversed(plans) if plan.status not in ("completed", "failed")), None)


def open_notice(plans: tuple[Plan, ...]) -> Text:
    """What the person is told where a run ends before its plan does; empty where nothing is open."""
    for plan, steps in reversed(open_steps(plans)):
        return progress_text(plan, steps)
    return NO_TEXT


def progress_text(plan: Plan, left: Sequence[Step]) -> Text:
    """How far a plan is, with the names of the steps that are not completed."""
    done, total = plan.progress()
    names = ", ".join(step.name for step in left)
    return text("plan.not_finished", name=plan.name, done=done, total=total, names=names)


def _what(check: str, proof: Proof | None, seconds: int) -> str:
    place = diagnosed_place(check)
    if place is None:
        run = f"Run exactly `{check}` with shell__run and timeout {seconds}; it has to end with exit code 0"
        return f"{run} (its last run ended with {proof.value})." if proof is not None else f"{run}."
    where = "" if place == EVERYWHERE or any(c in place for c in "*?[") else f' with path "{place}"'
    run = f"`{check}`: call editor__diagnostics{where}; it has to show no errors there"
    return (
        f"{run} (it showed {proof.value} in {proof.subject or 'the project'})."
        if proof is not None
        else f"{run}."
    )

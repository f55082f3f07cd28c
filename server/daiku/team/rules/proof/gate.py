"""Decide when a step may be completed: find its unproven checks, and build the messages about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from daiku.domain.work.handovers import Proof
from daiku.domain.work.plans import Plan, Step
from daiku.team.rules.proof.checks import LONGEST
from daiku.team.rules.proof.evidence import (
    EVERYWHERE,
    Evidence,
    find_unproven_checks,
    parse_diagnostics_check,
)
from daiku.texts.text import NO_TEXT, Text, text

VOUCH = text("plan.vouch")
LEAVE = text("plan.leave_open")


class MissingProofs(NamedTuple):
    """Unproven checks of a step: those `to_run`, and those `unseen` because no editor is connected."""

    to_run: tuple[tuple[str, Proof | None], ...]
    unseen: tuple[str, ...]


def find_missing_proofs(step: Step, evidence: Evidence, *, editor: bool) -> MissingProofs:
    """Return the checks of a step that still need a proof before it may be completed."""
    rest = find_unproven_checks(step.acceptance, evidence)
    unseen = tuple(
        c for c, proof in rest if not editor and parse_diagnostics_check(c) is not None and proof is None
    )
    return MissingProofs(tuple((c, proof) for c, proof in rest if c not in unseen), unseen)


def describe_missing_proofs(step: Step, missing: MissingProofs, check_seconds: int) -> str:
    """Return why the step stays open, and what to run. `check_seconds`: default timeout in seconds."""
    lines = [
        f"- {_describe_check(check, proof, step.check_seconds.get(check, check_seconds) or LONGEST)}"
        for check, proof in missing.to_run
    ]
    lines += [
        f"- `{check}`: no editor is connected, so nothing here can show diagnostics. A person can count it "
        "as met, or give the step a command as its check (a linter, a compiler, a test)."
        for check in missing.unseen
    ]
    checks = "\n".join(lines)
    return (
        f"Step “{step.name}” stays open: not every check of it has passed since the last edit.\n{checks}\n"
        "Do that, put right what fails, then complete the step."
    )


def build_question(step: Step, check: str) -> Text:
    """Return the question to the user about a check that nothing here can show."""
    return text("plan.count_as_met", name=step.name, check=check)


def _find_open_steps(plans: tuple[Plan, ...]) -> tuple[tuple[Plan, tuple[Step, ...]], ...]:
    """Return the plans in progress, each with its uncompleted steps."""
    active_plans = (plan for plan in plans if plan.status in ("approved", "in_progress", "failed"))
    plans_and_steps = (
        (plan, tuple(s for s in plan.steps if s.status != "completed")) for plan in active_plans
    )
    return tuple((plan, steps) for plan, steps in plans_and_steps if steps)


def find_open_plan(plans: tuple[Plan, ...]) -> Plan | None:
    """Return the newest unfinished plan, also a draft."""
    return next((plan for plan in reversed(plans) if plan.status not in ("completed", "failed")), None)


def build_open_notice(plans: tuple[Plan, ...]) -> Text:
    """Return the notice for a run that ends before its plan does; empty if nothing is open."""
    for plan, steps in reversed(_find_open_steps(plans)):
        return format_progress(plan, steps)
    return NO_TEXT


def format_progress(plan: Plan, open_steps: Sequence[Step]) -> Text:
    """Return the progress of a plan, with the names of its uncompleted steps."""
    completed, total = plan.progress()
    names = ", ".join(step.name for step in open_steps)
    return text("plan.not_finished", name=plan.name, done=completed, total=total, names=names)


def _describe_check(check: str, proof: Proof | None, seconds: int) -> str:
    place = parse_diagnostics_check(check)
    if place is None:
        instruction = (
            f"Run exactly `{check}` with shell__run and timeout {seconds}; it has to end with exit code 0"
        )
        return (
            f"{instruction} (its last run ended with {proof.value})."
            if proof is not None
            else f"{instruction}."
        )
    path_note = "" if place == EVERYWHERE or any(c in place for c in "*?[") else f' with path "{place}"'
    instruction = f"`{check}`: call editor__diagnostics{path_note}; it has to show no errors there"
    return (
        f"{instruction} (it showed {proof.value} in {proof.subject or 'the project'})."
        if proof is not None
        else f"{instruction}."
    )

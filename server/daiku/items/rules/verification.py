"""The verification of an item whose run claims to be done: what is unfinished, and the prompt to finish it."""

from __future__ import annotations

from collections.abc import Sequence

from daiku.domain.runs import RunResult, UnverifiedReason
from daiku.domain.work.plans import Plan
from daiku.team.rules.proof.evidence import Evidence
from daiku.team.rules.proof.placeholders import select_new_leftovers
from daiku.texts.rules.truncate import fence_as_data
from daiku.texts.text import text

MOST = 20
"""Maximum number of unfinished places in one prompt."""


def list_unfinished(evidence: Evidence, plan: Plan | None) -> tuple[str, ...]:
    """Return the recorded unfinished work: placeholder lines, and steps that are not completed."""
    lines = (f"{leftover.path}: {leftover.text}" for leftover in select_new_leftovers(evidence.leftovers))
    steps = (step.name for step in (plan.steps if plan is not None else ()) if step.status != "completed")
    return (*lines, *steps)[:MOST]


def mark_failing(result: RunResult, tests: Sequence[str]) -> RunResult:
    """Mark the result as unverified if tests failed when any run of the item last ran them."""
    if result.status != "completed" or not tests:
        return result
    reasons = tuple(
        UnverifiedReason(
            kind="last_check_failed", subject=test, message=text("work.test_failed", command=test)
        )
        for test in tests
    )
    return result.model_copy(update={"status": "completed_unverified", "reasons": reasons})


def render_verification_prompt(unfinished: Sequence[str], tests: Sequence[str]) -> str:
    """Return the prompt of the item's next run. The lines are fenced: they may contain a stranger's text."""
    parts = ["You said that the work is done. The record of it does not agree: it is not finished."]
    if unfinished:
        lines = fence_as_data("\n".join(unfinished))
        parts.append(f"Unfinished lines that you wrote, and steps of the plan:\n{lines}")
    if tests:
        lines = fence_as_data("\n".join(tests))
        parts.append(f"Tests that failed when they were run last:\n{lines}")
    parts.append(
        "Read the files that you changed once more, put right what is left, mark each step of the plan by how it "
        "stands, and run the tests again. Tests that failed before you began stay as they are. Then say in a few "
        "sentences what you changed in all, what you ran and how it ended, and what is left."
    )
    return "\n\n".join(parts)

"""The check of an item whose run says that it is done: what is unfinished, and the request to finish it (S2P.8–S2P.10)."""

from __future__ import annotations

from collections.abc import Sequence

from daiku.domain.runs import RunResult, UnverifiedReason
from daiku.domain.work.plans import Plan
from daiku.team.rules.proof.evidence import Evidence
from daiku.team.rules.proof.placeholders import select_new_leftovers
from daiku.texts.rules.truncate import fence_as_data
from daiku.texts.text import text

MOST = 20
"""Unfinished places that are told at once."""


def unfinished(done: Evidence, plan: Plan | None) -> tuple[str, ...]:
    """What on record says that the work is not whole: lines that say so of themselves, steps that are not completed."""
    lines = (f"{left.path}: {left.text}" for left in select_new_leftovers(done.leftovers))
    steps = (step.name for step in (plan.steps if plan is not None else ()) if step.status != "completed")
    return (*lines, *steps)[:MOST]


def mark_failing(result: RunResult, tests: Sequence[str]) -> RunResult:
    """Return the result of completed work as unverified if tests failed when any run of the item ran them last."""
    if result.status != "completed" or not tests:
        return result
    reasons = tuple(
        UnverifiedReason(
            kind="last_check_failed", subject=each, message=text("work.test_failed", command=each)
        )
        for each in tests
    )
    return result.model_copy(update={"status": "completed_unverified", "reasons": reasons})


def go_on(left: Sequence[str], tests: Sequence[str]) -> str:
    """What the next run of the item is asked. The lines are quoted: a stranger's words may stand in them."""
    parts = ["You said that the work is done. The record of it does not agree: it is not finished."]
    if left:
        lines = fence_as_data("\n".join(left))
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

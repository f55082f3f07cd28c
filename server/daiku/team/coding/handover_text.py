"""Format the results of earlier stages for the next agent's prompt: length-limited, untrusted text fenced."""

from __future__ import annotations

import re
from collections.abc import Iterable

from daiku.domain.work.handovers import Brief, CommandOutcome
from daiku.domain.work.plans import Plan
from daiku.texts.rules.truncate import truncate_middle

SHOWN_OUTPUT = 6000
"""Maximum characters of one command's output in a request."""
SHOWN_COMMANDS = 20


def fence(text: str, mark: str = "`") -> str:
    """Return `text` in a Markdown fence that is longer than any run of `mark` in it."""
    runs = re.findall(rf"{re.escape(mark)}{{3,}}", text)
    marks = mark * (max((len(run) for run in runs), default=2) + 1)
    return f"{marks}\n{text}\n{marks}"


def format_work_so_far(brief: Brief) -> str:
    """Format the files changed and commands run before this stage; empty if there are none."""
    parts: list[str] = []
    if brief.edits is not None and brief.edits.files:
        lines = (f"- {f.path}: {f.kind}, +{f.added} -{f.removed}" for f in brief.edits.files)
        parts.append("Files that were changed:\n" + "\n".join(lines))
    if brief.commands is not None and brief.commands.commands:
        parts.append("Commands that were run:\n" + format_outcomes(brief.commands.commands))
    return "\n\n".join(parts)


def format_outcomes(commands: Iterable[CommandOutcome]) -> str:
    """Format the latest commands with exit code and output."""
    latest = tuple(commands)[-SHOWN_COMMANDS:]
    return "\n\n".join(
        f"`{c.command}` ended with exit code {c.exit_code}:\n{fence(truncate_middle(c.output.rstrip(), SHOWN_OUTPUT))}"
        for c in latest
    )


def format_step(plan: Plan | None, step_id: str) -> str:
    """Format the current step with its checks; empty if there is none."""
    steps = plan.steps if plan is not None else ()
    for number, step in enumerate(steps, 1):
        if step.step_id == step_id:
            checks = "".join(f"\nIt is done when this passes: {check}" for check in step.acceptance)
            description = f"\n{step.description}" if step.description else ""
            return f"Step {number}: {step.name}{description}{checks}"
    return ""

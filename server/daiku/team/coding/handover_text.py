"""Format the results of earlier stages for the next agent's prompt: length-limited, untrusted text fenced."""

from __future__ import annotations

import re
from collections.abc import Iterable

from daiku.domain.work.handovers import Brief, CommandOutcome
from daiku.domain.work.plans import Plan
from daiku.texts.rules.truncate import truncate_middle

SHOWN_OUTPUT = 6000
"""Characters of one command's output in a request."""
SHOWN_COMMANDS = 20


def fenced(text: str, mark: str = "`") -> str:
    """`text` in a fence that nothing in it can close."""
    runs = re.findall(rf"{re.escape(mark)}{{3,}}", text)
    fence = mark * (max((len(run) for run in runs), default=2) + 1)
    return f"{fence}\n{text}\n{fence}"


def work_so_far(brief: Brief) -> str:
    """Format the files changed and commands run before this stage; empty if there are none."""
    parts: list[str] = []
    if brief.edits is not None and brief.edits.files:
        lines = (f"- {f.path}: {f.kind}, +{f.added} -{f.removed}" for f in brief.edits.files)
        parts.append("Files that were changed:\n" + "\n".join(lines))
    if brief.commands is not None and brief.commands.commands:
        parts.append("Commands that were run:\n" + outcomes(brief.commands.commands))
    return "\n\n".join(parts)


def outcomes(commands: Iterable[CommandOutcome]) -> str:
    """The latest commands with exit code and output."""
    latest = tuple(commands)[-SHOWN_COMMANDS:]
    return "\n\n".join(
        f"`{c.command}` ended with exit code {c.exit_code}:\n{fenced(truncate_middle(c.output.rstrip(), SHOWN_OUTPUT))}"
        for c in latest
    )


def step_line(plan: Plan | None, step_id: str) -> str:
    """The step to work on now, with its checks; empty without one."""
    steps = plan.steps if plan is not None else ()
    for number, step in enumerate(steps, 1):
        if step.step_id == step_id:
            checks = "".join(f"\nIt is done when this passes: {check}" for check in step.acceptance)
            about = f"\n{step.description}" if step.description else ""
            return f"Step {number}: {step.name}{about}{checks}"
    return ""

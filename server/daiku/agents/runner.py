"""The runner: commands for this project, one after the other, and a bounded repair where one fails."""

from __future__ import annotations

import platform

from daiku.agents.telling import fenced, step_line
from daiku.core.parse import Unreadable
from daiku.core.state import State
from daiku.domain.base import Frozen
from daiku.domain.handovers import Brief, CommandsRun
from daiku.prompts import render


class RunVariables(Frozen):
    """What the runner is asked (R0.73); the conversation's last message is its last line."""

    conversation: tuple[str, ...]
    transcript: str
    code_markdown: str
    step: str
    system_os: str


def run_request(brief: Brief) -> str:
    """The request to the runner: conversation, the code, the person's last message, the system."""
    conversation = tuple(_conversation(brief))
    return render(
        "agents/runner_request",
        RunVariables(
            conversation=conversation,
            transcript=fenced("\n".join(conversation)),
            code_markdown=fenced(_code(brief), "~"),
            step=step_line(brief.plan, brief.step_id),
            system_os=f"{platform.system()} {platform.machine()}",
        ),
    ).strip()


def commands_run(state: State) -> CommandsRun | Unreadable:
    """Every command that was really run; none is valid too, the notes then say why."""
    return CommandsRun(commands=state.done.commands, notes=state.text)


def _conversation(brief: Brief) -> list[str]:
    """One line a message (R0.74); the person's last message is the last."""
    lines: list[str] = []
    if brief.plan is not None and brief.plan.summary:
        lines.append(f"Planner: {_line(brief.plan.summary)}")
    if brief.edits is not None and brief.edits.notes:
        lines.append(f"Coder: {_line(brief.edits.notes)}")
    return [*lines, f"User: {_line(brief.request)}"]


def _code(brief: Brief) -> str:
    if brief.code:
        return brief.code
    files = brief.edits.files if brief.edits is not None else ()
    if not files:
        return "Nothing was written just now: the project as it is."
    return "\n".join(f"File: `{f.path}` ({f.kind}, +{f.added} -{f.removed})" for f in files)


def _line(text: str) -> str:
    return " ".join(text.split())

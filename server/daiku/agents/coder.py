"""The coder: writes whole files, edits and patches; every one goes through the tools that change files."""

from __future__ import annotations

from daiku.agents.telling import fenced, happened, step_line
from daiku.core.parse import Unreadable
from daiku.core.planning import checklist
from daiku.core.research import by_query
from daiku.core.state import State
from daiku.domain.base import Frozen
from daiku.domain.handovers import Brief, EditsMade
from daiku.prompts import render


class CodeVariables(Frozen):
    """What the coder is asked (R0.52); results are fenced already."""

    step_by_step_plan: str
    step: str
    user_context: str
    search_results: tuple[tuple[str, str], ...]
    happened: str


def code_request(brief: Brief) -> str:
    """The request to the coder: plan, the person's words, what research found (C0.10)."""
    found = by_query(brief.findings.results) if brief.findings is not None else {}
    return render(
        "agents/coder_request",
        CodeVariables(
            step_by_step_plan=fenced(checklist(brief.plan)) if brief.plan is not None else "",
            step=step_line(brief.plan, brief.step_id),
            user_context=fenced(brief.request),
            search_results=tuple((query, fenced(result)) for query, result in found.items()),
            happened=happened(brief),
        ),
    ).strip()


def edits_made(state: State) -> EditsMade | Unreadable:
    """The files that were really changed; none is valid too, the notes then say why."""
    return EditsMade(files=state.done.files, checkpoints=state.done.checkpoints, notes=state.text)

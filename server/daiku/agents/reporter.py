"""The reporter: what came of the work, every claim with what it rests on."""

from __future__ import annotations

from daiku.agents.telling import happened
from daiku.core.parse import Unreadable
from daiku.core.planning import checklist
from daiku.core.reporting import plain_report, proofs_of, sentence
from daiku.core.research import told
from daiku.core.state import State
from daiku.domain.base import Frozen
from daiku.domain.handovers import Brief, ReportMade
from daiku.prompts import render


class ReportVariables(Frozen):
    """What the reporter is told: everything that is on record."""

    request: str
    plan: str
    findings: str
    happened: str
    proofs: tuple[tuple[str, str], ...]
    """Reference and what it shows."""


def report_request(brief: Brief) -> str:
    """The request to the reporter."""
    findings = brief.findings
    return render(
        "agents/reporter_request",
        ReportVariables(
            request=brief.request,
            plan=checklist(brief.plan) if brief.plan is not None else "",
            findings=told(findings.queries, findings.results).partition("\n\n---\n\n")[0] if findings else "",
            happened=happened(brief),
            proofs=tuple((proof.ref, sentence(proof)) for proof in proofs_of(brief)),
        ),
    ).strip()


def report_made(state: State) -> ReportMade | Unreadable:
    """The report that follows from what is on record."""
    if state.brief is None:
        return Unreadable("there is nothing to report about")
    return ReportMade(report=plain_report(state.brief))

"""`daiku report`: a session's requests, results, proofs, open work, and cost."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Literal

import click

from daiku.domain.base import Wire
from daiku.domain.messages import Usage
from daiku.domain.runs import RunStatus
from daiku.domain.work.handovers import CommandOutcome, Proof
from daiku.domain.work.patches import FileStat
from daiku.domain.work.plans import PlanInFull, in_full
from daiku.fronts.cli.commands.run import newest_session
from daiku.fronts.cli.commands.sessions import open_journal, write_out
from daiku.fronts.cli.main import write_json
from daiku.library.fronts import states_of_runs
from daiku.team.rules.proof.evidence import Evidence, merge_evidence
from daiku.texts.terminal import localize, say
from daiku.texts.text import Text, text
from daiku.trace.journal import Journal


class RequestReport(Wire):
    """One request of the session; `status` is None while its run is not finished."""

    prompt: str
    status: RunStatus | None


class SessionReport(Wire):
    """Report of a recorded session."""

    session_id: str
    title: str
    requests: tuple[RequestReport, ...]
    files: tuple[FileStat, ...]
    commands: tuple[CommandOutcome, ...]
    proofs: tuple[Proof, ...]
    """Results of commands and diagnostics since the last edit."""
    plans: tuple[PlanInFull, ...]
    usage: Usage


def report_of(journal: Journal, session: str) -> SessionReport:
    """Return the report of a session. Raises UsageError (not_found)."""
    states = tuple(states_of_runs(journal.chunks(session)))
    evidence = reduce(merge_evidence, (state.done for state in states), Evidence())
    return SessionReport(
        session_id=session,
        title=journal.get_session(session).title,
        requests=tuple(
            RequestReport(
                prompt=state.request.wording or state.request.prompt,
                status=state.finished.status if state.finished else None,
            )
            for state in states
        ),
        files=evidence.files,
        commands=evidence.commands,
        proofs=tuple(proof for proof in evidence.proofs if proof.kind != "diff"),
        plans=tuple(map(in_full, states[-1].plans.all if states else ())),
        usage=reduce(Usage.plus, (state.spending.usage for state in states), Usage()),
    )


def report_parts(report: SessionReport) -> Iterator[tuple[Text, tuple[Text, ...]]]:
    """Yield the sections of a report: each heading with its lines."""
    yield (
        text("report.requested"),
        tuple(_line(request.prompt, request.status or "interrupted") for request in report.requests),
    )
    yield (
        text("report.done"),
        tuple(Text(f"{f.kind}: {f.path} (+{f.added} -{f.removed})") for f in report.files),
    )
    yield text("report.proved"), tuple(_proof_line(proof) for proof in report.proofs if proof.ok)
    steps = (step for plan in report.plans for step in plan.steps if step.status != "completed")
    failing = (_proof_line(proof) for proof in report.proofs if not proof.ok)
    unfinished = tuple(
        _line(request.prompt, request.status or "interrupted")
        for request in report.requests[-1:]
        if request.status != "completed"
    )
    yield text("report.open"), (*unfinished, *(_line(step.name, step.status) for step in steps), *failing)
    usage = report.usage
    cost = f", ${usage.cost:.4f}" if usage.cost else ""
    tokens = text("report.tokens", prompt=usage.prompt_tokens, completion=usage.completion_tokens)
    yield text("report.cost"), (Text(f"{tokens}{cost}"),)


def _line(what: str, status: str) -> Text:
    return Text(f"{' '.join(what.split())} ({status})")


def _proof_line(proof: Proof) -> Text:
    return Text(f"`{proof.subject}`: {proof.value}")


@click.command("report", help=say("help.report"))
@click.argument("session", required=False, default="")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    show_default=True,
    help=say("help.report.format"),
)
def report(session: str, form: Literal["text", "markdown", "json"]) -> None:
    with open_journal() as journal:
        session_report = report_of(journal, session or newest_session(journal, str(Path.cwd())))
    if form == "json":
        write_json(session_report.model_dump_json(by_alias=True))
    else:
        write_out(_render(session_report, form))


def _render(report: SessionReport, form: Literal["text", "markdown"]) -> str:
    markdown = form == "markdown"
    bullet = "- " if markdown else "  "
    lines = [f"{'# ' if markdown else ''}{report.title or report.session_id}"]
    for heading, rows in report_parts(report):
        lines += ["", f"{'## ' if markdown else ''}{localize(heading)}", *([""] if markdown and rows else [])]
        lines += [bullet + row for row in map(localize, rows)] or [f"{bullet}{say('report.nothing')}"]
    return "\n".join(lines) + "\n"

"""The report of a session: what was requested, done, and proved, what is open, and the cost; read from the journal."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from daiku.core.proof.evidence import Evidence, merge_evidence
from daiku.domain.base import Wire
from daiku.domain.messages import Usage
from daiku.domain.runs import RunStatus
from daiku.domain.work.handovers import CommandOutcome, Proof
from daiku.domain.work.patches import FileStat
from daiku.domain.work.plans import PlanInFull, in_full
from daiku.runs.recorded.history import states_of_runs
from daiku.texts.text import Text, text
from daiku.trace.journal import Journal


class RequestReport(Wire):
    """One request of the session; `status` is None while its run is not finished."""

    prompt: str
    status: RunStatus | None


class SessionReport(Wire):
    """What the record of a session shows."""

    session_id: str
    title: str
    requests: tuple[RequestReport, ...]
    files: tuple[FileStat, ...]
    commands: tuple[CommandOutcome, ...]
    proofs: tuple[Proof, ...]
    """Results since the last edit: of commands, and of diagnostics."""
    plans: tuple[PlanInFull, ...]
    usage: Usage


def report_of(journal: Journal, session: str) -> SessionReport:
    """Return the report of a session. Raises UsageError (not_found)."""
    states = tuple(states_of_runs(journal.chunks(session)))
    done = reduce(merge_evidence, (state.done for state in states), Evidence())
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
        files=done.files,
        commands=done.commands,
        proofs=tuple(proof for proof in done.proofs if proof.kind != "diff"),
        plans=tuple(map(in_full, states[-1].plans.all if states else ())),
        usage=reduce(Usage.plus, (state.spending.usage for state in states), Usage()),
    )


def report_parts(report: SessionReport) -> Iterator[tuple[Text, tuple[Text, ...]]]:
    """Return the sections of a report for people: each heading with its lines."""
    yield (
        text("report.requested"),
        tuple(_line(each.prompt, each.status or "interrupted") for each in report.requests),
    )
    yield (
        text("report.done"),
        tuple(Text(f"{f.kind}: {f.path} (+{f.added} -{f.removed})") for f in report.files),
    )
    yield text("report.proved"), tuple(_proof_line(proof) for proof in report.proofs if proof.ok)
    steps = (step for plan in report.plans for step in plan.steps if step.status != "completed")
    failing = (_proof_line(proof) for proof in report.proofs if not proof.ok)
    unfinished = tuple(
        _line(each.prompt, each.status or "interrupted")
        for each in report.requests[-1:]
        if each.status != "completed"
    )
    yield text("report.open"), (*unfinished, *(_line(step.name, step.status) for step in steps), *failing)
    used = report.usage
    cost = f", ${used.cost:.4f}" if used.cost else ""
    tokens = text("report.tokens", prompt=used.prompt_tokens, completion=used.completion_tokens)
    yield text("report.cost"), (Text(f"{tokens}{cost}"),)


def _line(what: str, status: str) -> Text:
    return Text(f"{' '.join(what.split())} ({status})")


def _proof_line(proof: Proof) -> Text:
    return Text(f"`{proof.subject}`: {proof.value}")

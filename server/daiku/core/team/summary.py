"""A report without a model: what was done, told from its records, each claim with what it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from daiku.core.text.truncate import cut_middle
from daiku.domain.work.handovers import Brief, Claim, Proof, Remark, Report

SHOWN_COMMAND = 120
SHOWN_PROOFS = 5
REMARKS: Mapping[Remark, str] = MappingProxyType(
    {
        "passed_before": "it passed before the work as well",
        "no_tests": "it ran no test",
        "check_changed": "the work changed what it is made of",
    }
)


def proofs_of(brief: Brief) -> tuple[Proof, ...]:
    """What the claims of a report about `brief` may rest on: the proofs it brings, and those that follow
    from its edits and commands."""
    edits, commands = brief.edits, brief.commands
    checkpoint = edits.checkpoints[-1] if edits is not None and edits.checkpoints else ""
    diffs = (
        Proof(kind="diff", subject=f.path, ref=checkpoint, ok=True, value=f"+{f.added} -{f.removed}")
        for f in (edits.files if edits is not None and checkpoint else ())
    )
    runs = (
        Proof(
            kind="exit_code",
            subject=c.command,
            ref=c.call_id,
            ok=c.exit_code == 0,
            value=str(c.exit_code),
        )
        for c in (commands.commands if commands is not None else ())
        if c.call_id
    )
    found: dict[tuple[str, str, str], Proof] = {}
    for proof in (*brief.proofs, *diffs, *runs):
        found.setdefault((proof.kind, proof.subject, proof.ref), proof)
    return tuple(found.values())


def plain_report(brief: Brief) -> Report:
    """The report that follows from the records alone; the same for the same brief."""
    proofs = proofs_of(brief)
    claims = tuple(Claim(text=sentence(proof), proofs=(proof,)) for proof in proofs)
    head = f"Asked: {brief.request}" if brief.request else "Asked: nothing on record."
    if brief.plan is not None:
        done, total = brief.plan.progress()
        head += f"\n\nPlan “{brief.plan.name}”: {done} of {total} steps done."
    body = "" if claims else "\n\nNothing was changed and nothing was run."
    return Report(text=f"{head}{body}", claims=claims, from_records=True)


def sentence(proof: Proof) -> str:
    """What a proof shows, as a sentence."""
    match proof.kind:
        case "exit_code":
            how = "passed" if proof.ok else f"failed with exit code {proof.value}"
            return f"`{cut_middle(proof.subject, SHOWN_COMMAND)}` {how}."
        case "diagnostics":
            where = proof.subject or "the project"
            return f"{where} has no errors." if proof.ok else f"{where} has {proof.value} errors."
        case "person":
            return f"`{proof.subject}` counts as met by your word."
        case "diff":
            return f"{proof.subject} was changed ({proof.value})."


def listed(claims: Iterable[Claim]) -> str:
    """Claims as Markdown, each with what it rests on; one without proof says so."""
    return "\n".join(f"- {claim.text} ({_shown(claim)})" for claim in claims)


def _shown(claim: Claim) -> str:
    named = (_named(proof, claim.text) for proof in claim.proofs[:SHOWN_PROOFS])
    rest = len(claim.proofs) - SHOWN_PROOFS
    parts = [*(["not proven"] if claim.unfit else []), *named, *([f"{rest} more"] if rest > 0 else [])]
    return "; ".join(parts) or "not checked"


def _named(proof: Proof, beside: str) -> str:
    """A proof in a few words; without its subject where that stands beside it already."""
    subject = cut_middle(proof.subject, SHOWN_COMMAND)
    match proof.kind:
        case "exit_code":
            what, name = f"exit code {proof.value}", f"`{subject}`"
        case "diagnostics":
            what, name = "no errors" if proof.ok else f"{proof.value} errors", subject or "everywhere"
        case "diff":
            what, name = proof.value, subject
        case "person":
            what, name = "your word", f"`{subject}`"
    whole = what if subject and subject in beside else f"{name}: {what}"
    return ", but ".join([whole, *(REMARKS[remark] for remark in proof.remarks)])

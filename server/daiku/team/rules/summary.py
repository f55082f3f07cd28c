"""Build a report without a model: what was done according to the records, each claim with its proof."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from daiku.domain.work.handovers import Brief, Claim, Proof, Remark, Report
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import Text, joined, text

SHOWN_COMMAND = 120
SHOWN_PROOFS = 5
REMARKS: Mapping[Remark, str] = MappingProxyType(
    {
        "passed_before": "team.passed_before",
        "no_tests": "team.no_tests",
        "check_changed": "team.check_changed",
    }
)


def list_proofs(brief: Brief) -> tuple[Proof, ...]:
    """Return the proofs that a report may cite: those in `brief`, a diff per file, an exit code per command."""
    edits, commands = brief.edits, brief.commands
    checkpoint = edits.checkpoints[-1] if edits is not None and edits.checkpoints else ""
    diffs = (
        Proof(kind="diff", subject=f.path, ref=checkpoint, ok=True, value=f"+{f.added} -{f.removed}")
        for f in (edits.files if edits is not None and checkpoint else ())
    )
    runs = (
        Proof(kind="exit_code", subject=c.command, ref=c.call_id, ok=c.exit_code == 0, value=str(c.exit_code))
        for c in (commands.commands if commands is not None else ())
        if c.call_id
    )
    proofs: dict[tuple[str, str, str], Proof] = {}
    for proof in (*brief.proofs, *diffs, *runs):
        proofs.setdefault((proof.kind, proof.subject, proof.ref), proof)
    return tuple(proofs.values())


def build_plain_report(brief: Brief) -> Report:
    """Build the report from the records alone; equal briefs give equal reports."""
    proofs = list_proofs(brief)
    claims = tuple(Claim(text=describe_proof(proof), proofs=(proof,)) for proof in proofs)
    request_text = text("team.asked", request=brief.request) if brief.request else text("team.asked_nothing")
    parts = [request_text]
    if brief.plan is not None:
        completed, total = brief.plan.progress()
        parts.append(text("team.plan_progress", name=brief.plan.name, done=completed, total=total))
    if not claims:
        parts.append(text("team.nothing_done"))
    return Report(text=joined("paragraphs", parts), claims=claims, from_records=True)


def describe_proof(proof: Proof) -> Text:
    """Describe a proof in a sentence."""
    match proof.kind:
        case "exit_code":
            command = truncate_middle(proof.subject, SHOWN_COMMAND)
            if proof.ok:
                return text("team.proof_passed", command=command)
            return text("team.proof_failed", command=command, code=proof.value)
        case "diagnostics":
            place = proof.subject or text("team.the_project")
            if proof.ok:
                return text("team.proof_no_errors", place=place)
            return text("team.proof_errors", place=place, count=proof.value)
        case "person":
            return text("team.proof_by_word", check=proof.subject)
        case "diff":
            return text("team.proof_changed", path=proof.subject, how=proof.value)


def format_claims(claims: Iterable[Claim]) -> Text:
    """Format claims as Markdown, each with its proofs; a claim without proof says so."""
    return joined(
        "lines", [text("team.claim", claim=claim.text, proofs=_format_proofs(claim)) for claim in claims]
    )


def _format_proofs(claim: Claim) -> Text:
    proofs = (_format_proof(proof, claim.text) for proof in claim.proofs[:SHOWN_PROOFS])
    hidden_count = len(claim.proofs) - SHOWN_PROOFS
    unfit = text("team.not_proven") if claim.unfit else ""
    parts = [unfit, *proofs, text("team.more_proofs", count=hidden_count) if hidden_count > 0 else ""]
    return joined("clauses", parts) or text("team.not_checked")


def _format_proof(proof: Proof, claim_text: str) -> Text:
    """Format a proof briefly, without its subject if `claim_text` contains it."""
    subject = truncate_middle(proof.subject, SHOWN_COMMAND)
    match proof.kind:
        case "exit_code":
            detail, name = text("team.exit_code", code=proof.value), f"`{subject}`"
        case "diagnostics":
            detail = text("team.no_errors") if proof.ok else text("team.errors", count=proof.value)
            name = subject or text("team.everywhere")
        case "diff":
            detail, name = Text(proof.value), subject
        case "person":
            detail, name = text("team.your_word"), f"`{subject}`"
    result = detail if subject and subject in claim_text else text("team.proof", name=name, what=detail)
    for remark in proof.remarks:
        result = text("team.proof_but", proof=result, remark=text(REMARKS[remark]))
    return result

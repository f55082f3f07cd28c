"""Evidence of a run's work, folded from its events: files, commands, and the proofs that still hold."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from daiku.domain.base import JsonObject
from daiku.domain.events import CheckpointEvent, Edit, HandoffEnd, ToolCallEvent, ToolResponse
from daiku.domain.tools import UNCHANGED
from daiku.domain.work.handovers import CommandOutcome, NestedEvidence, Proof, Remark
from daiku.domain.work.patches import FileStat
from daiku.team.rules.proof.placeholders import Leftover, find_leftovers, merge_leftovers
from daiku.texts.rules.patterns import lazy
from daiku.texts.rules.truncate import truncate_middle

EVERYWHERE = ""
"""Subject of a proof on the diagnostics of the complete workspace."""
HANDOVER_OUTPUT = 8000
"""Maximum characters of a command's output in the handover; the child's record has all of it."""
CANNOT_RUN = frozenset({126, 127, 9009})
"""Exit codes of shells for a program that does not exist or cannot be started."""


class Evidence(NamedTuple):
    """Work of a run so far, including its nested runs.

    `proofs`: since the last edit, the latest run of each command and the diagnostics; `red`: commands seen to fail;
    `green`: those that first passed before any edit of the step; `fresh`: the same until the next edit.
    """

    files: tuple[FileStat, ...] = ()
    checkpoints: tuple[str, ...] = ()
    commands: tuple[CommandOutcome, ...] = ()
    proofs: tuple[Proof, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    red: frozenset[str] = frozenset()
    green: frozenset[str] = frozenset()
    fresh: frozenset[str] = frozenset()
    edited: bool = False


def record_edit(evidence: Evidence, event: Edit) -> Evidence:
    """Record an edit, which invalidates all earlier proofs but diffs."""
    diffs = tuple(
        Proof(kind="diff", subject=f.path, ref=event.checkpoint_id, ok=True, value=f"+{f.added} -{f.removed}")
        for f in event.files
    )
    return _begin_edit(evidence)._replace(
        files=merge_stats(evidence.files, event.files),
        checkpoints=_append_new(evidence.checkpoints, event.checkpoint_id),
        proofs=(*(p for p in evidence.proofs if p.kind == "diff"), *diffs),
        leftovers=merge_leftovers(evidence.leftovers, find_leftovers(event.diff)),
    )


def record_checkpoint(evidence: Evidence, event: CheckpointEvent) -> Evidence:
    """Record a checkpoint, which invalidates proofs like an edit: the edit may have been interrupted."""
    return _begin_edit(evidence)._replace(
        checkpoints=_append_new(evidence.checkpoints, event.checkpoint_id),
        proofs=tuple(p for p in evidence.proofs if p.kind == "diff"),
    )


def record_undo(evidence: Evidence, paths: Collection[str]) -> Evidence:
    """Record that the user undid changes of these files, which invalidates the earlier proofs."""
    return evidence._replace(
        proofs=tuple(p for p in evidence.proofs if p.kind == "diff" and p.subject not in paths)
    )


def record_call(evidence: Evidence, call: ToolCallEvent, event: ToolResponse) -> Evidence:
    """Record the result of a call."""
    match call.tool:
        case "shell/run":
            return _record_command(evidence, call, event)
        case "editor/diagnostics":
            return _record_diagnostics(evidence, call, event)
        case "plan/update_step":
            is_begin = event.ok and call.args.get("status") == "in_progress"
            return _record_manual_approval(evidence._replace(edited=False) if is_begin else evidence, event)
        case _:
            return evidence


def record_handoff(evidence: Evidence, event: HandoffEnd) -> Evidence:
    """Record a nested run's work as the parent's own; its edits invalidate the parent's earlier proofs."""
    deeds = event.deeds
    if deeds is None:
        return evidence
    proofs = (
        evidence.proofs if not deeds.checkpoints else tuple(p for p in evidence.proofs if p.kind == "diff")
    )
    failed = (normalize_command(c.command) for c in deeds.commands if c.exit_code)
    updated = _begin_edit(evidence) if deeds.checkpoints else _add_fresh(evidence, deeds.commands)
    updated = updated._replace(
        red=evidence.red.union(failed),
        files=merge_stats(evidence.files, deeds.files),
        checkpoints=tuple(dict.fromkeys((*evidence.checkpoints, *deeds.checkpoints))),
        commands=(*evidence.commands, *deeds.commands),
        leftovers=merge_leftovers(
            evidence.leftovers,
            (Leftover(leftover.path, leftover.text, leftover.count) for leftover in deeds.leftovers),
        ),
    )
    outputs = {command.call_id: command.output for command in deeds.commands}
    nested_proofs = (
        p.model_copy(update={"remarks": _find_remarks(p.subject, outputs.get(p.ref, ""), updated)})
        if p.kind == "exit_code" and p.ok
        else p
        for p in deeds.proofs
    )
    return updated._replace(proofs=_keep_latest((*proofs, *nested_proofs)))


def merge_evidence(before: Evidence, now: Evidence) -> Evidence:
    """Merge the evidence of two runs in order; earlier proofs count only if the later run did nothing."""
    has_acted = now.checkpoints or now.commands
    proofs = tuple(p for p in before.proofs if not has_acted or p.kind == "diff")
    return Evidence(
        files=merge_stats(before.files, now.files),
        checkpoints=tuple(dict.fromkeys((*before.checkpoints, *now.checkpoints))),
        commands=(*before.commands, *now.commands),
        proofs=_keep_latest((*proofs, *now.proofs)),
        leftovers=merge_leftovers(before.leftovers, now.leftovers),
        red=before.red | now.red,
        green=before.green if before.checkpoints else before.green | now.green,
    )


def to_handover(evidence: Evidence) -> NestedEvidence:
    """Return the summary of `evidence` for a parent run."""
    return NestedEvidence(
        files=evidence.files,
        checkpoints=evidence.checkpoints,
        commands=tuple(
            c.model_copy(update={"output": truncate_middle(c.output, HANDOVER_OUTPUT)})
            for c in evidence.commands
        ),
        proofs=evidence.proofs,
        leftovers=tuple(leftover.to_wire() for leftover in evidence.leftovers),
    )


# ---- checks


def normalize_command(command: str) -> str:
    """Normalize whitespace of a command, for comparison."""
    return " ".join(command.split())


_DIAGNOSTICS = lazy(r"\s*diagnostics\s*(?::\s*(?P<place>.*?)\s*)?", re.IGNORECASE)


def parse_diagnostics_check(check: str) -> str | None:
    """Return the path or glob of a check `diagnostics[: place]`, empty for everywhere; None for a command."""
    match = _DIAGNOSTICS.fullmatch(check)
    return None if match is None else (match["place"] or EVERYWHERE).removeprefix("./")


def find_proof(check: str, evidence: Evidence) -> Proof | None:
    """Return the proof, passed or failed, of an acceptance check; None if there is none."""
    user_proof = next((p for p in evidence.proofs if p.kind == "person" and p.subject == check), None)
    if user_proof is not None:
        return user_proof
    place = parse_diagnostics_check(check)
    if place is not None:
        return _find_diagnostics_proof(place, evidence)
    command = normalize_command(check)
    return next(
        (p for p in evidence.proofs if p.kind == "exit_code" and normalize_command(p.subject) == command),
        None,
    )


def find_unproven_checks(checks: Iterable[str], evidence: Evidence) -> tuple[tuple[str, Proof | None], ...]:
    """Return the checks without a passing proof, each with its failed one. Changing commands invalidate proofs."""
    check_list = tuple(checks)
    commands = frozenset(normalize_command(check) for check in check_list)
    proofs = (
        (check, _drop_outdated(find_proof(check, evidence), commands, evidence)) for check in check_list
    )
    return tuple((check, proof) for check, proof in proofs if proof is None or not proof.ok)


def _drop_outdated(proof: Proof | None, checks: frozenset[str], evidence: Evidence) -> Proof | None:
    if proof is None or not proof.ok or proof.kind != "exit_code":
        return proof
    from daiku.guard.rules.commands.judge import LOOKING, read_only  # when used

    ids = [command.call_id for command in evidence.commands]
    later = evidence.commands[ids.index(proof.ref) + 1 :] if proof.ref in ids else ()
    commands = (c.command for c in later if normalize_command(c.command) not in checks)
    return proof if all(read_only(command, LOOKING) for command in commands) else None


def _find_diagnostics_proof(place: str, evidence: Evidence) -> Proof | None:
    diagnostics = [p for p in evidence.proofs if p.kind == "diagnostics"]
    failed = next(
        (p for p in diagnostics if not p.ok and p.subject != EVERYWHERE and is_within(p.subject, place)), None
    )
    general = next((p for p in diagnostics if p.subject in (place, EVERYWHERE)), None)
    if failed is not None or general is None:
        return failed
    if general.ok or general.subject == place:
        return general
    return general.model_copy(update={"ok": True, "subject": place, "value": "0"})  # errors, but elsewhere


def is_within(path: str, place: str) -> bool:
    """Return True if `path` is the file `place`, below the folder `place`, or matches the glob `place`."""
    if place in (EVERYWHERE, ".", path):
        return True
    folder = place.rstrip("/") + "/"
    return path.startswith(folder) or fnmatchcase(path, place) or fnmatchcase(path, place.replace("**/", ""))


# ---- helpers


def merge_stats(before: Iterable[FileStat], now: Iterable[FileStat]) -> tuple[FileStat, ...]:
    """Merge file statistics: one entry per path with summed lines and the combined kind."""
    merged = {stat.path: stat for stat in before}
    for stat in now:
        old = merged.pop(stat.path, None)
        combined = stat if old is None else _combine_stats(old, stat)
        if combined is not None:
            merged[stat.path] = combined
    return tuple(merged.values())


def _combine_stats(old: FileStat, new: FileStat) -> FileStat | None:
    match old.kind, new.kind:
        case "create", "delete":  # no net change
            return None
        case "create", _:
            kind = "create"
        case "delete", "create":
            kind = "edit"
        case _:
            kind = new.kind
    added, removed = old.added + new.added, old.removed + new.removed
    return new.model_copy(update={"kind": kind, "added": added, "removed": removed})


def find_exit_code(data: JsonObject | None) -> int | None:
    """Return the exit code in the data of a command's result; None if there is none."""
    code = data.get("exitCode", data.get("exit_code")) if data is not None else None
    return code if isinstance(code, int) else None


def _record_command(evidence: Evidence, call: ToolCallEvent, event: ToolResponse) -> Evidence:
    code = find_exit_code(event.data)
    data = event.data or {}
    output, unchanged = data.get("output"), data.get(UNCHANGED)
    command = str(call.args.get("command", ""))
    outcome = CommandOutcome(
        command=command,
        exit_code=code if code is not None else 0 if event.ok else 1,
        output=output if isinstance(output, str) else event.result,
        call_id=event.id,
        ended=code is not None and event.outcome not in ("denied", "unattended", "not_run"),
        unchanged=unchanged if isinstance(unchanged, bool) else None,
    )
    evidence = _add_fresh(evidence, (outcome,))._replace(commands=(*evidence.commands, outcome))
    if code is None or call.args.get("background"):
        return evidence
    if code:
        evidence = evidence._replace(red=evidence.red | {normalize_command(command)})
    proof = Proof(
        kind="exit_code",
        subject=command,
        ref=event.id,
        ok=code == 0,
        value=str(code),
        remarks=_find_remarks(command, outcome.output, evidence) if code == 0 else (),
    )
    return evidence._replace(proofs=_keep_latest((*evidence.proofs, proof)))


def _find_remarks(command: str, output: str, evidence: Evidence) -> tuple[Remark, ...]:
    from daiku.team.rules.proof.check_strength import find_weaknesses  # when used

    plain = normalize_command(command)
    before = plain in evidence.green and plain not in evidence.red
    return find_weaknesses(command, output, evidence.files, passed_before=before)


def _begin_edit(evidence: Evidence) -> Evidence:
    return evidence._replace(green=evidence.green | evidence.fresh, fresh=frozenset(), edited=True)


def _add_fresh(evidence: Evidence, commands: Iterable[CommandOutcome]) -> Evidence:
    """Add the commands whose first run passes before any edit of this step."""
    passed = {
        normalize_command(c.command) for c in commands if c.ended and not c.exit_code and not evidence.edited
    }
    return evidence._replace(
        fresh=evidence.fresh | (passed - {normalize_command(c.command) for c in evidence.commands})
    )


def _record_diagnostics(evidence: Evidence, call: ToolCallEvent, event: ToolResponse) -> Evidence:
    errors = (event.data or {}).get("errors")
    if not event.ok or not isinstance(errors, dict):
        return evidence
    path = call.args.get("path")
    place = path.removeprefix("./") if isinstance(path, str) else EVERYWHERE
    counts = {name: count for name, count in errors.items() if isinstance(count, int) and count}
    total = sum(counts.values())
    head = Proof(kind="diagnostics", subject=place, ref=event.id, ok=not total, value=str(total))
    file_proofs = tuple(
        Proof(kind="diagnostics", subject=name, ref=event.id, ok=False, value=str(count))
        for name, count in counts.items()
        if name != place
    )
    outdated = [p for p in evidence.proofs if p.kind == "diagnostics" and is_within(p.subject, place)]
    return evidence._replace(proofs=(*(p for p in evidence.proofs if p not in outdated), head, *file_proofs))


def _record_manual_approval(evidence: Evidence, event: ToolResponse) -> Evidence:
    """Record checks that the user marked as passed."""
    checks = (event.data or {}).get("vouched")
    if not event.ok or not isinstance(checks, list):
        return evidence
    proofs = tuple(
        Proof(kind="person", subject=str(check), ref=event.id, ok=True, value="yes") for check in checks
    )
    return evidence._replace(proofs=_keep_latest((*evidence.proofs, *proofs)))


def _keep_latest(proofs: Iterable[Proof]) -> tuple[Proof, ...]:
    """Keep only the latest outcome of each command."""
    latest: dict[tuple[str, str, str], Proof] = {}
    for proof in proofs:
        is_command = proof.kind == "exit_code"
        key = (
            proof.kind,
            normalize_command(proof.subject) if is_command else proof.subject,
            "" if is_command else proof.ref,
        )
        latest.pop(key, None)
        latest[key] = proof
    return tuple(latest.values())


def _append_new(values: tuple[str, ...], new: str) -> tuple[str, ...]:
    return values if new in values else (*values, new)

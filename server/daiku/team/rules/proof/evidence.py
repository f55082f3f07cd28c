"""What a run really did, folded from its events: files, commands, and the proofs that still hold."""

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
from daiku.team.rules.proof.placeholders import Leftover, leftovers_of_diff, merge_leftovers
from daiku.texts.rules.patterns import lazy
from daiku.texts.rules.truncate import truncate_middle

EVERYWHERE = ""
"""The subject of a proof that is about the diagnostics of the whole workspace."""
TOLD_OUTPUT = 8000
"""Characters of a command's output that a parent run is told; the whole stands in the child's record."""
CANNOT_RUN = frozenset({126, 127, 9009})
"""Exit codes of shells for a program that does not exist or cannot be started."""


class Evidence(NamedTuple):
    """What a run did so far, its nested runs included.

    `proofs`: since the last edit, the latest run of each command and the diagnostics; `red`: commands seen to fail;
    `green`: those that first passed before any edit of the step; `fresh`: the same until the next edit."""

    files: tuple[FileStat, ...] = ()
    checkpoints: tuple[str, ...] = ()
    commands: tuple[CommandOutcome, ...] = ()
    proofs: tuple[Proof, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    red: frozenset[str] = frozenset()
    green: frozenset[str] = frozenset()
    fresh: frozenset[str] = frozenset()
    edited: bool = False


def after_edit(done: Evidence, event: Edit) -> Evidence:
    """Record an edit: it invalidates all earlier proofs but diffs."""
    diffs = tuple(
        Proof(kind="diff", subject=f.path, ref=event.checkpoint_id, ok=True, value=f"+{f.added} -{f.removed}")
        for f in event.files
    )
    return _begin_edit(done)._replace(
        files=merge_stats(done.files, event.files),
        checkpoints=_with(done.checkpoints, event.checkpoint_id),
        proofs=(*(p for p in done.proofs if p.kind == "diff"), *diffs),
        leftovers=merge_leftovers(done.leftovers, leftovers_of_diff(event.diff)),
    )


def after_checkpoint(done: Evidence, event: CheckpointEvent) -> Evidence:
    """Record a checkpoint: it invalidates proofs like an edit, since the edit may have been interrupted."""
    return _begin_edit(done)._replace(
        checkpoints=_with(done.checkpoints, event.checkpoint_id),
        proofs=tuple(p for p in done.proofs if p.kind == "diff"),
    )


def after_undo(done: Evidence, paths: Collection[str]) -> Evidence:
    """Record that the person undid changes of these files: it invalidates the earlier proofs."""
    return done._replace(proofs=tuple(p for p in done.proofs if p.kind == "diff" and p.subject not in paths))


def after_call(done: Evidence, call: ToolCallEvent, event: ToolResponse) -> Evidence:
    """Return the evidence with the result of a call."""
    match call.tool:
        case "shell/run":
            return _ran(done, call, event)
        case "editor/diagnostics":
            return _diagnosed(done, call, event)
        case "plan/update_step":
            begins = event.ok and call.args.get("status") == "in_progress"
            return _vouched(done._replace(edited=False) if begins else done, event)
        case _:
            return done


def after_handoff(done: Evidence, event: HandoffEnd) -> Evidence:
    """Record a nested run's work as the parent's own; its edits invalidate the parent's earlier proofs."""
    deeds = event.deeds
    if deeds is None:
        return done
    kept = done.proofs if not deeds.checkpoints else tuple(p for p in done.proofs if p.kind == "diff")
    failed = (plain_command(c.command) for c in deeds.commands if c.exit_code)
    now = _begin_edit(done) if deeds.checkpoints else _add_fresh(done, deeds.commands)
    now = now._replace(
        red=done.red.union(failed),
        files=merge_stats(done.files, deeds.files),
        checkpoints=tuple(dict.fromkeys((*done.checkpoints, *deeds.checkpoints))),
        commands=(*done.commands, *deeds.commands),
        leftovers=merge_leftovers(
            done.leftovers, (Leftover(each.path, each.text, each.count) for each in deeds.leftovers)
        ),
    )
    outputs = {command.call_id: command.output for command in deeds.commands}
    theirs = (
        p.model_copy(update={"remarks": _worth(p.subject, outputs.get(p.ref, ""), now)})
        if p.kind == "exit_code" and p.ok
        else p
        for p in deeds.proofs
    )
    return now._replace(proofs=_latest((*kept, *theirs)))


def merge_evidence(before: Evidence, now: Evidence) -> Evidence:
    """What two runs did, one after the other. What the earlier one had shown counts only where the later did nothing."""
    acted = now.checkpoints or now.commands
    kept = tuple(p for p in before.proofs if not acted or p.kind == "diff")
    return Evidence(
        files=merge_stats(before.files, now.files),
        checkpoints=tuple(dict.fromkeys((*before.checkpoints, *now.checkpoints))),
        commands=(*before.commands, *now.commands),
        proofs=_latest((*kept, *now.proofs)),
        leftovers=merge_leftovers(before.leftovers, now.leftovers),
        red=before.red | now.red,
        green=before.green if before.checkpoints else before.green | now.green,
    )


def to_handover(done: Evidence) -> NestedEvidence:
    """Return the summary of `done` that is passed to a parent run."""
    return NestedEvidence(
        files=done.files,
        checkpoints=done.checkpoints,
        commands=tuple(
            c.model_copy(update={"output": truncate_middle(c.output, TOLD_OUTPUT)}) for c in done.commands
        ),
        proofs=done.proofs,
        leftovers=tuple(each.wire() for each in done.leftovers),
    )


# ---- checks


def plain_command(command: str) -> str:
    """A command as it is compared: white space between words does not matter."""
    return " ".join(command.split())


_DIAGNOSTICS = lazy(r"\s*diagnostics\s*(?::\s*(?P<place>.*?)\s*)?", re.IGNORECASE)


def diagnosed_place(check: str) -> str | None:
    """The path or glob of a check `diagnostics[: place]`, empty for everywhere; None: a command."""
    found = _DIAGNOSTICS.fullmatch(check)
    return None if found is None else (found["place"] or EVERYWHERE).removeprefix("./")


def proof_of(check: str, done: Evidence) -> Proof | None:
    """Return the proof, passed or failed, that `done` has for an acceptance check; None if there is none."""
    word = next((p for p in done.proofs if p.kind == "person" and p.subject == check), None)
    if word is not None:
        return word
    place = diagnosed_place(check)
    if place is not None:
        return _diagnostics_proof(place, done)
    wanted = plain_command(check)
    return next(
        (p for p in done.proofs if p.kind == "exit_code" and plain_command(p.subject) == wanted), None
    )


def unproven_checks(checks: Iterable[str], done: Evidence) -> tuple[tuple[str, Proof | None], ...]:
    """Return the checks without a passing proof, each with its failed one. Changing commands invalidate proofs."""
    wanted = tuple(checks)
    known = frozenset(plain_command(check) for check in wanted)
    found = ((check, _standing(proof_of(check, done), known, done)) for check in wanted)
    return tuple((check, proof) for check, proof in found if proof is None or not proof.ok)


def _standing(proof: Proof | None, checks: frozenset[str], done: Evidence) -> Proof | None:
    if proof is None or not proof.ok or proof.kind != "exit_code":
        return proof
    from daiku.guard.rules.commands.judge import LOOKING, read_only  # when used

    ids = [command.call_id for command in done.commands]
    later = done.commands[ids.index(proof.ref) + 1 :] if proof.ref in ids else ()
    commands = (c.command for c in later if plain_command(c.command) not in checks)
    return proof if all(read_only(command, LOOKING) for command in commands) else None


def _diagnostics_proof(place: str, done: Evidence) -> Proof | None:
    shown = [p for p in done.proofs if p.kind == "diagnostics"]
    bad = next(
        (p for p in shown if not p.ok and p.subject != EVERYWHERE and is_within(p.subject, place)), None
    )
    asked = next((p for p in shown if p.subject in (place, EVERYWHERE)), None)
    if bad is not None or asked is None:
        return bad
    if asked.ok or asked.subject == place:
        return asked
    return asked.model_copy(update={"ok": True, "subject": place, "value": "0"})  # errors, but elsewhere


def is_within(path: str, place: str) -> bool:
    """Whether `path` is what `place` names: that file, a file below that folder, or one of the glob."""
    if place in (EVERYWHERE, ".", path):
        return True
    folder = place.rstrip("/") + "/"
    return path.startswith(folder) or fnmatchcase(path, place) or fnmatchcase(path, place.replace("**/", ""))


# ---- the parts


def merge_stats(before: Iterable[FileStat], now: Iterable[FileStat]) -> tuple[FileStat, ...]:
    """One entry a path: lines summed up, and the kind that the changes come to together."""
    found = {stat.path: stat for stat in before}
    for stat in now:
        old = found.pop(stat.path, None)
        together = stat if old is None else _together(old, stat)
        if together is not None:
            found[stat.path] = together
    return tuple(found.values())


def _together(old: FileStat, new: FileStat) -> FileStat | None:
    match old.kind, new.kind:
        case "create", "delete":  # it is as if there had never been one
            return None
        case "create", _:
            kind = "create"
        case "delete", "create":
            kind = "edit"
        case _:
            kind = new.kind
    added, removed = old.added + new.added, old.removed + new.removed
    return new.model_copy(update={"kind": kind, "added": added, "removed": removed})


def exit_code_of(data: JsonObject | None) -> int | None:
    """The exit code of a command, by the data of its result."""
    code = data.get("exitCode", data.get("exit_code")) if data is not None else None
    return code if isinstance(code, int) else None


def _ran(done: Evidence, call: ToolCallEvent, event: ToolResponse) -> Evidence:
    code = exit_code_of(event.data)
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
    done = _add_fresh(done, (outcome,))._replace(commands=(*done.commands, outcome))
    if code is None or call.args.get("background"):
        return done
    if code:
        done = done._replace(red=done.red | {plain_command(command)})
    proof = Proof(
        kind="exit_code",
        subject=command,
        ref=event.id,
        ok=code == 0,
        value=str(code),
        remarks=_worth(command, outcome.output, done) if code == 0 else (),
    )
    return done._replace(proofs=_latest((*done.proofs, proof)))


def _worth(command: str, output: str, done: Evidence) -> tuple[Remark, ...]:
    from daiku.team.rules.proof.check_strength import weaknesses  # when used

    plain = plain_command(command)
    before = plain in done.green and plain not in done.red
    return weaknesses(command, output, done.files, passed_before=before)


def _begin_edit(done: Evidence) -> Evidence:
    return done._replace(green=done.green | done.fresh, fresh=frozenset(), edited=True)


def _add_fresh(done: Evidence, commands: Iterable[CommandOutcome]) -> Evidence:
    """Return the evidence with the commands whose first run passes before any edit of this step."""
    passed = {plain_command(c.command) for c in commands if c.ended and not c.exit_code and not done.edited}
    return done._replace(fresh=done.fresh | (passed - {plain_command(c.command) for c in done.commands}))


def _diagnosed(done: Evidence, call: ToolCallEvent, event: ToolResponse) -> Evidence:
    errors = (event.data or {}).get("errors")
    if not event.ok or not isinstance(errors, dict):
        return done
    path = call.args.get("path")
    place = path.removeprefix("./") if isinstance(path, str) else EVERYWHERE
    counts = {name: count for name, count in errors.items() if isinstance(count, int) and count}
    total = sum(counts.values())
    head = Proof(kind="diagnostics", subject=place, ref=event.id, ok=not total, value=str(total))
    found = tuple(
        Proof(kind="diagnostics", subject=name, ref=event.id, ok=False, value=str(count))
        for name, count in counts.items()
        if name != place
    )
    gone = [p for p in done.proofs if p.kind == "diagnostics" and is_within(p.subject, place)]
    return done._replace(proofs=(*(p for p in done.proofs if p not in gone), head, *found))


def _vouched(done: Evidence, event: ToolResponse) -> Evidence:
    """A person counted checks as met that nothing here can show."""
    checks = (event.data or {}).get("vouched")
    if not event.ok or not isinstance(checks, list):
        return done
    proofs = tuple(
        Proof(kind="person", subject=str(check), ref=event.id, ok=True, value="yes") for check in checks
    )
    return done._replace(proofs=_latest((*done.proofs, *proofs)))


def _latest(proofs: Iterable[Proof]) -> tuple[Proof, ...]:
    """Of one command only the latest outcome counts."""
    found: dict[tuple[str, str, str], Proof] = {}
    for proof in proofs:
        command = proof.kind == "exit_code"
        key = (
            proof.kind,
            plain_command(proof.subject) if command else proof.subject,
            "" if command else proof.ref,
        )
        found.pop(key, None)
        found[key] = proof
    return tuple(found.values())


def _with(known: tuple[str, ...], new: str) -> tuple[str, ...]:
    return known if new in known else (*known, new)

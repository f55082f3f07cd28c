"""Order of a run's edits and commands, and the calls of it that had no effect: what a verdict needs besides the proofs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from daiku.domain.events import Edit, HandoffEnd, ToolCallEvent, ToolResponse
from daiku.domain.tools import MISSING_SERVER, Outcome, ToolCall
from daiku.domain.work.handovers import FailedCall, NestedEvidence
from daiku.team.rules.proof.evidence import exit_code_of, plain_command

EDITING = frozenset(
    {"files/write", "files/edit", "files/patch", "files/move", "files/delete", "document/apply"}
)
"""Tools that change files of the project."""
_HARMLESS = (
    *("files/", "search/", "editor/", "web/", "tools/", "agent/", "report/", "shell/", "todo/", "user/", "plan/", "task/"),
    *("task_loop/", "document/", "playbook/search", "memory/search", "git/status", "git/diff", "git/log"),
)  # fmt: skip
"""Tools whose names begin so change nothing themselves, or are counted by their edits and commands."""
_BY_CHOICE: frozenset[Outcome] = frozenset({"done", "rejected", "cancelled", "interrupted"})
"""Outcomes that need no reason: the call had its effect or may have had it, or the user prevented it."""


class Job(NamedTuple):
    """A background command by the call that started it; without an exit code it still runs."""

    call_id: str
    exit_code: int | None = None


class Attempts(NamedTuple):
    """Edits and calls without effect of a run, in order. `edits`: for each, the number of commands before it.

    `acted`: another tool changed something; `missing`: MCP servers that did not answer their last call."""

    edits: tuple[int, ...] = ()
    failed: tuple[FailedCall, ...] = ()
    jobs: Mapping[str, Job] = MappingProxyType({})
    acted: bool = False
    has_todo: bool = False
    missing: tuple[str, ...] = ()


def note_response(
    tried: Attempts, call: ToolCallEvent | None, event: ToolResponse, position: int
) -> Attempts:
    """Return the attempts with a call's result. `position`: number of commands so far, this one included."""
    if not event.tool.startswith(_HARMLESS):
        tried = _act(tried, event, position)
    tried = _note_server(tried, event)
    match call:
        case ToolCallEvent(tool="shell/run"):
            return _run_command(tried, call, event, position)
        case ToolCallEvent(tool="shell/output" | "shell/kill"):
            return _look_at_job(tried, call, event)
        case ToolCallEvent() if call.tool in EDITING:
            return _edit(tried, call, event, position)
        case _:
            return tried


def _act(tried: Attempts, event: ToolResponse, position: int) -> Attempts:
    """Return the attempts with the result of a tool that changes something other than files."""
    if event.outcome == "unattended":
        return _add_failed(tried, event.tool, (event.tool,), event.outcome, position)
    if event.outcome != "done":
        return tried
    return tried._replace(acted=True, failed=tuple(f for f in tried.failed if f.tool != event.tool))


def _note_server(tried: Attempts, event: ToolResponse) -> Attempts:
    missing = (event.data or {}).get(MISSING_SERVER)
    if isinstance(missing, str):
        return tried._replace(missing=tuple(dict.fromkeys((*tried.missing, missing))))
    server = event.tool.partition("/")[0]
    if event.outcome in ("done", "failed") and server in tried.missing:  # it answered
        return tried._replace(missing=tuple(name for name in tried.missing if name != server))
    return tried


def note_edit(tried: Attempts, event: Edit, position: int) -> Attempts:
    """Return the attempts with an edit, which settles earlier failed edits of its files and wrong guesses."""
    names = {_name(file.path) for file in event.files}
    left = tuple(f for f in tried.failed if not _is_settled(f, names))
    return tried._replace(edits=(*tried.edits, position), failed=left)


def is_refused(call: FailedCall) -> bool:
    """Return True if the guard, or the approval level of a run that nobody attends, refused the call."""
    return call.outcome in ("denied", "unattended")


def _is_settled(call: FailedCall, names: set[str]) -> bool:
    """Return True if edits of files with these names make up for the call."""
    return call.tool in EDITING and (not is_refused(call) or _name(call.subject) in names)


def note_nested(tried: Attempts, event: HandoffEnd, position: int) -> Attempts:
    """Return the attempts with those of a nested run, before which `position` commands ran."""
    deeds = event.deeds or NestedEvidence()
    names = {_name(file.path) for file in deeds.files}
    ran = {plain_command(command.command) for command in deeds.commands if command.ended}
    left = (f for f in tried.failed if f.subject not in ran and not (names and _is_settled(f, names)))
    tried = tried._replace(
        edits=(*tried.edits, *(position + at for at in deeds.edits)),
        acted=tried.acted or deeds.acted,
        failed=tuple(left),
    )
    for call in event.refused:
        tried = _add_failed(tried, call.tool, (call.subject,), call.outcome, position + call.position)
    return tried


def _add_failed(
    tried: Attempts, tool: str, subjects: Iterable[str], outcome: Outcome, position: int
) -> Attempts:
    """Return the attempts with a call that had no effect; it replaces earlier ones of the same subjects."""
    failed = tuple(
        FailedCall(tool=tool, subject=subject, outcome=outcome, position=position) for subject in subjects
    )
    keys = {_key(call) for call in failed}
    return tried._replace(failed=(*(f for f in tried.failed if _key(f) not in keys), *failed))


def _key(call: FailedCall) -> tuple[bool, str]:
    edits = call.tool in EDITING
    return edits, _name(call.subject) if edits else call.subject


def _run_command(tried: Attempts, call: ToolCallEvent, event: ToolResponse, position: int) -> Attempts:
    command = plain_command(str(call.args.get("command", "")))
    job = (event.data or {}).get("id")
    if call.args.get("background") and isinstance(job, str):
        return tried._replace(jobs=MappingProxyType({**tried.jobs, job: Job(event.id)}))
    if event.outcome != "unattended":
        left = tuple(f for f in tried.failed if f.tool in EDITING or f.subject != command)
        return tried._replace(failed=left)
    return _add_failed(tried, call.tool, (command,), event.outcome, position)


def _look_at_job(tried: Attempts, call: ToolCallEvent, event: ToolResponse) -> Attempts:
    name = str(call.args.get("id", ""))
    job = tried.jobs.get(name)
    if job is None or not event.ok:
        return tried
    if call.tool == "shell/kill":
        return tried._replace(jobs=MappingProxyType({k: v for k, v in tried.jobs.items() if k != name}))
    ended = job._replace(exit_code=exit_code_of(event.data))
    return tried._replace(jobs=MappingProxyType({**tried.jobs, name: ended}))


def _edit(tried: Attempts, call: ToolCallEvent, event: ToolResponse, position: int) -> Attempts:
    if event.outcome not in _BY_CHOICE:
        return _add_failed(tried, call.tool, edited_paths(call), event.outcome, position)
    names = {_name(path) for path in edited_paths(call)} if tried.failed else ()
    left = tuple(f for f in tried.failed if not (f.tool in EDITING and _name(f.subject) in names))
    return tried._replace(failed=left)


def edited_paths(call: ToolCallEvent | ToolCall) -> tuple[str, ...]:
    """Return the paths that an edit would have changed; an empty one if it names none."""
    patch = call.args.get("patch")
    if not isinstance(patch, str):
        return (str(call.args.get("to") or call.args.get("path", "")),)
    from daiku.edits.rules.patch import parse_patch, paths_of  # when used

    intents = parse_patch(patch)
    return (isinstance(intents, tuple) and paths_of(intents)) or ("",)


def _name(path: str) -> str:
    return path.rpartition("/")[2]

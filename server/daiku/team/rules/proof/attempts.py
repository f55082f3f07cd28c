"""Order of a run's edits and commands, and its calls without effect, for the verdict on the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from daiku.domain.events import Edit, HandoffEnd, ToolCallEvent, ToolResponse
from daiku.domain.tools import MISSING_SERVER, Outcome, ToolCall
from daiku.domain.work.handovers import FailedCall, NestedEvidence
from daiku.team.rules.proof.evidence import find_exit_code, normalize_command

EDITING = frozenset(
    {"files/write", "files/edit", "files/patch", "files/move", "files/delete", "document/apply"}
)
"""Tools that change project files."""
_HARMLESS = (
    *("files/", "search/", "editor/", "web/", "tools/", "agent/", "report/", "shell/", "todo/", "user/", "plan/", "task/"),
    *("task_loop/", "document/", "playbook/search", "memory/search", "git/status", "git/diff", "git/log"),
)  # fmt: skip
"""Prefixes of tools that change nothing themselves, or that edits and commands account for."""
_BY_CHOICE: frozenset[Outcome] = frozenset({"done", "rejected", "cancelled", "interrupted"})
"""Outcomes that need no explanation: the call may have had its effect, or the user prevented it."""


class Job(NamedTuple):
    """A background command, identified by the call that started it; no exit code while it runs."""

    call_id: str
    exit_code: int | None = None


class Attempts(NamedTuple):
    """Edits and calls without effect of a run, in order. `edits`: number of commands before each edit.

    `acted`: another tool changed something; `missing`: MCP servers that did not answer their last call.
    """

    edits: tuple[int, ...] = ()
    failed: tuple[FailedCall, ...] = ()
    jobs: Mapping[str, Job] = MappingProxyType({})
    acted: bool = False
    has_todo: bool = False
    missing: tuple[str, ...] = ()


def note_response(
    attempts: Attempts, call: ToolCallEvent | None, event: ToolResponse, position: int
) -> Attempts:
    """Add a call's result to the attempts. `position`: number of commands so far, including this one."""
    if not event.tool.startswith(_HARMLESS):
        attempts = _note_action(attempts, event, position)
    attempts = _note_server(attempts, event)
    match call:
        case ToolCallEvent(tool="shell/run"):
            return _note_command(attempts, call, event, position)
        case ToolCallEvent(tool="shell/output" | "shell/kill"):
            return _note_job(attempts, call, event)
        case ToolCallEvent() if call.tool in EDITING:
            return _note_edit_call(attempts, call, event, position)
        case _:
            return attempts


def _note_action(attempts: Attempts, event: ToolResponse, position: int) -> Attempts:
    """Add the result of a tool that changes something other than files."""
    if event.outcome == "unattended":
        return _add_failed(attempts, event.tool, (event.tool,), event.outcome, position)
    if event.outcome != "done":
        return attempts
    return attempts._replace(acted=True, failed=tuple(f for f in attempts.failed if f.tool != event.tool))


def _note_server(attempts: Attempts, event: ToolResponse) -> Attempts:
    missing = (event.data or {}).get(MISSING_SERVER)
    if isinstance(missing, str):
        return attempts._replace(missing=tuple(dict.fromkeys((*attempts.missing, missing))))
    server = event.tool.partition("/")[0]
    if event.outcome in ("done", "failed") and server in attempts.missing:  # the server answered
        return attempts._replace(missing=tuple(name for name in attempts.missing if name != server))
    return attempts


def note_edit(attempts: Attempts, event: Edit, position: int) -> Attempts:
    """Add an edit, which settles earlier failed edits of its files and wrong guesses of paths."""
    names = {_base_name(file.path) for file in event.files}
    open_failures = tuple(f for f in attempts.failed if not _is_settled(f, names))
    return attempts._replace(edits=(*attempts.edits, position), failed=open_failures)


def is_refused(call: FailedCall) -> bool:
    """Return True if the guard, or the approval level of an unattended run, denied the call."""
    return call.outcome in ("denied", "unattended")


def _is_settled(call: FailedCall, names: set[str]) -> bool:
    """Return True if edits of files with these names replace the failed call."""
    return call.tool in EDITING and (not is_refused(call) or _base_name(call.subject) in names)


def note_nested(attempts: Attempts, event: HandoffEnd, position: int) -> Attempts:
    """Add the attempts of a nested run, before which `position` commands ran."""
    evidence = event.deeds or NestedEvidence()
    names = {_base_name(file.path) for file in evidence.files}
    commands = {normalize_command(command.command) for command in evidence.commands if command.ended}
    open_failures = (
        f for f in attempts.failed if f.subject not in commands and not (names and _is_settled(f, names))
    )
    attempts = attempts._replace(
        edits=(*attempts.edits, *(position + index for index in evidence.edits)),
        acted=attempts.acted or evidence.acted,
        failed=tuple(open_failures),
    )
    for call in event.refused:
        attempts = _add_failed(attempts, call.tool, (call.subject,), call.outcome, position + call.position)
    return attempts


def _add_failed(
    attempts: Attempts, tool: str, subjects: Iterable[str], outcome: Outcome, position: int
) -> Attempts:
    """Add a call without effect; it replaces earlier ones with the same subjects."""
    failed = tuple(
        FailedCall(tool=tool, subject=subject, outcome=outcome, position=position) for subject in subjects
    )
    keys = {_build_key(call) for call in failed}
    return attempts._replace(failed=(*(f for f in attempts.failed if _build_key(f) not in keys), *failed))


def _build_key(call: FailedCall) -> tuple[bool, str]:
    edits = call.tool in EDITING
    return edits, _base_name(call.subject) if edits else call.subject


def _note_command(attempts: Attempts, call: ToolCallEvent, event: ToolResponse, position: int) -> Attempts:
    command = normalize_command(str(call.args.get("command", "")))
    job = (event.data or {}).get("id")
    if call.args.get("background") and isinstance(job, str):
        return attempts._replace(jobs=MappingProxyType({**attempts.jobs, job: Job(event.id)}))
    if event.outcome != "unattended":
        open_failures = tuple(f for f in attempts.failed if f.tool in EDITING or f.subject != command)
        return attempts._replace(failed=open_failures)
    return _add_failed(attempts, call.tool, (command,), event.outcome, position)


def _note_job(attempts: Attempts, call: ToolCallEvent, event: ToolResponse) -> Attempts:
    name = str(call.args.get("id", ""))
    job = attempts.jobs.get(name)
    if job is None or not event.ok:
        return attempts
    if call.tool == "shell/kill":
        return attempts._replace(jobs=MappingProxyType({k: v for k, v in attempts.jobs.items() if k != name}))
    ended = job._replace(exit_code=find_exit_code(event.data))
    return attempts._replace(jobs=MappingProxyType({**attempts.jobs, name: ended}))


def _note_edit_call(attempts: Attempts, call: ToolCallEvent, event: ToolResponse, position: int) -> Attempts:
    if event.outcome not in _BY_CHOICE:
        return _add_failed(attempts, call.tool, find_edited_paths(call), event.outcome, position)
    names = {_base_name(path) for path in find_edited_paths(call)} if attempts.failed else ()
    open_failures = tuple(
        f for f in attempts.failed if not (f.tool in EDITING and _base_name(f.subject) in names)
    )
    return attempts._replace(failed=open_failures)


def find_edited_paths(call: ToolCallEvent | ToolCall) -> tuple[str, ...]:
    """Return the paths that an edit would change; one empty path if it names none."""
    patch = call.args.get("patch")
    if not isinstance(patch, str):
        return (str(call.args.get("to") or call.args.get("path", "")),)
    from daiku.edits.rules.patch import list_paths, parse_patch  # when used

    intents = parse_patch(patch)
    return (isinstance(intents, tuple) and list_paths(intents)) or ("",)


def _base_name(path: str) -> str:
    return path.rpartition("/")[2]

"""Order of a run's edits and commands, and the calls of it that had no effect: what a verdict needs besides the proofs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from daiku.core.proof.evidence import exit_code_of, plain_command
from daiku.domain.events import Edit, HandoffEnd, ToolCallEvent, ToolResponse
from daiku.domain.tools import MISSING_SERVER, Outcome

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


class FailedCall(NamedTuple):
    """A call that had no effect: its subject is a path or a command. `position`: commands that ran before it."""

    tool: str
    subject: str
    outcome: Outcome
    position: int

    @property
    def is_edit(self) -> bool:
        return self.tool in EDITING


class Job(NamedTuple):
    """A background command by the call that started it; without an exit code it still runs."""

    call_id: str
    exit_code: int | None = None


class Attempts(NamedTuple):
    """Edits and calls without effect of a run, in order. `edits`: for each edit, the number of commands that ran before it.
    `acted`: a tool other than edits and commands changed something. `has_todo`: the run wrote its to-do list.
    `missing`: MCP servers that did not answer their last call."""

    edits: tuple[int, ...] = ()
    failed: tuple[FailedCall, ...] = ()
    jobs: Mapping[str, Job] = MappingProxyType({})
    acted: bool = False
    has_todo: bool = False
    missing: tuple[str, ...] = ()


def note_response(
    tried: Attempts, call: ToolCallEvent | None, event: ToolResponse, position: int
) -> Attempts:
    """Return the attempts with the result of a call, which is None if it never began. `position`: commands that ran so
    far, this one included."""
    if event.outcome == "done" and not event.tool.startswith(_HARMLESS):
        tried = tried._replace(acted=True)
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


def _note_server(tried: Attempts, event: ToolResponse) -> Attempts:
    missing = (event.data or {}).get(MISSING_SERVER)
    if isinstance(missing, str):
        return tried._replace(missing=tuple(dict.fromkeys((*tried.missing, missing))))
    server = event.tool.partition("/")[0]
    if event.outcome in ("done", "failed") and server in tried.missing:  # it answered
        return tried._replace(missing=tuple(name for name in tried.missing if name != server))
    return tried


def note_edit(tried: Attempts, event: Edit, position: int) -> Attempts:
    """Return the attempts with an edit. It settles earlier edits of its files, and those that failed by mistake: a model
    that guessed a wrong file goes on with another one."""
    names = {_name(file.path) for file in event.files}
    left = tuple(f for f in tried.failed if not (f.is_edit and _is_settled(f, names)))
    return tried._replace(edits=(*tried.edits, position), failed=left)


def _is_settled(call: FailedCall, names: set[str]) -> bool:
    return call.outcome == "failed" or not call.subject or _name(call.subject) in names


def note_nested(tried: Attempts, event: HandoffEnd, position: int) -> Attempts:
    """Return the attempts with those of a nested run, before which `position` commands ran."""
    deeds = event.deeds
    if deeds is None:
        return tried
    edits = tuple(position + at for at in deeds.edits)
    return tried._replace(edits=(*tried.edits, *edits), acted=tried.acted or deeds.acted)


def _run_command(tried: Attempts, call: ToolCallEvent, event: ToolResponse, position: int) -> Attempts:
    command = plain_command(str(call.args.get("command", "")))
    job = (event.data or {}).get("id")
    if call.args.get("background") and isinstance(job, str):
        return tried._replace(jobs=MappingProxyType({**tried.jobs, job: Job(event.id)}))
    if event.outcome != "unattended":
        left = tuple(f for f in tried.failed if f.is_edit or f.subject != command)
        return tried._replace(failed=left)
    return tried._replace(failed=(*tried.failed, FailedCall(call.tool, command, event.outcome, position)))


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
    path = str(call.args.get("path", ""))
    left = tuple(f for f in tried.failed if not (f.is_edit and _name(f.subject) == _name(path)))
    if event.outcome in _BY_CHOICE:
        return tried._replace(failed=left)
    return tried._replace(failed=(*left, FailedCall(call.tool, path, event.outcome, position)))


def _name(path: str) -> str:
    return path.rpartition("/")[2]

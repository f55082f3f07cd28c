"""What bringing files back cannot undo: the commands and other programs' calls that ran since."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from daiku.core.text.truncate import truncate_middle
from daiku.domain.base import JsonObject
from daiku.domain.chunks import Chunk
from daiku.domain.events import ToolCallEvent, ToolResponse
from daiku.domain.tools import Effect
from daiku.domain.work.patches import Irrevocable
from daiku.runs.recorded.history import checkpoint_of

OUTSIDE: tuple[Effect | None, ...] = ("command", "network", "mcp", None)
"""Effects beyond the files that checkpoints keep; None: a tool that is not known here now."""
_SHOWN = 200


def irrevocable(
    chunks: Sequence[Chunk], checkpoint_id: str, effect: Callable[[str], Effect | None]
) -> tuple[Irrevocable, ...]:
    """Return the calls with outside effects since the checkpoint, with exit codes. `effect`: of a tool."""
    since = next((c.seq for c in chunks if checkpoint_of(c) == checkpoint_id), None)
    if since is None:
        return ()
    ends = {c.event.id: c.event for c in chunks if isinstance(c.event, ToolResponse) and c.seq > since}
    found: list[Irrevocable] = []
    for chunk in chunks:
        event = chunk.event
        if not isinstance(event, ToolCallEvent) or (chunk.seq < since and event.id not in ends):
            continue
        outside = effect(event.tool) in OUTSIDE and not event.tool.startswith("web/")
        command = _command(event.tool, event.args) if outside else ""
        end = ends.get(event.id)
        if command and (end is None or _ran(end)):
            code = _exit_code(end)
            found.append(Irrevocable(command=command, exit_code=code, time=chunk.time))
    return tuple(found)


def _command(tool: str, args: JsonObject) -> str:
    """What ran, as a person knows it."""
    if tool == "shell/run":
        return truncate_middle(str(args.get("command", "")), _SHOWN)
    if tool == "git/commit":
        return truncate_middle(f"git commit -m {args.get('message', '')!r}", _SHOWN)
    given = ", ".join(f"{name}={value}" for name, value in args.items())
    return truncate_middle(f"{tool} {given}".strip(), _SHOWN)


def _ran(end: ToolResponse) -> bool:
    """A call that a person or the guard refused, or whose arguments were wrong, never ran."""
    match end.outcome:
        case "done" | "interrupted" | "cancelled":
            return True
        case "denied" | "rejected" | "unattended" | "not_run":
            return False
        case "failed":
            pass
    data = end.data or {}
    if "exitCode" in data:
        return data.get("started") is not False
    return end.ok or end.duration_ms > 0


def _exit_code(end: ToolResponse | None) -> int | None:
    code = end.data.get("exitCode") if end is not None and end.data is not None else None
    return code if isinstance(code, int) else None

"""Sessions as chunks, told in a few words: commands that ran, what tools showed, what a person said."""

from __future__ import annotations

from itertools import count

from daiku.domain.base import JsonObject
from daiku.domain.chunks import Chunk, encode_event
from daiku.domain.events import (
    ApprovalAsked,
    ApprovalDecision,
    ApprovalGiven,
    Edit,
    Event,
    MessageEvent,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.work.patches import FileStat
from daiku.texts.text import Text

_numbers = count(1)


def told(
    *events: Event | tuple[Event, ...], run: str = "run_1", parent: str | None = None, after: int = 0
) -> list[Chunk]:
    """The chunks of a session in which this happened, one after the other."""
    flat: list[Event] = []
    for each in events:
        flat.extend(each if isinstance(each, tuple) else (each,))
    return [
        Chunk(n, "2026-01-02T03:04:05.000Z", "sess_1", run, "coder", event, encode_event(event), parent)
        for n, event in enumerate(flat, after + 1)
    ]


def ran(command: str, code: int = 0, output: str = "", *, background: bool = False) -> tuple[Event, ...]:
    """A command that ended with this code."""
    call = f"call_{next(_numbers)}"
    args: JsonObject = {"command": command, **({"background": True} if background else {})}
    data: JsonObject = {"exitCode": code, "output": output}
    return (
        ToolCallEvent(id=call, tool="shell/run", args=args),
        ToolResponse(id=call, tool="shell/run", ok=code == 0, result=Text(output), data=data),
    )


def showed(
    text: str, tool: str = "files/read", *, untrusted: bool = False, data: JsonObject | None = None
) -> tuple[Event, ...]:
    """A tool showed this text."""
    call = f"call_{next(_numbers)}"
    return (
        ToolCallEvent(id=call, tool=tool, args={}),
        ToolResponse(id=call, tool=tool, ok=True, result=Text(text), untrusted=untrusted, data=data),
    )


def edited(path: str = "src/app.py") -> Event:
    return Edit(files=(FileStat(path=path, kind="edit", added=1),), checkpoint_id="cp_1")


def steered(words: str) -> Event:
    """The person said this while the run worked."""
    return MessageEvent(role="user", text=Text(words), agent="user")


def decided(
    decision: ApprovalDecision = "reject_once",
    why: str | None = None,
    *,
    command: str = "",
    unattended: bool = False,
    hunks: tuple[int, ...] | None = None,
) -> tuple[Event, ...]:
    """The person was asked to allow a command, or an edit where there is none, and answered so."""
    approval = f"appr_{next(_numbers)}"
    return (
        ApprovalAsked(
            approval_id=approval,
            kind="command" if command else "edit",
            tool="shell/run" if command else "files/edit",
            args={"command": command} if command else {"path": "src/app.py"},
            preview=Text("what will happen"),
            why=Text(""),
        ),
        ApprovalGiven(
            approval_id=approval, decision=decision, feedback=why, unattended=unattended, hunks=hunks
        ),
    )

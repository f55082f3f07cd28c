"""Decide which lessons need no review where learning is automatic."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from daiku.domain.chunks import Chunk
from daiku.domain.config import ApprovalSettings
from daiku.domain.events import ApprovalAsked, ApprovalGiven, HandoffEnd, RunStarted, ToolResponse
from daiku.domain.playbook import Delta
from daiku.guard.rules.commands.judge import CommandRules, judge
from daiku.guard.rules.redact import MARK
from daiku.playbook.rules.lessons.proposal import code_spans

Allows = Callable[[str], bool]
"""Return True if the person is not asked before a command line is run."""
_ABOUT_COMMANDS = frozenset({"command_replaced", "command_before"})
"""What taught lessons whose text contains only commands, between backquotes, and words of ours."""


def needs_review(change: Delta, allows: Allows) -> bool:
    """Return True if a person decides on a change even with `learn = "auto"`.

    Only two kinds of changes need no review: merges of duplicates, which add no text, and lessons about commands that the
    agent ran itself and may run unasked, those that failed included: their words are part of the lesson. `tainted` changes
    and those with a removed secret always need one.
    """
    if change.origin != "rule" or change.doubts or MARK in change.content:
        return True
    if change.type == "merge":
        return False
    commands = code_spans(change.content) if change.why in _ABOUT_COMMANDS else ()
    return not commands or not all(map(allows, commands))


def allows_unasked(approvals: ApprovalSettings, command: str) -> bool:
    """Return True if a command only reads, or the person's settings allow it."""
    rules = CommandRules(resolve=str, allow=approvals.commands_allow, deny=approvals.commands_deny)
    return judge(command, rules).answer == "allow"


def is_tainted(chunks: Iterable[Chunk]) -> bool:
    """Return True if a run read text from outside: pages, MCP servers, issues, or pictures.

    A server whose start a person approved counts: it describes its tools to the model.
    """
    asked: set[str] = set()
    for chunk in chunks:
        match chunk.event:
            case ApprovalAsked(kind="mcp", from_server=True, approval_id=approval):
                asked.add(approval)
            case ApprovalGiven(approval_id=approval, decision="allow_once" | "allow_always") if (
                approval in asked
            ):
                return True
            case RunStarted(tainted=True) | HandoffEnd(tainted=True) | ToolResponse(untrusted=True):
                return True
            case ToolResponse(images=images) | RunStarted(images=images) if images:
                return True
            case _:
                pass
    return False

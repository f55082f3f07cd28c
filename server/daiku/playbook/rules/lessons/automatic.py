"""Decide which lessons need no review with automatic learning."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from daiku.domain.chunks import Chunk
from daiku.domain.config import ApprovalSettings
from daiku.domain.events import ApprovalAsked, ApprovalGiven, HandoffEnd, RunStarted, ToolResponse
from daiku.domain.playbook import Delta
from daiku.guard.rules.commands.judge import CommandRules, judge
from daiku.guard.rules.redact import MARK
from daiku.playbook.rules.lessons.proposal import find_code_spans

Allows = Callable[[str], bool]
"""Predicate of a command line: True if the user's approval is not needed to run it."""
_ABOUT_COMMANDS = frozenset({"command_replaced", "command_before"})
"""Reasons of lessons whose text has only commands, between backquotes, and fixed words."""


def needs_review(change: Delta, allows: Allows) -> bool:
    """Return True if a change needs review even with `learn = "auto"`.

    Only merges of duplicates, which add no text, and lessons about commands need none. The agent must have
    run those commands itself, and must be allowed to run them without approval, the failed ones too.
    `tainted` changes and those with a removed secret always need review.
    """
    if change.origin != "rule" or change.doubts or MARK in change.content:
        return True
    if change.type == "merge":
        return False
    commands = find_code_spans(change.content) if change.why in _ABOUT_COMMANDS else ()
    return not commands or not all(map(allows, commands))


def allows_unasked(approvals: ApprovalSettings, command: str) -> bool:
    """Return True if a command only reads, or the settings allow it."""
    rules = CommandRules(resolve=str, allow=approvals.commands_allow, deny=approvals.commands_deny)
    return judge(command, rules).answer == "allow"


def is_tainted(chunks: Iterable[Chunk]) -> bool:
    """Return True if a run read text from outside: pages, MCP servers, issues, or pictures.

    An approved start of an MCP server counts: it describes its tools to the model.
    """
    mcp_approvals: set[str] = set()
    for chunk in chunks:
        match chunk.event:
            case ApprovalAsked(kind="mcp", from_server=True, approval_id=approval):
                mcp_approvals.add(approval)
            case ApprovalGiven(approval_id=approval, decision="allow_once" | "allow_always") if (
                approval in mcp_approvals
            ):
                return True
            case RunStarted(tainted=True) | HandoffEnd(tainted=True) | ToolResponse(untrusted=True):
                return True
            case ToolResponse(images=images) | RunStarted(images=images) if images:
                return True
            case _:
                pass
    return False

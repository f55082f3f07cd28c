"""The coordinator's system prompt: who it is, where it works, which rules hold there."""

from __future__ import annotations

import platform
from pathlib import Path

from daiku.agents.agent import Agent
from daiku.core.cut import cut_middle
from daiku.domain.base import Frozen
from daiku.domain.runs import Mode
from daiku.prompts import render

RULES_FILES = ("AGENTS.md", ".github/copilot-instructions.md", "CLAUDE.md")
RULES_LIMIT = 40_000
"""Characters of one rules file; more is cut in the middle."""


class RulesFile(Frozen):
    path: str
    text: str


class SystemVariables(Frozen):
    """What the system prompt is made from; nothing in it changes between two turns."""

    mode: Mode
    system_os: str
    roots: tuple[str, ...]
    rules: tuple[RulesFile, ...]
    has_tools: bool
    mcp_prompt: str = ""
    """The `system_prompt` of every allowed MCP server, merged (R2.69)."""


def system_prompt(
    agent: Agent, mode: Mode, roots: tuple[Path, ...], has_tools: bool, mcp_prompt: str = ""
) -> str:
    """The system prompt of `agent`, the same text every turn so that provider caches hit."""
    return render(
        agent.prompt,
        SystemVariables(
            mode=mode,
            system_os=f"{platform.system()} {platform.machine()}",
            roots=tuple(str(root) for root in roots),
            rules=read_rules(roots),
            has_tools=has_tools,
            mcp_prompt=mcp_prompt,
        ),
    )


def read_rules(roots: tuple[Path, ...]) -> tuple[RulesFile, ...]:
    """The rules files at the roots, verbatim; unreadable ones and links that leave are left out."""
    found: list[RulesFile] = []
    for root in roots:
        for name in RULES_FILES:
            path = root / name
            if path.is_file() and path.resolve().is_relative_to(root.resolve()):
                text = path.read_text("utf-8", errors="replace")
                found.append(RulesFile(path=name, text=cut_middle(text, RULES_LIMIT)))
    return tuple(found)

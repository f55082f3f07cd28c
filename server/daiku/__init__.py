"""Daiku: an AI software engineer that lives in the editor as a language server, and a library of agents."""

from __future__ import annotations

import gc
from importlib import import_module
from typing import Any

from daiku.version import __version__ as __version__

_PLACES = {
    "Agent": "daiku.team.agent",
    "ApprovalAsked": "daiku.domain.events",
    "ApprovalDecision": "daiku.domain.events",
    "Change": "daiku.domain.work.patches",
    "ChangeOp": "daiku.domain.work.patches",
    "Chunk": "daiku.domain.chunks",
    "Guardrail": "daiku.guard.guardrails.guardrail",
    "GuardrailViolation": "daiku.domain.errors",
    "LLMAdapter": "daiku.models.adapter",
    "LLMRouter": "daiku.team.routing.model",
    "Memory": "daiku.memory.memory",
    "PatchJSON": "daiku.domain.work.patches",
    "Result": "daiku.team.running",
    "RuleRouter": "daiku.team.routing.rule_router",
    "Runner": "daiku.library.runner",
    "TokenGuard": "daiku.guard.guardrails.tokens",
    "Tool": "daiku.tools.tool",
    "ToolContext": "daiku.tools.tool",
    "ToolRegistry": "daiku.tools.registry",
    "TraceLogger": "daiku.trace.telemetry.logger",
    "merge_patches": "daiku.edits.rules.changes.changemap",
    "tool": "daiku.tools.functions",
}
"""Where the names of the library are (PROTOCOL 6); `__init__.pyi` says the same to type checkers."""
__all__ = tuple(_PLACES)  # pyright: ignore[reportUnsupportedDunderAll]  # __getattr__ imports each of them


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'daiku' has no attribute {name!r}")
    # What a module makes as it is imported stays: to look through it for garbage is a tenth of an import's time. Frozen
    # and released again it is among what is old, which is looked through last.
    collecting = gc.isenabled()
    gc.disable()
    try:
        value = getattr(import_module(_PLACES[name]), name)
    finally:
        if collecting and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if collecting:
            gc.enable()
    globals()[name] = value
    return value

"""What a workspace's own settings file may change, and the folders whose file the person trusts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from daiku.domain.base import JsonObject
from daiku.settings.config import Config
from daiku.settings.environment import Key, dotted, leaves, set_value

STRICTNESS: dict[str, tuple[JsonValue, ...]] = {
    "approvals.read": ("allow", "ask", "deny"),
    "approvals.edit": ("allow", "ask", "deny"),
    "approvals.command": ("allow", "ask", "deny"),
    "approvals.network": ("allow", "ask", "deny"),
    "approvals.mcp": ("allow", "ask", "deny"),
    "sandbox.mode": ("off", "auto", "strict"),
    "sandbox.network": (True, False),
    "playbook.learn": ("auto", "review", "off"),
    "playbook.enabled": (True, False),
    "memory.enabled": (True, False),
}
"""From loose to strict: an untrusted file may only move to the right."""
LOWER_IS_STRICTER = (
    "guardrails.similarity_warn",
    "guardrails.similarity_block",
    "limits.max_repairs",
    "limits.max_replans",
    "limits.max_verifications",
)
ADDED_TO = ("approvals.commands_deny", "guardrails.regex_blocks")
"""Lists where more is stricter: what the file says comes on top."""
HARMLESS = (
    "llm.provider",
    "llm.model",
    "llm.fallback_model",
    "playbook.top_k",
    "playbook.alpha",
    "playbook.min_confidence",
    "playbook.token_budget",
    "memory.top_k",
    "memory.token_budget",
    "research.engine",
)
HARMLESS_OF_PROVIDERS = (
    "context_length",
    "api",
    "tool_protocol",
    "effort",
    "first_token_seconds",
    "idle_seconds",
)

NEVER = ("plugins.allow", "sandbox.environment", "storage.database_url", "github.app_key_env")
"""What no workspace sets, trusted or not: what code is loaded, what variables commands get, where data goes."""
WORK, WORK_LABELS = "work.", "work.labels."
"""Nor does a workspace set anything of unattended work but, if trusted, the labels."""


def restrict_layer(layer: JsonObject, below: Config, *, trusted: bool) -> tuple[JsonObject, tuple[str, ...]]:
    """Return what counts of a workspace's valid file, given the settings `below` it, and the ignored keys.

    Whatever is not known to be harmless or stricter is ignored in an untrusted file, so a new setting is safe.
    """
    taken: JsonObject = {}
    ignored: list[str] = []
    for key, value in leaves(layer):
        name = dotted(key)
        if (
            key[-1] == "api_key"
            or _belongs_to_person(name)
            or (not trusted and not _is_allowed(name, key, value, below))
        ):
            ignored.append(name)
            continue
        if not trusted and name in ADDED_TO and isinstance(value, list):
            present: tuple[str, ...] = _value_now(below, key)
            set_value(taken, key, [*present, *(v for v in value if v not in present)])
        else:
            set_value(taken, key, value)
    return taken, tuple(ignored)


def _belongs_to_person(name: str) -> bool:
    return name in NEVER or (name.startswith(WORK) and not name.startswith(WORK_LABELS))


def _is_allowed(name: str, key: Key, value: JsonValue, below: Config) -> bool:
    present = _value_now(below, key)
    if name in STRICTNESS:
        order = STRICTNESS[name]
        wanted = _as_bool(value) if isinstance(order[0], bool) else value
        return wanted in order and order.index(wanted) >= order.index(present)
    if name in ADDED_TO:
        return True
    if name in LOWER_IS_STRICTER:
        return _number(value) <= present
    if key[0] == "limits":  # 0 is no limit
        return 0 < _number(value) <= (present or math.inf)
    if name in HARMLESS or (key[0] == "agents" and key[-1] == "model"):
        return "scripted" not in str(value).partition("/")[0]
    return len(key) == 3 and key[0] == "llm" and key[-1] in HARMLESS_OF_PROVIDERS


def _value_now(config: Config, key: Key) -> Any:
    here: Any = config
    for part in key:
        here = getattr(here, part) if isinstance(here, BaseModel) else None
    return here


def _as_bool(value: JsonValue) -> JsonValue:
    """Return a value as pydantic reads it, so that "no" is taken for False; what is no boolean as it is."""
    try:
        return TypeAdapter(bool).validate_python(value)
    except ValidationError:
        return value


def _number(value: JsonValue) -> float:
    try:
        return float(str(value))
    except ValueError:
        return math.inf


NAME = "trusted-folders"


def trusted_folders(home: Path) -> tuple[str, ...]:
    """Return the resolved paths of all trusted folders, oldest first."""
    try:
        lines = (home / NAME).read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        return ()
    return tuple(line for line in lines if line)


def is_trusted(home: Path, folder: Path) -> bool:
    """Report whether a folder is on the list or inside a folder on it."""
    real = folder.resolve()
    return any(real.is_relative_to(listed) for listed in trusted_folders(home))


def set_trusted(home: Path, folder: Path, *, trusted: bool) -> None:
    """Put a folder on the list or take it off. Raises OSError."""
    real = str(folder.resolve())
    kept = [name for name in trusted_folders(home) if name != real]
    path = home / NAME
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text("".join(f"{name}\n" for name in (*kept, *([real] if trusted else []))), encoding="utf-8")

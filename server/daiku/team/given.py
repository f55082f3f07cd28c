"""Validate the arguments of an Agent; invalid ones raise TypeError or ValueError that names the argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias, cast

from daiku.models.families import Model
from daiku.run.rules.outside import Guard, Remembers
from daiku.texts.rules.patterns import lazy
from daiku.tools.tool import Tool

ToolLike: TypeAlias = Tool | str | Callable[..., Any]
"""A function, a `Tool`, or the name or pattern of built-in tools."""

LONGEST_NAME = 64
_NAME = lazy(r"[^\s\"\\\x00-\x1f\x7f](?:[^\"\\\x00-\x1f\x7f]*[^\s\"\\\x00-\x1f\x7f])?")


def check_name(name: object) -> str:
    """Return the name: one line of at most 64 characters, as every event of the agent carries it (R1.18)."""
    if not isinstance(name, str):
        raise TypeError(f"Agent: `name` is a text, not {_kind(name)}.")
    if not name.strip():
        raise ValueError("Agent: `name` is empty; an agent is told apart by its name.")
    if len(name) > LONGEST_NAME or _NAME.fullmatch(name) is None:
        raise ValueError(
            f"Agent: `name` is at most {LONGEST_NAME} characters without quotes, backslashes, line breaks and outer "
            f"spaces, not {name[: 2 * LONGEST_NAME]!r}."
        )
    return name


def check_model(model: object) -> str | Model:
    """Return the model: a name, or an object with the methods of a model."""
    if isinstance(model, str):
        return model
    missing = [name for name in ("name", "stream", "quote", "traits") if not hasattr(model, name)]
    if missing or isinstance(model, type):
        lacks = f" (it has no `{missing[0]}`)" if missing else ""
        raise TypeError(f"`model` is a name such as 'openai/gpt-5.2' or a model, not {_kind(model)}{lacks}.")
    return cast("Model", model)


def check_guardrails(guardrails: object) -> tuple[Guard, ...]:
    """Return the guardrails; each has validate_input and validate_output."""
    if isinstance(guardrails, str) or not isinstance(guardrails, Sequence):
        raise TypeError(f"`guardrails` is a list of Guardrails, not {_kind(guardrails)}.")
    for guardrail in cast("Sequence[object]", guardrails):
        if not (hasattr(guardrail, "validate_input") and hasattr(guardrail, "validate_output")):
            raise TypeError(f"`guardrails` takes Guardrails, not {_kind(guardrail)}.")
    return tuple(cast("Sequence[Guard]", guardrails))


def check_memory(memory: object) -> Remembers | None:
    """Return the memory; it has recall and remember."""
    if memory is not None and not (hasattr(memory, "recall") and hasattr(memory, "remember")):
        raise TypeError(f"`memory` is a Memory, not {_kind(memory)}.")
    return cast("Remembers | None", memory)


def check_extra_cfg(extra_cfg: object) -> Mapping[str, Any]:
    """Return the configuration for the agent's tools; empty for None."""
    if extra_cfg is not None and not isinstance(extra_cfg, Mapping):
        raise TypeError(f"Agent: `extra_cfg` is a mapping, not {_kind(extra_cfg)}.")
    return MappingProxyType({}) if extra_cfg is None else cast("Mapping[str, Any]", extra_cfg)


def check_handoff_hook(hook: object) -> Callable[[str], str]:
    """Return the function applied to the answer of a handoff; the identity for None."""
    if hook is None:
        return str
    if not callable(hook) or inspect.iscoroutinefunction(hook):
        raise TypeError("Agent: `on_handoff_return` is a plain function from text to text.")
    return cast("Callable[[str], str]", hook)


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"

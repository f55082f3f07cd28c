"""Where two requests of a conversation first differ: before that place, a provider's cache can be used."""

from __future__ import annotations

from daiku.domain.messages import ModelRequest


def first_divergence(before: ModelRequest, after: ModelRequest) -> str:
    """What of `before` is no longer the beginning of `after`: `model`, `system`, `tool N (name)` or
    `message N (role)`, counted from 1; empty where `after` only goes on from it.

    In the order in which a request is cached: tools, system, messages.
    """
    if before.model != after.model:
        return "model"
    for number, (one, other) in enumerate(zip(before.tools, after.tools, strict=False), 1):
        if one != other:
            return f"tool {number} ({other.name})"
    if len(before.tools) != len(after.tools):
        number = min(len(before.tools), len(after.tools)) + 1
        longer = max(before.tools, after.tools, key=len)
        return f"tool {number} ({longer[number - 1].name})"
    if before.system != after.system:
        return "system"
    for number, (one, other) in enumerate(zip(before.messages, after.messages, strict=False), 1):
        if one is not other and one != other:
            return f"message {number} ({other.role})"
    if len(after.messages) < len(before.messages):
        return f"message {len(after.messages) + 1} ({before.messages[len(after.messages)].role})"
    return ""

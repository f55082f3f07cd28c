"""Descriptions of what "always" would allow for a call."""

from __future__ import annotations

from daiku.texts.text import NO_TEXT, Text, text


def describe_grant(key: str) -> Text:
    """Describe what "always" would allow for a verdict's `key`; empty if it cannot be stored."""
    prefix, _, rest = key.partition(":")
    match prefix:
        case "":
            return NO_TEXT
        case "edit":
            return text("guard.remember_edit")
        case "network" if rest == "web/search":
            return text("guard.remember_search")
        case "network" if rest == "web/research":
            return text("guard.remember_research")
        case "network" if not rest.startswith(("command:", "unsandboxed:")):
            return text("guard.remember_reach", host=rest)
        case "read":
            return text("guard.remember_read", what=rest)
        case "mcp":
            return text("guard.remember_mcp", tool=rest.partition("#")[0])
        case _:
            mark, _, command = key.partition("command:")
            what = text("guard.remember_run", command=command)
            if prefix == "network":
                what = text("guard.remember_with_network", what=what)
            return text("guard.remember_unsandboxed", what=what) if "unsandboxed:" in mark else what

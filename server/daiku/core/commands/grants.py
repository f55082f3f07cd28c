"""The command line that an "always" answer is stored for: exactly the line shown, no pattern."""

from __future__ import annotations

from daiku.core.commands.bash import ParsedCommands, SimpleCommand
from daiku.core.commands.dangers import dangers
from daiku.core.commands.rules import has_risky_option


def grant_line(command: str, script: ParsedCommands, every: list[SimpleCommand]) -> str:
    """Return the line to store when `command` is always allowed; empty if it must not be stored, because it
    was not fully parsed, depends on its folder, deletes, or runs downloaded code."""
    if script.doubts or dangers(every):
        return ""
    if any(not word.plain or word.glob for simple in script.commands for word in simple.words):
        return ""
    return "" if any(has_risky_option(simple.words) for simple in every) else command.strip()

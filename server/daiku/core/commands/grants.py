"""What "always" remembers of a command: the line that was shown, operators and all, and nothing near it."""

from __future__ import annotations

from daiku.core.commands.bash import ParsedCommands, SimpleCommand
from daiku.core.commands.dangers import dangers
from daiku.core.commands.rules import has_risky_option


def grant_line(command: str, script: ParsedCommands, every: list[SimpleCommand]) -> str:
    """The line that "always" remembers of `command`; empty where it must not be remembered: it was not
    understood, it would be another command in another folder, it deletes, or it runs downloaded code."""
    if script.doubts or dangers(every):
        return ""
    if any(not word.plain or word.glob for simple in script.commands for word in simple.words):
        return ""
    return "" if any(has_risky_option(simple.words) for simple in every) else command.strip()

"""Searching in what a command printed, where the whole was kept."""

from __future__ import annotations

import re

from daiku.domain.tools import ToolResult
from daiku.tools.tool import ToolContext, failed

MOST_LINES = 200
LONGEST = 400
LOOKED_AT = 2000
"""Characters of a line that an expression sees."""
_NESTED = re.compile(r"[+*}]\)[+*{]|\((?:[^()\\]|\\.)*[+*](?:[^()\\]|\\.)*\)[+*{]")


def search_output(path: str, pattern: str, *, literal: bool, context: ToolContext) -> ToolResult:
    """The lines of the output `path` that match, with their numbers: the pattern is an expression, plain text where
    it is none or is asked to be; what is found nowhere is looked for in any case too. Blocks."""
    text = context.outputs.read(context.session, path) if context.outputs is not None else None
    if text is None:
        return failed(f"There is no {path} here, or no longer. Run the command again.")
    source = re.escape(pattern) if literal or _NESTED.search(pattern) else pattern
    try:
        wanted = re.compile(source)
    except (re.error, OverflowError, RecursionError):
        wanted = re.compile(re.escape(pattern))
    lines = text.removesuffix("\n").split("\n")
    any_case = re.compile(wanted.pattern, re.IGNORECASE)
    plain = re.compile(re.escape(pattern), re.IGNORECASE)
    for expression in (wanted, any_case, plain):
        found = [at for at, line in enumerate(lines) if expression.search(line[:LOOKED_AT])]
        if found:
            shown = [f"{path}:{at + 1}: {lines[at][:LONGEST]}" for at in found[:MOST_LINES]]
            more = [f"[… {len(found) - MOST_LINES} more lines match …]"] if len(found) > MOST_LINES else []
            return ToolResult(ok=True, text="\n".join([*shown, *more]))
    return ToolResult(
        ok=True, text=f"No line of the {len(lines)} of {path} matches {pattern!r}, in any case."
    )

"""Truncate long texts in the middle, and wrap untrusted ones as data between markers that they cannot close."""

from __future__ import annotations

from daiku.texts.rules.patterns import lazy

OUTPUT_LIMIT = 30_000
"""Characters of one tool result that a model is shown."""


def truncate_middle(text: str, limit: int = OUTPUT_LIMIT, how: str = "") -> str:
    """`text` whole when it has at most `limit` characters, else its head and tail with a note between.

    The cut falls on line ends where they are near. `how` says how to see the missing part.
    """
    if len(text) <= limit:
        return text
    head_end = limit * 2 // 3
    tail_start = len(text) - (limit - head_end)
    near = max(200, limit // 10)
    if (line_end := text.rfind("\n", head_end - near, head_end)) > 0:
        head_end = line_end + 1
    if (line_end := text.find("\n", tail_start, tail_start + near)) > 0:
        tail_start = line_end + 1
    missing = text[head_end:tail_start]
    lines = missing.count("\n")
    amount = f"{lines} lines, {len(missing)} characters" if lines else f"{len(missing)} characters"
    note = f"[… {amount} left out here{'. ' + how if how else ''} …]"
    gap = "" if text[head_end - 1 : head_end] == "\n" else "\n"
    return f"{text[:head_end]}{gap}{note}\n{text[tail_start:]}"


_OPENS = lazy("[<\uff1c\ufe64\u2039\u27e8\u3008]")


def fence_as_data(text: str) -> str:
    """Return `text` between `<data>` and `</data>`, with everything escaped that could start such a mark.

    Look-alikes are escaped too. The result is deterministic, as a provider's prompt cache depends on it.
    """
    return f"<data>\n{_OPENS.sub('&lt;', text)}\n</data>"

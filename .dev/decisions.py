"""The index of server/DECISIONS.md: each entry with its status, by subject."""

from __future__ import annotations

import re

_ENTRY = re.compile(r"^(##|###) (.+)\n\n(Accepted|Superseded)?", re.MULTILINE)


def slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub and the site name it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def index(page: str) -> str:
    """Return the table of the page's entries. Raises ValueError for an entry without a status."""
    lines: list[str] = []
    for level, heading, status in _ENTRY.findall(page):
        if level == "##":
            lines += ["", f"**[{heading}](#{slug(heading)})**", "", "| decision | status |", "|---|---|"]
        elif not status:
            raise ValueError(f"DECISIONS.md: '{heading}' has no status (Accepted or Superseded)")
        else:
            lines.append(f"| [{heading}](#{slug(heading)}) | {status.lower()} |")
    return "\n".join([*lines[1:], ""])

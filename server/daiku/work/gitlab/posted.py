"""Texts as they are posted to GitLab: a line of them must not be one of its quick actions."""

from __future__ import annotations

import re

from daiku.core.work.marks import without_marks

_QUICK_ACTION = re.compile(r"^([ \t]*)(?=/[^\W\d])", re.MULTILINE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_DRAFT = re.compile(r"\s*(?:\[draft\]|\(draft\)|draft:|draft\s-\s)\s*", re.IGNORECASE)
TITLE = 255
"""Characters that a title may have."""
DRAFT = "Draft: "


def harmless(text: str) -> str:
    """`text` without marks of ours, in which no line begins as a quick action does: with one GitLab would close, assign or
    merge in our name. As people see it, it stays the same."""
    lines: list[str] = []
    fence = ""
    for line in without_marks(text).replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        # In code a backslash would be seen, so a blank does it there.
        lines.append(_QUICK_ACTION.sub(r"\1 " if fence else r"\1\\", line))
        if found := _FENCE.match(line):
            fence = "" if fence and found[1].startswith(fence) else fence or found[1]
    return "\n".join(lines)


def is_draft(title: str) -> bool:
    """Whether a request with `title` is a draft: to GitLab nothing else says so."""
    return _DRAFT.match(title) is not None


def as_draft(title: str, branch: str) -> str:
    """The title of a draft request from `branch`."""
    return (DRAFT + (without_draft(title) or branch))[:TITLE].rstrip()


def without_draft(title: str) -> str:
    """The title of a request that is ready."""
    while found := _DRAFT.match(title):
        title = title[found.end() :]
    return " ".join(title.split())[: TITLE - len(DRAFT)]

"""Issues of style as a patch: headings, code and front matter stay as they are."""

from __future__ import annotations

from collections.abc import Sequence

from daiku.core.changes.issues import patch_from_issues
from daiku.core.changes.redacted import moves_marks
from daiku.core.drafting.headings import headings, lines_of
from daiku.core.guard.redact import MARK
from daiku.domain.work.documents import DocumentFormat
from daiku.domain.work.patches import Change, Issue, IssuePatch, Unplaced


def patch_of_style(text: str, form: DocumentFormat, issues: Sequence[Issue]) -> IssuePatch:
    """The patch that `issues` make of `text`; those that would change a heading, code or front matter, or take out
    what stands for a secret, are not placed."""
    closed = [(line.start, line.end) for line in lines_of(text, form) if line.closed]
    closed += [(heading.start, heading.end) for heading in headings(text, form)]
    kept: list[Issue] = []
    unplaced: list[Unplaced] = []
    for issue in issues:
        alone = patch_from_issues(text, (issue,))
        if any(_inside(change, closed) for change in alone.change_map) or moves_marks(
            text, MARK, alone.change_map
        ):
            unplaced.append(Unplaced(issue=issue, why="protected"))
        else:
            kept.append(issue)
    patch = patch_from_issues(text, kept)
    return patch.model_copy(update={"unplaced": (*unplaced, *patch.unplaced)})


def _inside(change: Change, closed: Sequence[tuple[int, int]]) -> bool:
    """Whether a change touches a closed stretch; what is put before or behind it does not."""
    if change.start == change.end:
        return any(start < change.start < end for start, end in closed)
    return any(change.start < end and start < change.end for start, end in closed)

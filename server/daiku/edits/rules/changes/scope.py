"""The part of a file that the user asked to edit, and the check that a change stays inside."""

from __future__ import annotations

from daiku.dataclass import dataclass
from daiku.domain.runs import Range
from daiku.domain.work.patches import Patch
from daiku.texts.rules.patterns import lazy

_LINES = lazy(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
"""Pattern of lines as an editor counts them, with their line ends."""


@dataclass(frozen=True, slots=True)
class EditPlace:
    """The part of a file that may be edited. `path` is as in changes.

    A change is inside if the file still begins with `before` and ends with `after`.
    """

    path: str
    before: str = ""
    after: str = ""


def find_edit_place(path: str, text: str, lines: Range | None) -> EditPlace | None:
    """Return the place of `lines` (0-based), or the complete file; None if there are no such lines."""
    if lines is None:
        return EditPlace(path)
    every: list[str] = _LINES.findall(text)
    if not every or not every[-1].endswith(("\n", "\r")):
        every = every or [""]
    else:
        every.append("")  # editors count the empty line after the last line end
    if not 0 <= lines.start.line < len(every) or lines.end.line < lines.start.line:
        return None
    past = lines.end.line + (1 if lines.end.character > 0 or lines.end.line == lines.start.line else 0)
    return EditPlace(path, "".join(every[: lines.start.line]), "".join(every[past:]))


def is_inside(patch: Patch, place: EditPlace) -> bool:
    """Return True if `patch` only edits the text at `place`, without creating, moving or deleting a file."""
    if len(patch.files) != 1:
        return False
    change = patch.files[0]
    if change.kind != "edit" or change.path != place.path or change.to:
        return False
    between = _get_text_between(change.old, place), _get_text_between(change.new, place)
    if between[0] is None or between[1] is None:
        return False
    return not (place.after and between[1]) or between[1].endswith(("\n", "\r"))


def _get_text_between(text: str | None, place: EditPlace) -> str | None:
    """Return the text at `place`; None if the surrounding text differs."""
    if text is None or len(text) < len(place.before) + len(place.after):
        return None
    if not (text.startswith(place.before) and text.endswith(place.after)):
        return None
    return text[len(place.before) : len(text) - len(place.after)]

"""Record which text of each file a session's model has read, so that it overwrites no text it never saw."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

from daiku.texts.rules.truncate import truncate_middle

if TYPE_CHECKING:
    from daiku.edits.rules.matching.refusal import Refusal

_FILES = 300
_LARGEST = 1_000_000
_SHOWN = 3000
_WHOLE = 12_000
"""Characters of a file that is shown as it is; of a longer one its beginning and what it defines."""
_HEAD = 2000


class SeenTexts:
    """Texts by session and real place (a worktree has files of the same names), bounded. What is forgotten
    (after a restart, too many, too large) is not seen."""

    def __init__(self) -> None:
        self._texts: OrderedDict[tuple[str, Path], str] = OrderedDict()
        self._parts: OrderedDict[tuple[str, Path], tuple[str, set[int]]] = OrderedDict()

    def note(self, session: str, real: Path, text: str | None) -> None:
        """The model has seen this text (None: no file), or made it."""
        self._texts.pop((session, real), None)
        self._parts.pop((session, real), None)
        if text is not None and len(text) <= _LARGEST:
            self._texts[session, real] = text
        if len(self._texts) > _FILES:
            self._texts.popitem(last=False)

    def note_part(self, session: str, real: Path, text: str, lines: range, total: int) -> None:
        """Note that the model has read these lines (from 1); after all `total`, `text` counts as read."""
        if self._texts.get((session, real)) == text:
            return
        was, known = self._parts.pop((session, real), ("", set[int]()))
        known = {*known, *lines} if was == text else set(lines)
        if len(known) >= total:
            self.note(session, real, text)
            return
        self._parts[session, real] = (text, known)
        if len(self._parts) > _FILES:
            self._parts.popitem(last=False)

    def objection(self, session: str, real: Path, name: str, now: str, new: str) -> Refusal | None:
        """Refuse to overwrite `now` with `new` if the model has not read `now`; None if it may.
        The refusal shows the text or what changed in it, and `now` then counts as read."""
        from daiku.domain.work.patches import FileChange  # when used
        from daiku.edits.rules.changes.diff import unified_diff  # when used
        from daiku.edits.rules.matching.refusal import Refusal  # when used

        was = self._texts.get((session, real))
        if was in (now, new) or now == new or not now.strip():
            return None
        self.note(session, real, now)
        if was is None:
            return Refusal(
                f"{name} is there already, and you have not read all of it; nothing was written. Change it with"
                " files__edit, or send the whole file again if it is to take the place of this:\n"
                f"{_shown(name, now)}"
            )
        diff = truncate_middle(
            unified_diff(FileChange(path=name, kind="edit", old=was, new=now)),
            _SHOWN,
            "files__read shows all",
        )
        return Refusal(
            f"{name} was changed by somebody else since you saw it; nothing was written."
            f" Keep what was changed:\n{diff}"
        )


def _shown(name: str, text: str) -> str:
    """A file as it is, where it is long its beginning and what it defines."""
    from daiku.tools.files.tags import read_tags  # when used

    if len(text) <= _WHOLE:
        return text
    tags = read_tags(text.encode("utf-8", "replace"), Path(name).suffix.lower())
    defined = [f"{tag.line}: {tag.signature}" for tag in tags if tag.is_definition]
    outline = "\n".join(defined) or text[_HEAD:]
    head, lines = text[:_HEAD].rpartition("\n")[0] or text[:_HEAD], text.count("\n") + 1
    return f"{head}\n[{lines} lines in all; files__read shows them. Further down:]\n{truncate_middle(outline, _WHOLE)}"

"""Record which text of each file a session's model has read, so that it does not overwrite unread text."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

from daiku.texts.rules.truncate import truncate_middle

if TYPE_CHECKING:
    from daiku.edits.rules.matching.refusal import Refusal

_MAX_FILES = 300
"""Files that are remembered."""
_MAX_TEXT = 1_000_000
"""Characters of the longest text that is remembered."""
_MAX_DIFF = 3000
"""Characters of a diff that a refusal shows."""
_MAX_FULL_TEXT = 12_000
"""Characters of the longest file that a refusal shows in full. Of a longer one it shows the head and an
outline."""
_HEAD_LENGTH = 2000
"""Characters of the head of a longer file."""


class SeenTexts:
    """The texts that models have read, by session and real path. Bounded; lost at a restart.

    The key is the real path because a worktree has files of the same names. A text that was dropped counts as
    unread.
    """

    def __init__(self) -> None:
        self._texts: OrderedDict[tuple[str, Path], str] = OrderedDict()
        self._parts: OrderedDict[tuple[str, Path], tuple[str, set[int]]] = OrderedDict()

    def note(self, session: str, real: Path, text: str | None) -> None:
        """Record that the model has read or written this text (None: the file does not exist)."""
        self._texts.pop((session, real), None)
        self._parts.pop((session, real), None)
        if text is not None and len(text) <= _MAX_TEXT:
            self._texts[session, real] = text
        if len(self._texts) > _MAX_FILES:
            self._texts.popitem(last=False)

    def note_part(self, session: str, real: Path, text: str, lines: range, total: int) -> None:
        """Record that the model has read these lines (from 1).

        Once all `total` lines are read, `text` counts as read.
        """
        if self._texts.get((session, real)) == text:
            return
        read_text, read_lines = self._parts.pop((session, real), ("", set[int]()))
        read_lines = {*read_lines, *lines} if read_text == text else set(lines)
        if len(read_lines) >= total:
            self.note(session, real, text)
            return
        self._parts[session, real] = (text, read_lines)
        if len(self._parts) > _MAX_FILES:
            self._parts.popitem(last=False)

    def check_overwrite(self, session: str, real: Path, name: str, now: str, new: str) -> Refusal | None:
        """Return a refusal if the model has not read `now`, which it would overwrite with `new`; else None.

        The refusal shows the text, or its diff to the text that was read. `now` then counts as read.
        """
        from daiku.domain.work.patches import FileChange  # when used
        from daiku.edits.rules.changes.diff import render_unified_diff  # when used
        from daiku.edits.rules.matching.refusal import Refusal  # when used

        read_text = self._texts.get((session, real))
        if read_text in (now, new) or now == new or not now.strip():
            return None
        self.note(session, real, now)
        if read_text is None:
            return Refusal(
                f"{name} is there already, and you have not read all of it; nothing was written. Change it with"
                " files__edit, or send the whole file again if it is to take the place of this:\n"
                f"{_format_excerpt(name, now)}"
            )
        diff = truncate_middle(
            render_unified_diff(FileChange(path=name, kind="edit", old=read_text, new=now)),
            _MAX_DIFF,
            "files__read shows all",
        )
        return Refusal(
            f"{name} was changed by somebody else since you saw it; nothing was written."
            f" Keep what was changed:\n{diff}"
        )


def _format_excerpt(name: str, text: str) -> str:
    """Return the complete text, or the head and an outline of a long one."""
    from daiku.tools.files.tags import read_tags  # when used

    if len(text) <= _MAX_FULL_TEXT:
        return text
    tags = read_tags(text.encode("utf-8", "replace"), Path(name).suffix.lower())
    definitions = [f"{tag.line}: {tag.signature}" for tag in tags if tag.is_definition]
    outline = "\n".join(definitions) or text[_HEAD_LENGTH:]
    head, lines = text[:_HEAD_LENGTH].rpartition("\n")[0] or text[:_HEAD_LENGTH], text.count("\n") + 1
    return f"{head}\n[{lines} lines in all; files__read shows them. Further down:]\n{truncate_middle(outline, _MAX_FULL_TEXT)}"

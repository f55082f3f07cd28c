"""What a session's model last saw of each file: whoever writes a whole file must know what stands there."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

from daiku.core.cut import cut_middle
from daiku.core.diff import unified_diff
from daiku.core.refusal import Refusal
from daiku.domain.patches import FileChange

_FILES = 300
_LARGEST = 1_000_000
_SHOWN = 3000


class Seen:
    """Texts by session and real place (a worktree has files of the same names), bounded. What is forgotten
    (after a restart, too many, too large) is not seen."""

    def __init__(self) -> None:
        self._texts: OrderedDict[tuple[str, Path], str] = OrderedDict()

    def note(self, session: str, real: Path, text: str | None) -> None:
        """The model has seen this text (None: no file), or made it."""
        self._texts.pop((session, real), None)
        if text is not None and len(text) <= _LARGEST:
            self._texts[session, real] = text
        if len(self._texts) > _FILES:
            self._texts.popitem(last=False)

    def objection(self, session: str, real: Path, name: str, now: str, new: str) -> Refusal | None:
        """Why the whole text `new` may not take the place of `now`: the model does not know what it would
        undo. It is told, so that the next time it does."""
        was = self._texts.get((session, real))
        if was is None or was in (now, new) or now == new:
            return None
        self.note(session, real, now)
        diff = cut_middle(
            unified_diff(FileChange(path=name, kind="edit", old=was, new=now)), _SHOWN, "files/read shows all"
        )
        return Refusal(
            f"{name} was changed by somebody else since you saw it; nothing was written."
            f" Keep what was changed:\n{diff}"
        )

"""What a session's model last saw of each file: whoever writes a whole file must know what stands there."""

from __future__ import annotations

from collections import OrderedDict

from daiku.core.cut import cut_middle
from daiku.core.diff import unified_diff
from daiku.core.refusal import Refusal
from daiku.domain.patches import FileChange

_FILES = 300
_LARGEST = 1_000_000
_SHOWN = 3000


class Seen:
    """Texts by session and path, bounded. Forgotten (after a restart, too many, too large) is not seen."""

    def __init__(self) -> None:
        self._texts: OrderedDict[tuple[str, str], str] = OrderedDict()

    def note(self, session: str, path: str, text: str | None) -> None:
        """The model has seen this text (None: no file), or made it."""
        self._texts.pop((session, path), None)
        if text is not None and len(text) <= _LARGEST:
            self._texts[session, path] = text
        if len(self._texts) > _FILES:
            self._texts.popitem(last=False)

    def objection(self, session: str, path: str, now: str, new: str) -> Refusal | None:
        """Why the whole text `new` may not take the place of `now`: the model does not know what it would
        undo. It is told, so that the next time it does."""
        was = self._texts.get((session, path))
        if was is None or was in (now, new) or now == new:
            return None
        self.note(session, path, now)
        diff = cut_middle(
            unified_diff(FileChange(path=path, kind="edit", old=was, new=now)), _SHOWN, "files/read shows all"
        )
        return Refusal(
            f"{path} was changed by somebody else since you saw it; nothing was written."
            f" Keep what was changed:\n{diff}"
        )

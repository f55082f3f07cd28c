"""Commands that edit files in place. Pure."""

from __future__ import annotations

import shlex

from daiku.core.commands.bash import read_script
from daiku.core.commands.judge import LOOKING, changes_folder, read_only
from daiku.core.commands.wrappers import program_name
from daiku.core.text.patterns import lazy

_EDITORS = frozenset({"sed", "gsed", "perl"})
_IN_PLACE = lazy(r"-[A-Za-z0-9]*i|--in-place")
"""Option without the suffix of a backup, which would be another file."""


def find_edited_words(command: str) -> tuple[str, ...]:
    """Return the operands of `command` if it only reads, and edits in place some of the files that they name.

    Empty if it may change anything else, or edits nothing.
    """
    script = read_script(command)
    if script.broken or script.doubts or script.writes or changes_folder(command):
        return ()
    found: list[str] = []
    for part in script.commands:
        if program_name(part.words) in _EDITORS and any(map(_IN_PLACE.fullmatch, part.texts)):
            found += [word for word in part.texts[1:] if not word.startswith("-")]
        elif not read_only(shlex.join(part.texts), LOOKING):
            return ()
    return tuple(found)

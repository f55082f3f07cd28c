"""Judge an edit by what it makes of its files: what tools then fetch or run because of them."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from daiku.domain.work.patches import Patch
from daiku.guard.rules.protected.effects import why_new_effects, why_patch_matters
from daiku.guard.rules.referenced_paths import string_arguments
from daiku.texts.text import NO_TEXT, Text, text


def why_edit_matters(paths: Sequence[str], args: JsonValue, patch: Patch | None) -> Text:
    """Return what an edit makes tools do: by its `patch`, or by its arguments where the patch is unknown."""
    if patch is not None:
        return why_patch_matters(patch)
    parts = [part for _, value in string_arguments(args) for part in _possible_texts(value)]
    for path in paths:
        if why := next(filter(None, (why_new_effects(path, part) for part in parts)), NO_TEXT):
            return text("guard.of_path", path=path, why=why)
    return NO_TEXT


def _possible_texts(value: str) -> tuple[str, ...]:
    """Return what a file may hold where an argument is a whole text, a part of one, or a patch."""
    added = "\n".join(line[1:] for line in value.splitlines() if line.startswith("+"))
    return (value, '{"scripts":{' + value, added)

"""Check of an edit by its effects: what tools fetch or run because of the new text."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from daiku.domain.work.patches import Patch
from daiku.guard.rules.protected.effects import explain_new_effects, explain_patch_effects
from daiku.guard.rules.referenced_paths import string_arguments
from daiku.texts.text import NO_TEXT, Text, text


def explain_edit_effects(paths: Sequence[str], args: JsonValue, patch: Patch | None) -> Text:
    """Return what an edit makes tools do, empty if nothing.

    Read from its `patch`, or from its arguments if the patch is unknown.
    """
    if patch is not None:
        return explain_patch_effects(patch)
    parts = [part for _, value in string_arguments(args) for part in _list_possible_texts(value)]
    for path in paths:
        if why := next(filter(None, (explain_new_effects(path, part) for part in parts)), NO_TEXT):
            return text("guard.of_path", path=path, why=why)
    return NO_TEXT


def _list_possible_texts(value: str) -> tuple[str, ...]:
    """Return possible file contents for an argument that is a complete text, a part of one, or a patch."""
    added = "\n".join(line[1:] for line in value.splitlines() if line.startswith("+"))
    return (value, '{"scripts":{' + value, added)

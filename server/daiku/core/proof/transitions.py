"""Files before and after calls, by fingerprints of their content: what a call changed, and what a run changed in sum."""

from __future__ import annotations

from collections.abc import Iterable

from daiku.domain.base import JsonObject
from daiku.domain.tools import CHANGED_FILES
from daiku.domain.work.handovers import FileTransition


def to_data(transitions: Iterable[FileTransition]) -> JsonObject:
    """Return the data of a result that says which files the call changed."""
    return {CHANGED_FILES: [each.model_dump() for each in transitions]}


def transitions_of(data: JsonObject | None) -> tuple[FileTransition, ...] | None:
    """Return the files that a call changed; None where its result does not say."""
    listed = (data or {}).get(CHANGED_FILES)
    if not isinstance(listed, list):
        return None
    return tuple(FileTransition.model_validate(each) for each in listed)


def merge_transitions(
    earlier: Iterable[FileTransition], later: Iterable[FileTransition]
) -> tuple[FileTransition, ...]:
    """Return one transition for each file: from what it was at first to what it is at last."""
    merged = {each.path: each for each in earlier}
    for each in later:
        first = merged.get(each.path, each)
        merged[each.path] = each.model_copy(update={"before": first.before})
    return tuple(merged.values())


def is_change(transition: FileTransition) -> bool:
    """Return True if the file is not what it was. A mode counts where it is known on both sides."""
    before, _, mode = transition.before.partition(":")
    after, _, mode_after = transition.after.partition(":")
    return before != after or bool(mode and mode_after and mode != mode_after)

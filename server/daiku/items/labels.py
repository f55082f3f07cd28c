"""The label of each item state."""

from __future__ import annotations

from daiku.domain.items.item import ItemState
from daiku.settings.config import WorkLabels


def get_label(labels: WorkLabels, state: ItemState) -> str:
    """Return the label of `state`; a waiting item has that of a paused one."""
    names: dict[ItemState, str] = {
        "queued": labels.todo,
        "processing": labels.processing,
        "paused": labels.paused,
        "waiting": labels.paused,
        "done": labels.done,
        "failed": labels.failed,
        "dead": labels.failed,
        "stopped": labels.stopped,
    }
    return names[state]


def list_own_labels(labels: WorkLabels) -> tuple[str, ...]:
    """Return every label that Daiku sets; others are never changed."""
    return tuple(
        dict.fromkeys(
            (labels.todo, labels.processing, labels.paused, labels.done, labels.failed, labels.stopped)
        )
    )


def is_same_label(one: str, other: str) -> bool:
    """Return True if both names are one label; forges ignore case."""
    return one.casefold() == other.casefold()

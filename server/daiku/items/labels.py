"""Which label stands for which state of an item (PROTOCOL 2)."""

from __future__ import annotations

from daiku.domain.items.item import ItemState
from daiku.settings.config import WorkLabels


def label_of(labels: WorkLabels, state: ItemState) -> str:
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


def our_labels(labels: WorkLabels) -> tuple[str, ...]:
    """Every label that is ours; all others are never touched."""
    return tuple(
        dict.fromkeys(
            (labels.todo, labels.processing, labels.paused, labels.done, labels.failed, labels.stopped)
        )
    )


def same_label(one: str, other: str) -> bool:
    """Whether both are one label: forges do not tell capitals from small letters."""
    return one.casefold() == other.casefold()

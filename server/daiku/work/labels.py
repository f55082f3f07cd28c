"""Which label stands for which state of an item (PROTOCOL 2)."""

from __future__ import annotations

from daiku.domain.items.item import ItemState
from daiku.settings.config import WorkLabels


def label_of(labels: WorkLabels, state: ItemState) -> str:
    """The label of `state`; an item that waits for an answer has that of a paused one."""
    match state:
        case "queued":
            return labels.todo
        case "waiting":
            return labels.paused
        case "processing" | "paused" | "done" | "failed" | "dead" | "stopped":
            return {
                "processing": labels.processing,
                "paused": labels.paused,
                "done": labels.done,
                "failed": labels.failed,
                "dead": labels.failed,
                "stopped": labels.stopped,
            }[state]


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

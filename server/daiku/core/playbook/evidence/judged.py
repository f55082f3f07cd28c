"""A model's tag of a bullet: it counts only where the record shows that something failed, and not whose fault it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from daiku.domain.chunks import Chunk
from daiku.domain.held import Reflected, Tag
from daiku.domain.playbook import Why

Tags: TypeAlias = Mapping[tuple[str, str], Tag]
"""What a model said of a bullet, by the run at the top that was told it."""
OPEN: frozenset[Why] = frozenset({"command_failed", "unclear"})
"""The command that a bullet names failed and no other one passed in its place, or edits were taken back that it may have led
to: something went wrong, and rules cannot tell whether by the bullet."""


def tags_in(chunks: Iterable[Chunk], tops: Mapping[str, str]) -> Tags:
    """The tags on record, by all chunks of a session and the run at the top of each run; of two the later one counts."""
    found: dict[tuple[str, str], Tag] = {}
    for chunk in chunks:
        if isinstance(chunk.event, Reflected):
            found.update({(tops[chunk.run], each.id): each.tag for each in chunk.event.reflection.tags})
    return MappingProxyType(found)


def is_held_against(why: Why, tag: Tag | None) -> bool:
    """Whether a model's word makes harmful what rules hold to be neutral: only where the record shows a cause."""
    return tag == "harmful" and why in OPEN

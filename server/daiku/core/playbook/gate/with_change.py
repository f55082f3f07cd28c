"""A playbook as it would be with a change that waits, and whether that change may be tried."""

from __future__ import annotations

from daiku.core.playbook.changes import Standing, added, after, named_ids, wrong_text
from daiku.core.playbook.refused import Refused
from daiku.core.playbook.sections import bullet_id, id_parts, section_of, slug_of
from daiku.domain.playbook import Bullet, Delta, Doubt, Playbook

TRIED_ANYWAY: frozenset[Doubt] = frozenset({"tainted"})
"""Doubts about where a text comes from, not about what it says: it is tried where nothing can be reached, and what came
of it is shown to the person who decides."""


def may_be_tried(delta: Delta) -> bool:
    """Whether a change may be told to a run in a sandbox. A change of counters tells a run nothing."""
    return delta.type != "tag" and TRIED_ANYWAY.issuperset(delta.doubts)


def with_delta(playbook: Playbook, delta: Delta) -> Playbook | Refused:
    """The playbook with `delta` applied; an addition gets the id that is likely its own."""
    if delta.type == "add":
        if wrong := wrong_text(delta.content):
            return wrong
        made = added(delta, _next_id(playbook, delta), "")
        return playbook.model_copy(update={"bullets": (*playbook.bullets, made)})
    found = {each.id: Standing(each) for each in playbook.bullets if each.id in named_ids(delta)}
    stands = after(delta, found, "")
    if isinstance(stands, Refused):
        return stands
    now: dict[str, Bullet] = {each.bullet.id: each.bullet for each in stands}
    bullets = tuple(now.get(each.id, each) for each in playbook.bullets)
    return playbook.model_copy(update={"bullets": bullets})


def _next_id(playbook: Playbook, delta: Delta) -> str:
    slug = slug_of(section_of(delta.section), delta.scope)
    parts = (id_parts(each.id, delta.scope) for each in playbook.bullets)
    last = max((found[1] for found in parts if found is not None and found[0] == slug), default=0)
    return bullet_id(slug, last + 1)

"""Changes of a playbook: how the bullets that a change names stand after it, and after it is taken back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from daiku.dataclass import dataclass, replace
from daiku.domain.playbook import Bullet, Delta
from daiku.playbook.rules.refused import (
    Refused,
    changed_since,
    empty,
    inactive,
    incomplete,
    no_bullet,
    too_long,
)
from daiku.playbook.rules.sections import MOST_CHARACTERS, MOST_COUNTED, keywords_of, section_of
from daiku.texts.rules.patterns import lazy

_FIELDS = ("section", "content", "keywords", "active")
"""What a change of a bullet changes and its undoing brings back; counters are sums of what was observed."""

_TIME = lazy(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{5,18}(?:Z|[+-][0-9:]{4,6})?")


@dataclass(frozen=True, slots=True)
class Standing:
    """How a bullet stands: as people see it, and what the store alone knows of it."""

    bullet: Bullet
    version: int = 1
    """Rises with every change of its text."""
    into: str = ""
    """The bullet that it was merged into: what runs showed of this one counts there."""
    gone: bool = False
    """Its adding was undone: nobody sees it, and its id is not given again."""
    anew: bool = False
    """Its text was just made another one that does not say what the one before said: nothing is known of it yet."""


Standings: TypeAlias = Mapping[str, Standing]
"""Bullets by their ids."""


def added(delta: Delta, new_id: str, now: str) -> Bullet:
    """The bullet that an `add` makes. An import hands in, as `after`, what it brings: counters, times, who wrote it
    first, and whether it is active."""
    section = section_of(delta.section)
    if delta.origin == "import" and delta.after:
        brought = delta.after[0]
        return brought.model_copy(
            update={
                "id": new_id,
                "section": section,
                "content": delta.content,
                "keywords": keywords_of(delta.keywords),
                "helpful": min(brought.helpful, MOST_COUNTED),
                "harmful": min(brought.harmful, MOST_COUNTED),
                "created_at": brought.created_at if _TIME.fullmatch(brought.created_at) else now,
                "updated_at": brought.updated_at if _TIME.fullmatch(brought.updated_at) else now,
            }
        )
    return Bullet(
        id=new_id,
        section=section,
        content=delta.content,
        keywords=keywords_of(delta.keywords),
        origin=delta.origin,
        created_at=now,
        updated_at=now,
    )


def after(delta: Delta, found: Standings, now: str) -> tuple[Standing, ...] | Refused:
    """How everything that `delta` touches, which is no `add`, stands after it. `found` are the bullets that it names, as
    far as there are any."""
    name = kept_id(delta)
    if not name:
        return incomplete()
    stands = found.get(name)
    if stands is None or stands.gone:
        return no_bullet(name)
    match delta.type:
        case "update":
            return _updated(delta, stands, now)
        case "merge":
            return _merged(delta, stands, found, now)
        case "remove":
            return (_with(stands, now, active=False),)
        case "restore":
            return (replace(_with(stands, now, active=True), into=""),)
        case "tag" if delta.tag is not None:
            return (stands,)
        case _:
            return incomplete()


def undone(
    delta: Delta, found: Standings, later: Sequence[Delta], into: Mapping[str, str], now: str
) -> tuple[Standing, ...] | Refused:
    """How everything that `delta` touched stands once it is taken back: what it changed is as before, the rest stays as
    it is. Refused where something of it was changed once more by one of `later`, which hold still. `into`: what
    bullets had been merged into before it."""
    was = {bullet.id: bullet for bullet in delta.before}
    results: list[Standing] = []
    for made in delta.after:
        stands, before = found.get(made.id), was.get(made.id)
        if stands is None or stands.gone:
            return no_bullet(made.id)
        touching = [other for other in later if any(each.id == made.id for each in other.after)]
        changed = _FIELDS if before is None else _changed(before, made)
        if (
            (before is None and touching)
            or any(name in changed for other in touching for name in _changed_by(other, made.id))
            or any(getattr(stands.bullet, name) != getattr(made, name) for name in changed)
        ):
            return changed_since(made.id)
        if before is None:
            results.append(replace(_with(stands, now, active=False), gone=True))
            continue
        if not changed:
            continue
        time = before.updated_at if stands.bullet.updated_at == made.updated_at else now
        back = _with(stands, time, **{name: getattr(before, name) for name in changed})
        results.append(replace(back, into=into.get(made.id, "")) if "active" in changed else back)
    return tuple(results)


def _changed(before: Bullet, made: Bullet) -> tuple[str, ...]:
    """The fields that a change gave another value."""
    return tuple(name for name in _FIELDS if getattr(before, name) != getattr(made, name))


def _changed_by(delta: Delta, name: str) -> tuple[str, ...]:
    """The fields of the bullet `name` that a change gave another value."""
    made = next(bullet for bullet in delta.after if bullet.id == name)
    before = next((bullet for bullet in delta.before if bullet.id == name), None)
    return _FIELDS if before is None else _changed(before, made)


def named_ids(delta: Delta) -> tuple[str, ...]:
    """The ids of all bullets that a change names, the one that it is of first."""
    return tuple(dict.fromkeys(name for name in (delta.bullet_id, *delta.bullet_ids) if name))


def kept_id(delta: Delta) -> str:
    """The bullet that a change is of: of a merge without one the first of those that are merged."""
    return next(iter(named_ids(delta)), "")


def wrong_text(content: str) -> Refused | None:
    """Why a text cannot be that of a bullet."""
    if not content.strip():
        return empty()
    return too_long(len(content)) if len(content) > MOST_CHARACTERS else None


def _updated(delta: Delta, stands: Standing, now: str) -> tuple[Standing, ...] | Refused:
    """A field that the change leaves empty stays as it is, unless it says that there are to be no keywords."""
    if delta.content and (wrong := wrong_text(delta.content)):
        return wrong
    if not (delta.content or delta.section or delta.keywords or delta.no_keywords):
        return incomplete()
    made = _told(delta, stands, keywords_after(delta, stands.bullet), now)
    return (replace(made, anew=not _means(made.bullet.content, stands.bullet.content)),)


def keywords_after(delta: Delta, bullet: Bullet) -> tuple[str, ...]:
    """The keywords of a bullet after an update of it."""
    return () if delta.no_keywords else delta.keywords or bullet.keywords


def _means(new: str, old: str) -> bool:
    """Return True if a text says what the one before said, in other words perhaps."""
    from daiku.playbook.rules.lessons.similar import near_duplicates, says_the_same  # when used

    return new == old or says_the_same(new, old, near_duplicates)


def _merged(delta: Delta, stands: Standing, found: Standings, now: str) -> tuple[Standing, ...] | Refused:
    """The first one is kept, with the keywords of all; the others rest, and what runs showed of them counts for it."""
    first, *others = named_ids(delta)
    if not others:
        return incomplete()
    if delta.content and (wrong := wrong_text(delta.content)):
        return wrong
    taken: list[Standing] = []
    for name in others:
        other = found.get(name)
        if other is None or other.gone:
            return no_bullet(name)
        taken.append(other)
    for each in (stands, *taken):
        if not each.bullet.active:
            return inactive(each.bullet.id)
    words = (
        *stands.bullet.keywords,
        *delta.keywords,
        *(word for one in taken for word in one.bullet.keywords),
    )
    kept = _told(delta, stands, words, now)
    return (kept, *(replace(_with(other, now, active=False), into=first) for other in taken))


def _told(delta: Delta, stands: Standing, keywords: tuple[str, ...], now: str) -> Standing:
    return _with(
        stands,
        now,
        content=delta.content or stands.bullet.content,
        section=section_of(delta.section) if delta.section else stands.bullet.section,
        keywords=keywords_of(keywords),
    )


def _with(stands: Standing, now: str, **fields: object) -> Standing:
    """The same with other fields, as it is where they are no others, and with a new version where its text is another."""
    if all(getattr(stands.bullet, name) == value for name, value in fields.items()):
        return stands
    bullet = stands.bullet.model_copy(update={**fields, "updated_at": now})
    rises = bullet.content != stands.bullet.content
    return replace(stands, bullet=bullet, version=stands.version + rises)

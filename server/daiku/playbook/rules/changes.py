"""Apply and undo changes of bullets. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from daiku.dataclass import dataclass, replace
from daiku.domain.playbook import Bullet, Delta
from daiku.playbook.rules.sections import MOST_CHARACTERS, MOST_COUNTED, normalize_keywords, normalize_section
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import Text, text

_FIELDS = ("section", "content", "keywords", "active")
"""Fields that a change sets and an undo restores. Counters are sums of observations."""

_TIME = lazy(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{5,18}(?:Z|[+-][0-9:]{4,6})?")


@dataclass(frozen=True, slots=True)
class BulletState:
    """A bullet with the state that only its store knows."""

    bullet: Bullet
    version: int = 1
    """Incremented with every change of the text."""
    merged_into: str = ""
    """Id of the bullet that it was merged into; its observations count there."""
    is_deleted: bool = False
    """Whether its addition was undone. It is hidden, and its id is not assigned again."""
    has_new_meaning: bool = False
    """Whether the last change gave its text another meaning, so that earlier observations do not count."""


BulletStates: TypeAlias = Mapping[str, BulletState]
"""Bullet states by bullet id."""


def build_bullet(delta: Delta, new_id: str, now: str) -> Bullet:
    """Return the bullet that an `add` creates.

    An import passes its bullet as `after`, with counters, times, origin, and whether it is active.
    """
    section = normalize_section(delta.section)
    if delta.origin == "import" and delta.after:
        imported = delta.after[0]
        return imported.model_copy(
            update={
                "id": new_id,
                "section": section,
                "content": delta.content,
                "keywords": normalize_keywords(delta.keywords),
                "helpful": min(imported.helpful, MOST_COUNTED),
                "harmful": min(imported.harmful, MOST_COUNTED),
                "created_at": imported.created_at if _TIME.fullmatch(imported.created_at) else now,
                "updated_at": imported.updated_at if _TIME.fullmatch(imported.updated_at) else now,
            }
        )
    return Bullet(
        id=new_id,
        section=section,
        content=delta.content,
        keywords=normalize_keywords(delta.keywords),
        origin=delta.origin,
        created_at=now,
        updated_at=now,
    )


def apply_delta(delta: Delta, states: BulletStates, now: str) -> tuple[BulletState, ...] | ChangeRefusal:
    """Apply a change other than `add` to the bullets that it names; return the new state of each."""
    target = get_target_id(delta)
    if not target:
        return refuse_incomplete()
    state = states.get(target)
    if state is None or state.is_deleted:
        return refuse_unknown_bullet(target)
    match delta.type:
        case "update":
            return _update(delta, state, now)
        case "merge":
            return _merge(delta, state, states, now)
        case "remove":
            return (_with_fields(state, now, active=False),)
        case "restore":
            return (replace(_with_fields(state, now, active=True), merged_into=""),)
        case "tag" if delta.tag is not None:
            return (state,)
        case _:
            return refuse_incomplete()


def undo_delta(
    delta: Delta, states: BulletStates, later: Sequence[Delta], merged_into: Mapping[str, str], now: str
) -> tuple[BulletState, ...] | ChangeRefusal:
    """Undo an applied change; return the new state of each bullet that it touched.

    Fields that the change set get their earlier values; others stay. Refused if one of the `later` changes,
    which are still applied, set the same field. `merged_into`: what bullets had been merged into before the change.
    """
    bullets_before = {bullet.id: bullet for bullet in delta.before}
    restored_states: list[BulletState] = []
    for bullet_after in delta.after:
        state, before = states.get(bullet_after.id), bullets_before.get(bullet_after.id)
        if state is None or state.is_deleted:
            return refuse_unknown_bullet(bullet_after.id)
        touching = [other for other in later if any(each.id == bullet_after.id for each in other.after)]
        changed = _FIELDS if before is None else _list_changed_fields(before, bullet_after)
        if (
            (before is None and touching)
            or any(
                name in changed for other in touching for name in _list_fields_set_by(other, bullet_after.id)
            )
            or any(getattr(state.bullet, name) != getattr(bullet_after, name) for name in changed)
        ):
            return refuse_changed(bullet_after.id)
        if before is None:
            restored_states.append(replace(_with_fields(state, now, active=False), is_deleted=True))
            continue
        if not changed:
            continue
        time = before.updated_at if state.bullet.updated_at == bullet_after.updated_at else now
        restored = _with_fields(state, time, **{name: getattr(before, name) for name in changed})
        restored_states.append(
            replace(restored, merged_into=merged_into.get(bullet_after.id, ""))
            if "active" in changed
            else restored
        )
    return tuple(restored_states)


def _list_changed_fields(before: Bullet, after: Bullet) -> tuple[str, ...]:
    """Return the fields that a change set to another value."""
    return tuple(name for name in _FIELDS if getattr(before, name) != getattr(after, name))


def _list_fields_set_by(delta: Delta, name: str) -> tuple[str, ...]:
    """Return the fields of the bullet `name` that a change set to another value."""
    after = next(bullet for bullet in delta.after if bullet.id == name)
    before = next((bullet for bullet in delta.before if bullet.id == name), None)
    return _FIELDS if before is None else _list_changed_fields(before, after)


def list_ids(delta: Delta) -> tuple[str, ...]:
    """Return the ids of all bullets that a change names, its target first."""
    return tuple(dict.fromkeys(name for name in (delta.bullet_id, *delta.bullet_ids) if name))


def get_target_id(delta: Delta) -> str:
    """Return the id of the target bullet; for a merge without one, the first of the merged bullets."""
    return next(iter(list_ids(delta)), "")


def check_text(content: str) -> ChangeRefusal | None:
    """Return why a text cannot be the content of a bullet; None if it can."""
    if not content.strip():
        return refuse_empty()
    return refuse_too_long(len(content)) if len(content) > MOST_CHARACTERS else None


def _update(delta: Delta, state: BulletState, now: str) -> tuple[BulletState, ...] | ChangeRefusal:
    """Update a bullet. Empty fields of the change leave the bullet's fields, except with `no_keywords`."""
    if delta.content and (refusal := check_text(delta.content)):
        return refusal
    if not (delta.content or delta.section or delta.keywords or delta.no_keywords):
        return refuse_incomplete()
    updated = _with_text(delta, state, resolve_keywords(delta, state.bullet), now)
    return (
        replace(updated, has_new_meaning=not _has_same_meaning(updated.bullet.content, state.bullet.content)),
    )


def resolve_keywords(delta: Delta, bullet: Bullet) -> tuple[str, ...]:
    """Return the keywords of a bullet after an update."""
    return () if delta.no_keywords else delta.keywords or bullet.keywords


def _has_same_meaning(new: str, old: str) -> bool:
    """Return True if both texts say the same, possibly in other words."""
    from daiku.playbook.rules.similar import are_near_duplicates, have_same_meaning  # when used

    return new == old or have_same_meaning(new, old, are_near_duplicates)


def _merge(
    delta: Delta, state: BulletState, states: BulletStates, now: str
) -> tuple[BulletState, ...] | ChangeRefusal:
    """Merge bullets: the first one stays, with the keywords of all; the others become inactive."""
    first, *others = list_ids(delta)
    if not others:
        return refuse_incomplete()
    if delta.content and (refusal := check_text(delta.content)):
        return refusal
    merged: list[BulletState] = []
    for name in others:
        other = states.get(name)
        if other is None or other.is_deleted:
            return refuse_unknown_bullet(name)
        merged.append(other)
    for each in (state, *merged):
        if not each.bullet.active:
            return refuse_inactive(each.bullet.id)
    keywords = (
        *state.bullet.keywords,
        *delta.keywords,
        *(word for one in merged for word in one.bullet.keywords),
    )
    target = _with_text(delta, state, keywords, now)
    return (target, *(replace(_with_fields(other, now, active=False), merged_into=first) for other in merged))


def _with_text(delta: Delta, state: BulletState, keywords: tuple[str, ...], now: str) -> BulletState:
    """Return the state with the content, section, and keywords of a change."""
    return _with_fields(
        state,
        now,
        content=delta.content or state.bullet.content,
        section=normalize_section(delta.section) if delta.section else state.bullet.section,
        keywords=normalize_keywords(keywords),
    )


def _with_fields(state: BulletState, now: str, **fields: object) -> BulletState:
    """Return the state with other field values; a changed text increments the version."""
    if all(getattr(state.bullet, name) == value for name, value in fields.items()):
        return state
    bullet = state.bullet.model_copy(update={**fields, "updated_at": now})
    is_new_text = bullet.content != state.bullet.content
    return replace(state, bullet=bullet, version=state.version + is_new_text)


RefusalKind: TypeAlias = Literal["unknown", "inactive", "changed", "decided", "empty", "long", "incomplete"]
"""Reasons for a refusal.

`unknown`: no such bullet or change; `inactive`: the bullet is inactive; `changed`: it was changed since;
`decided`: the change was decided already; `empty`, `long`: the text is empty or too long; `incomplete`: the
change names no target.
"""


@dataclass(frozen=True, slots=True)
class ChangeRefusal:
    """A refused change. Nothing of it was applied."""

    kind: RefusalKind
    message: Text


def refuse_unknown_bullet(name: str) -> ChangeRefusal:
    return ChangeRefusal("unknown", text("playbook.no_bullet", id=repr(name)))


def refuse_unknown_change(name: str) -> ChangeRefusal:
    return ChangeRefusal("unknown", text("playbook.no_change", id=repr(name)))


def refuse_inactive(name: str) -> ChangeRefusal:
    return ChangeRefusal("inactive", text("playbook.inactive", id=name))


def refuse_changed(name: str) -> ChangeRefusal:
    return ChangeRefusal("changed", text("playbook.changed_since", id=name))


def refuse_decided(name: str) -> ChangeRefusal:
    return ChangeRefusal("decided", text("playbook.decided", id=name))


def refuse_not_applied(name: str) -> ChangeRefusal:
    return ChangeRefusal("decided", text("playbook.not_applied", id=name))


def refuse_empty() -> ChangeRefusal:
    return ChangeRefusal("empty", text("playbook.empty"))


def refuse_too_long(length: int) -> ChangeRefusal:
    return ChangeRefusal("long", text("playbook.too_long", length=length, most=MOST_CHARACTERS))


def refuse_incomplete() -> ChangeRefusal:
    return ChangeRefusal("incomplete", text("playbook.incomplete"))

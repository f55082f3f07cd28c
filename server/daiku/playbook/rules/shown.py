"""Diffs of the texts that a change of the playbook makes or made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from daiku.domain.playbook import Bullet, Delta
from daiku.edits.rules.changes.diff import compute_line_ops
from daiku.playbook.rules.changes import resolve_keywords
from daiku.texts.text import render, text

_MADE = ("applied", "undone")
_BulletText: TypeAlias = tuple[str, tuple[str, ...]]
"""Text and keywords of a bullet."""
_NOTHING: _BulletText = ("", ())


def render_diff(delta: Delta, now: Mapping[str, Bullet], language: str) -> str:
    """Return the diff that `delta` made, or would make to the bullets as they are `now`.

    Below `@@ id @@` are the removed, added, and unchanged lines. Keywords are the last line of a bullet,
    labeled in `language`. Empty if no text changes.
    """
    changes = _iter_applied(delta) if delta.status in _MADE else _iter_pending(delta, now)
    diffs = ((name, _format_text(old, language), _format_text(new, language)) for name, old, new in changes)
    return "".join(_format_diff(name, old, new) for name, old, new in diffs if old != new)


def list_touched_ids(delta: Delta) -> tuple[str, ...]:
    """Return the distinct ids of the bullets that `delta` names; a pending addition has none."""
    if delta.type == "add" and delta.status not in _MADE:
        return ()
    names = (delta.bullet_id, *delta.bullet_ids, *(each.id for each in (*delta.before, *delta.after)))
    return tuple(dict.fromkeys(name for name in names if name))


def _iter_applied(delta: Delta) -> Iterator[tuple[str, _BulletText, _BulletText]]:
    before = {each.id: _get_text(each) for each in delta.before}
    after = {each.id: _get_text(each) for each in delta.after}
    for name in dict.fromkeys((*before, *after)):
        yield name, before.get(name, _NOTHING), after.get(name, _NOTHING)


def _iter_pending(delta: Delta, now: Mapping[str, Bullet]) -> Iterator[tuple[str, _BulletText, _BulletText]]:
    bullet = now.get(delta.bullet_id)
    old = _NOTHING if bullet is None else _get_text(bullet)
    match delta.type:
        case "add":
            yield delta.section, _NOTHING, (delta.content, delta.keywords)
        case "update" | "merge" if bullet is not None:
            content = delta.content or bullet.content
            yield bullet.id, old, (content, resolve_keywords(delta, bullet))
        case "remove":
            yield delta.bullet_id, old, _NOTHING
        case "restore" if bullet is not None:
            yield bullet.id, old, (bullet.content, bullet.keywords)
        case _:
            pass
    if delta.type == "merge":
        for name in delta.bullet_ids:
            if name != delta.bullet_id and name in now:
                yield name, _get_text(now[name]), _NOTHING


def _get_text(bullet: Bullet) -> _BulletText:
    """Return the text of an active bullet that runs receive; empty for an inactive one."""
    return (bullet.content, bullet.keywords) if bullet.active else _NOTHING


def _format_text(bullet_text: _BulletText, language: str) -> str:
    content, keywords = bullet_text
    if not keywords or not content:
        return content
    return f"{content}\n{render(text('playbook.keywords', words=', '.join(keywords)), language)}"


def _format_diff(name: str, old: str, new: str) -> str:
    before, after = (text.split("\n") if text else [] for text in (old, new))
    marked = [f"@@ {name} @@"]
    for op, i, j, k, m in compute_line_ops(before, after):
        if op == "equal":
            marked += [f" {line}" for line in before[i:j]]
        else:
            marked += [f"-{line}" for line in before[i:j]]
            marked += [f"+{line}" for line in after[k:m]]
    return "".join(f"{line}\n" for line in marked)

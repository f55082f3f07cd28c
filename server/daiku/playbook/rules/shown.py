"""The difference that a change of the playbook makes or made to texts, as lines that people read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from daiku.domain.playbook import Bullet, Delta
from daiku.edits.rules.changes.diff import line_ops
from daiku.playbook.rules.changes import keywords_after
from daiku.texts.text import render, text

_MADE = ("applied", "undone")
_Said: TypeAlias = tuple[str, tuple[str, ...]]
"""The text of a bullet and its keywords."""
_NOTHING: _Said = ("", ())


def diff_of(delta: Delta, now: Mapping[str, Bullet], language: str) -> str:
    """What `delta` did, or would do to the bullets as they are `now`: under `@@ id @@` the lines that go and those that
    come, and what stays between them; keywords are the last line of a bullet, labelled in `language`. Empty where no text
    changes."""
    changes = _done(delta) if delta.status in _MADE else _wanted(delta, now)
    told = ((name, _told(old, language), _told(new, language)) for name, old, new in changes)
    return "".join(_lines(name, old, new) for name, old, new in told if old != new)


def touched_by(delta: Delta) -> tuple[str, ...]:
    """The ids of the bullets that `delta` speaks of, each once; what is only to be added has none."""
    if delta.type == "add" and delta.status not in _MADE:
        return ()
    named = (delta.bullet_id, *delta.bullet_ids, *(each.id for each in (*delta.before, *delta.after)))
    return tuple(dict.fromkeys(name for name in named if name))


def _done(delta: Delta) -> Iterator[tuple[str, _Said, _Said]]:
    before = {each.id: _text(each) for each in delta.before}
    after = {each.id: _text(each) for each in delta.after}
    for name in dict.fromkeys((*before, *after)):
        yield name, before.get(name, _NOTHING), after.get(name, _NOTHING)


def _wanted(delta: Delta, now: Mapping[str, Bullet]) -> Iterator[tuple[str, _Said, _Said]]:
    bullet = now.get(delta.bullet_id)
    old = _NOTHING if bullet is None else _text(bullet)
    match delta.type:
        case "add":
            yield delta.section, _NOTHING, (delta.content, delta.keywords)
        case "update" | "merge" if bullet is not None:
            content = delta.content or bullet.content
            yield bullet.id, old, (content, keywords_after(delta, bullet))
        case "remove":
            yield delta.bullet_id, old, _NOTHING
        case "restore" if bullet is not None:
            yield bullet.id, old, (bullet.content, bullet.keywords)
        case _:
            pass
    if delta.type == "merge":
        for name in delta.bullet_ids:
            if name != delta.bullet_id and name in now:
                yield name, _text(now[name]), _NOTHING


def _text(bullet: Bullet) -> _Said:
    """What a run can be told of the bullet: nothing of one that is not active."""
    return (bullet.content, bullet.keywords) if bullet.active else _NOTHING


def _told(said: _Said, language: str) -> str:
    content, keywords = said
    if not keywords or not content:
        return content
    return f"{content}\n{render(text('playbook.keywords', words=', '.join(keywords)), language)}"


def _lines(name: str, old: str, new: str) -> str:
    before, after = (text.split("\n") if text else [] for text in (old, new))
    marked = [f"@@ {name} @@"]
    for op, i, j, k, m in line_ops(before, after):
        if op == "equal":
            marked += [f" {line}" for line in before[i:j]]
        else:
            marked += [f"-{line}" for line in before[i:j]]
            marked += [f"+{line}" for line in after[k:m]]
    return "".join(f"{line}\n" for line in marked)

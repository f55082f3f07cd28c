"""Changes of a playbook, made in one line: what a test says of a store."""

from __future__ import annotations

from daiku.domain.playbook import Bullet, Delta
from daiku.playbook.rules.changes import ChangeRefusal
from daiku.playbook.store import PlaybookStore


def applied(done: Delta | ChangeRefusal) -> Delta:
    """The change, which was made."""
    assert isinstance(done, Delta), done
    return done


def refused(done: Delta | ChangeRefusal) -> str:
    """The kind of the refusal."""
    assert isinstance(done, ChangeRefusal), done
    return done.kind


def add(store: PlaybookStore, content: str, section: str = "common_mistakes") -> str:
    """A new bullet; its id."""
    return applied(store.apply(Delta(id="", type="add", section=section, content=content))).bullet_id


def update(store: PlaybookStore, at: str, content: str) -> Delta:
    return applied(store.apply(Delta(id="", type="update", bullet_id=at, content=content)))


def remove(store: PlaybookStore, at: str) -> Delta:
    return applied(store.apply(Delta(id="", type="remove", bullet_id=at)))


def merge(store: PlaybookStore, *ids: str, content: str = "") -> Delta:
    return applied(store.apply(Delta(id="", type="merge", bullet_ids=ids, content=content)))


def bullet(store: PlaybookStore, at: str) -> Bullet:
    found = store.get(at)
    assert found is not None
    return found

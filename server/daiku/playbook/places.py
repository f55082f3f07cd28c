"""Finds the playbook of a repository, by its git folder and its first commit, which are noted when it is first seen."""

from __future__ import annotations

from pathlib import Path

from daiku.domain.base import long_id
from daiku.playbook.commits import UnreadableError, first_commit, holds
from daiku.playbook.tables import SCHEMA
from daiku.store.database import Database
from daiku.workspace.repository import GitPlaces, git_places

_SCHEMA = """
CREATE TABLE IF NOT EXISTS playbook_places(
  place TEXT PRIMARY KEY, root TEXT NOT NULL, key TEXT NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS playbook_places_of ON playbook_places(root);
"""
"""`place` is a git folder that work trees share, or a folder without one; `root` its first commit (empty: none yet)."""
_FIND = "SELECT root, key FROM playbook_places WHERE place = ?"
_OF_ROOT = "SELECT MIN(key) FROM playbook_places WHERE root = ? AND place <> ?"
_TAKEN = "SELECT 1 FROM playbook_places WHERE key = ?"
_WRITTEN = "SELECT 1 FROM playbooks WHERE scope = 'repository' AND key = ?"
_KEEP = (
    "INSERT INTO playbook_places VALUES(?, ?, ?)"
    " ON CONFLICT(place) DO UPDATE SET root = excluded.root, key = excluded.key"
)
_UNREADABLE = "?"
"""Stands for the first commit of a repository whose history cannot be read: its folder alone tells what it is."""


def playbook_key(database: Database, roots: tuple[Path, ...]) -> str:
    """The key of the playbook of these folders: that of the first one that lies in a repository, else of the first.
    What is at a place for the first time is noted. Raises DaikuError."""
    database.prepare(SCHEMA + _SCHEMA)
    places = _places(roots)
    place = str(places.common if places is not None else roots[0].resolve())
    noted = database.first(_FIND, (place,))
    if noted is not None and _still(places, noted[0]):
        return str(noted[1])
    root = _first_commit(places)
    if noted is not None and noted[0] == root:
        return str(noted[1])
    with database.transaction():
        # What it was before it had a commit it is still; what has another first commit is another repository.
        own = str(noted[1]) if noted is not None and not noted[0] else ""
        key = _chosen(database, place, root, own)
        database.write(_KEEP, (place, root, key))
    return key


def _places(roots: tuple[Path, ...]) -> GitPlaces | None:
    """The first repository that one of the folders lies in, and that is its own."""
    # Links among its objects lead to nothing that is read as anything but a commit.
    found = (git_places(root, roots, objects=False) for root in roots)
    return next((places for places in found if isinstance(places, GitPlaces)), None)


def _still(places: GitPlaces | None, root: str) -> bool:
    """Whether what is there is what was noted: it holds that first commit. What had none may have one now."""
    return root == _UNREADABLE or (places is not None and bool(root) and holds(places.common, root))


def _first_commit(places: GitPlaces | None) -> str:
    try:
        return "" if places is None else first_commit(places.common, places.folder)
    except UnreadableError:
        return _UNREADABLE


def _chosen(database: Database, place: str, root: str, own: str) -> str:
    """The playbook of a place: its own one once something is written there; that of another place with the same
    first commit; a new one."""
    if own and database.first(_WRITTEN, (own,)) is not None:
        return own
    known = database.first(_OF_ROOT, (root, place))[0] if root not in ("", _UNREADABLE) else None
    if known is not None:
        return str(known)
    if own:
        return own
    key = f"git:{root}" if root not in ("", _UNREADABLE) else f"folder:{place}"
    return key if database.first(_TAKEN, (key,)) is None else f"{key}#{long_id('playbook')}"

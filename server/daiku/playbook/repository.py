"""The playbooks of a workspace: the user's own, and that of its repository, known by git folder and first commit."""

from __future__ import annotations

import getpass
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.domain.base import long_id
from daiku.playbook.store import PlaybookStore
from daiku.playbook.tables import SCHEMA
from daiku.store.database import Database
from daiku.tools.git.ownrun import COMMIT_ID, GIT_UNAVAILABLE, read_git
from daiku.workspace.repository import GitPlaces, find_git_places

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
"""Placeholder for the first commit if git cannot read the history: the folder identifies the repository."""
_SECONDS = 10.0
"""Timeout in seconds of one git call."""
_TIPS = ("refs/remotes/origin/HEAD", "refs/heads/main", "refs/heads/master", "main-worktree/HEAD", "HEAD")
"""Refs of the shared history, best first. `HEAD` is that of a work tree."""


@dataclass(frozen=True, slots=True)
class PlaybookStores:
    """The stored playbooks of a workspace: its repository's (None without a folder), and the user's."""

    repository: PlaybookStore | None
    user: PlaybookStore


def open_playbooks(database: Database, roots: tuple[Path, ...]) -> PlaybookStores:
    """Open the playbooks of these folders in a database. Raises DaikuError.

    A repository is identified by the git folder that its work trees share and by its first commit, a folder
    without git by its path.
    """
    repository = PlaybookStore(database, "repository", _find_key(database, roots)) if roots else None
    return PlaybookStores(repository, PlaybookStore(database, "user", _get_user()))


def _get_user() -> str:
    """Return the user's name, the key of the user's playbook."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # an account without a name, as in some containers
        return ""


def _find_key(database: Database, roots: tuple[Path, ...]) -> str:
    """Return the playbook key of the first folder that lies in a repository, else of the first folder.

    Records a new place. Raises DaikuError.
    """
    database.prepare(SCHEMA + _SCHEMA)
    places = _find_places(roots)
    place = str(places.common if places is not None else roots[0].resolve())
    stored = database.first(_FIND, (place,))
    if stored is not None and _is_same_repository(places, roots, stored[0]):
        return str(stored[1])
    root = find_first_commit(places, roots) if places is not None else ""
    if stored is not None and stored[0] == root:
        return str(stored[1])
    with database.transaction():
        # A place keeps its key with its first commit; another first commit means another repository.
        own_key = str(stored[1]) if stored is not None and not stored[0] else ""
        key = _choose_key(database, place, root, own_key)
        database.write(_KEEP, (place, root, key))
    return key


def _find_places(roots: tuple[Path, ...]) -> GitPlaces | None:
    """Return the first repository that one of the folders lies in and that belongs to the workspace."""
    # Linked objects are harmless here: git reads only commits.
    candidates = (find_git_places(root, roots, objects=False) for root in roots)
    return next((places for places in candidates if isinstance(places, GitPlaces)), None)


def _is_same_repository(places: GitPlaces | None, roots: tuple[Path, ...], root: str) -> bool:
    """Return True if the repository holds the recorded first commit, or git cannot say."""
    if root == _UNREADABLE:
        return True
    if places is None or not root:  # a repository without a commit may have one now
        return False
    code, _ = read_git(places.folder, ("cat-file", "-e", root), roots, seconds=_SECONDS)
    return code in (0, GIT_UNAVAILABLE)


def find_first_commit(places: GitPlaces, roots: tuple[Path, ...]) -> str:
    """Return the first commit of a repository, following first parents.

    Empty without a commit or in a shallow clone; _UNREADABLE if git fails, is not installed, or times out.
    """
    if (places.common / "shallow").exists():
        return ""
    names = "".join(f"{name}^{{commit}}\n" for name in _TIPS)
    code, kinds = read_git(places.folder, ("cat-file", "--batch-check"), roots, stdin=names, seconds=_SECONDS)
    if code:
        return _UNREADABLE
    tip = next((line.split()[0] for line in kinds.splitlines() if " commit " in line), "")
    if not tip:  # HEAD may still name a commit that is damaged
        code, _ = read_git(
            places.folder, ("rev-parse", "--verify", "--quiet", "HEAD"), roots, seconds=_SECONDS
        )
        return "" if code else _UNREADABLE
    history = ("rev-list", "--first-parent", "--max-parents=0", tip)
    code, commits = read_git(places.folder, history, roots, seconds=_SECONDS)
    first = commits.strip()
    return first if code == 0 and COMMIT_ID.fullmatch(first) else _UNREADABLE


def _choose_key(database: Database, place: str, root: str, own_key: str) -> str:
    """Return the playbook key of a place.

    That is its own key if its playbook is not empty, else that of a place with the same first commit, else a
    new one.
    """
    if own_key and database.first(_WRITTEN, (own_key,)) is not None:
        return own_key
    shared_key = database.first(_OF_ROOT, (root, place))[0] if root not in ("", _UNREADABLE) else None
    if shared_key is not None:
        return str(shared_key)
    if own_key:
        return own_key
    key = f"git:{root}" if root not in ("", _UNREADABLE) else f"folder:{place}"
    return key if database.first(_TAKEN, (key,)) is None else f"{key}#{long_id('playbook')}"

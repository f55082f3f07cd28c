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
"""Stands for the first commit of a repository whose history git cannot read: its folder identifies it."""
_SECONDS = 10.0
"""Seconds that one call of git may take."""
_TIPS = ("refs/remotes/origin/HEAD", "refs/heads/main", "refs/heads/master", "main-worktree/HEAD", "HEAD")
"""Names of the history that all copies share, best first. `HEAD` is that of a work tree."""


@dataclass(frozen=True, slots=True)
class Playbooks:
    """The playbooks of a workspace: that of its repository (None: it has no folder) and the person's own."""

    repository: PlaybookStore | None
    user: PlaybookStore


def open_playbooks(database: Database, roots: tuple[Path, ...]) -> Playbooks:
    """The playbooks of these folders, in a database. The repository is known by the git folder that its work trees
    share and by its first commit; a folder without git by where it is. Raises DaikuError."""
    repository = PlaybookStore(database, "repository", _find_key(database, roots)) if roots else None
    return Playbooks(repository, PlaybookStore(database, "user", _person()))


def _person() -> str:
    """Whose the person's own playbook is: a server keeps those of several."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # an account without a name, as in some containers
        return ""


def _find_key(database: Database, roots: tuple[Path, ...]) -> str:
    """Return the playbook key of the first folder that lies in a repository, else of the first folder.

    Records a place that is seen for the first time. Raises DaikuError."""
    database.prepare(SCHEMA + _SCHEMA)
    places = _find_places(roots)
    place = str(places.common if places is not None else roots[0].resolve())
    noted = database.first(_FIND, (place,))
    if noted is not None and _is_still(places, roots, noted[0]):
        return str(noted[1])
    root = find_first_commit(places, roots) if places is not None else ""
    if noted is not None and noted[0] == root:
        return str(noted[1])
    with database.transaction():
        # What it was before it had a commit it is still; what has another first commit is another repository.
        own = str(noted[1]) if noted is not None and not noted[0] else ""
        key = _choose_key(database, place, root, own)
        database.write(_KEEP, (place, root, key))
    return key


def _find_places(roots: tuple[Path, ...]) -> GitPlaces | None:
    """Return the first repository that one of the folders lies in and that belongs to the workspace."""
    # Links among its objects are not looked for: git reads nothing but commits here.
    found = (git_places(root, roots, objects=False) for root in roots)
    return next((places for places in found if isinstance(places, GitPlaces)), None)


def _is_still(places: GitPlaces | None, roots: tuple[Path, ...], root: str) -> bool:
    """Return True if the repository holds the recorded first commit, or git cannot say."""
    if root == _UNREADABLE:
        return True
    if places is None or not root:  # a repository without a commit may have one now
        return False
    code, _ = read_git(places.folder, ("cat-file", "-e", root), roots, seconds=_SECONDS)
    return code in (0, GIT_UNAVAILABLE)


def find_first_commit(places: GitPlaces, roots: tuple[Path, ...]) -> str:
    """Return the commit that a repository began with, following first parents.

    Empty if there is none yet or only the end of the history is there (a shallow clone); _UNREADABLE if git fails, is
    not installed, or takes too long."""
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
    code, found = read_git(places.folder, history, roots, seconds=_SECONDS)
    first = found.strip()
    return first if code == 0 and COMMIT_ID.fullmatch(first) else _UNREADABLE


def _choose_key(database: Database, place: str, root: str, own: str) -> str:
    """Return the playbook key of a place: its own once something is written there, that of another place with the
    same first commit, or a new one."""
    if own and database.first(_WRITTEN, (own,)) is not None:
        return own
    known = database.first(_OF_ROOT, (root, place))[0] if root not in ("", _UNREADABLE) else None
    if known is not None:
        return str(known)
    if own:
        return own
    key = f"git:{root}" if root not in ("", _UNREADABLE) else f"folder:{place}"
    return key if database.first(_TAKEN, (key,)) is None else f"{key}#{long_id('playbook')}"

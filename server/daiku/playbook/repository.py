"""The playbooks of a workspace: that of its repository, which copies and moved folders share, and the person's own."""

from __future__ import annotations

import getpass
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.playbook.places import playbook_key
from daiku.playbook.store import PlaybookStore
from daiku.store.database import Database


@dataclass(frozen=True, slots=True)
class Playbooks:
    """The playbooks of a workspace: that of its repository (None: it has no folder) and the person's own."""

    repository: PlaybookStore | None
    user: PlaybookStore


def open_playbooks(database: Database, roots: tuple[Path, ...]) -> Playbooks:
    """The playbooks of these folders, in a database. The repository is known by the git folder that its work trees
    share and by its first commit; a folder without git by where it is. Raises DaikuError."""
    repository = PlaybookStore(database, "repository", playbook_key(database, roots)) if roots else None
    return Playbooks(repository, PlaybookStore(database, "user", _person()))


def _person() -> str:
    """Whose the person's own playbook is: a server keeps those of several."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # an account without a name, as in some containers
        return ""

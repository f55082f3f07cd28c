"""A repository keeps its playbook: in work trees, in folders that were moved or copied, with several roots."""

from __future__ import annotations

import os
import shutil
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from daiku.playbook.commits import UnreadableError, first_commit
from daiku.playbook.repository import open_playbooks
from daiku.playbook.store import PlaybookStore
from daiku.store.database import Database
from daiku.store.opening import open_tables, opened_place
from tests.playbook.changed import add

ENVIRONMENT = {
    **{name: os.environ[name] for name in ("PATH",)},
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "A"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "a@example.org"),
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}
"""The dates of commits are not fixed: each repository begins with another commit, as its message is another."""

SAME = "Some words that all messages have, so that packs keep one as what differs from another. " * 4


def git(folder: Path, *argv: str) -> str:
    allowed = ("-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main")
    done = subprocess.run(
        ["git", *allowed, *argv], cwd=folder, env=ENVIRONMENT, check=True, capture_output=True
    )
    return done.stdout.decode().strip()


def commit(folder: Path, message: str) -> None:
    git(folder, "commit", "--quiet", "--allow-empty", "-m", f"{message}\n\n{SAME}")


def repository(folder: Path, *, commits: int = 2) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    for number in range(commits):
        commit(folder, f"{folder} {number}")
    return folder


@pytest.fixture
def database(database: Path | str) -> Iterator[Database]:
    opened = open_tables(opened_place(database), "")
    yield opened
    opened.close()


def playbook(database: Database, *roots: Path) -> PlaybookStore:
    found = open_playbooks(database, roots).repository
    assert found is not None
    return found


def test_every_folder_of_a_repository_has_its_playbook(database: Database, tmp_path: Path) -> None:
    here = repository(tmp_path / "here")
    (here / "packages" / "a").mkdir(parents=True)
    add(playbook(database, here), "A lesson.")
    for roots in ((here / "packages" / "a",), (here / "packages", here), (tmp_path, here)):
        assert playbook(database, *roots).get("cm-00001") is not None
    assert playbook(database, repository(tmp_path / "there")).load().bullets == ()
    assert playbook(database, tmp_path).load().bullets == ()


def test_work_trees_share_the_playbook_of_their_repository(database: Database, tmp_path: Path) -> None:
    """Runs work in copies that are work trees: what is learnt there is the repository's."""
    here, copy = repository(tmp_path / "here"), tmp_path / "state" / "copy"
    git(here, "worktree", "add", "--quiet", "--detach", str(copy))
    add(playbook(database, copy), "A lesson.")
    assert playbook(database, here).get("cm-00001") is not None


def test_a_copy_for_work_items_has_the_playbook_of_the_repository(database: Database, tmp_path: Path) -> None:
    """Their work trees stand on a bare copy, which has no branch of its own."""
    here, copy, tree = (
        repository(tmp_path / "here"),
        tmp_path / "copies" / "here.git",
        tmp_path / "items" / "1",
    )
    git(tmp_path, "init", "--quiet", "--bare", str(copy))
    git(copy, "fetch", "--quiet", str(here), "main:refs/daiku/main")
    git(copy, "worktree", "add", "--quiet", "-b", "daiku/1-mend", str(tree), "refs/daiku/main")
    add(playbook(database, here), "A lesson.")
    assert playbook(database, tree).get("cm-00001") is not None


@pytest.mark.parametrize("packed", [False, True])
def test_a_folder_that_was_moved_or_copied_keeps_its_playbook(
    database: Database, tmp_path: Path, packed: bool
) -> None:
    here = repository(tmp_path / "here")
    if packed:
        git(here, "gc", "--quiet", "--aggressive")
    add(playbook(database, here), "A lesson.")
    moved = here.rename(tmp_path / "moved")
    assert playbook(database, moved).get("cm-00001") is not None
    git(tmp_path, "clone", "--quiet", str(moved), "clone")
    commit(tmp_path / "clone", "Another.")
    assert playbook(database, tmp_path / "clone").get("cm-00001") is not None


def test_another_repository_in_the_same_folder_has_another_playbook(
    database: Database, tmp_path: Path
) -> None:
    here = repository(tmp_path / "here")
    add(playbook(database, here), "A lesson.")
    for commits in (1, 0):
        shutil.rmtree(here)
        repository(here, commits=0)
        for number in range(commits):
            commit(here, f"Another repository {number}")
        assert playbook(database, here).load().bullets == ()


def test_a_repository_keeps_its_playbook_from_before_its_first_commit(
    database: Database, tmp_path: Path
) -> None:
    here = repository(tmp_path / "here", commits=0)
    add(playbook(database, here), "A lesson.")
    commit(here, "The first one")
    assert playbook(database, here).get("cm-00001") is not None
    git(here, "clone", "--quiet", str(here), str(tmp_path / "clone"))
    assert playbook(database, tmp_path / "clone").get("cm-00001") is not None


def test_an_empty_folder_that_a_known_repository_is_fetched_into_gets_its_playbook(
    database: Database, tmp_path: Path
) -> None:
    here, there = repository(tmp_path / "here"), repository(tmp_path / "there", commits=0)
    assert playbook(database, there).load().bullets == ()
    add(playbook(database, here), "A lesson.")
    git(there, "pull", "--quiet", str(here), "main")
    assert playbook(database, there).get("cm-00001") is not None


def test_a_clone_of_the_end_of_a_history_is_known_by_its_folder(database: Database, tmp_path: Path) -> None:
    here = repository(tmp_path / "here")
    git(tmp_path, "clone", "--quiet", "--depth=1", here.as_uri(), "shallow")
    add(playbook(database, tmp_path / "shallow"), "A lesson.")
    assert playbook(database, tmp_path / "shallow").get("cm-00001") is not None
    assert playbook(database, here).load().bullets == ()


def test_a_submodule_is_a_repository_of_its_own(database: Database, tmp_path: Path) -> None:
    here, part = repository(tmp_path / "here"), repository(tmp_path / "part")
    git(here, "submodule", "--quiet", "add", str(part), "lib")
    add(playbook(database, part), "A lesson of the part.")
    assert playbook(database, here / "lib").get("cm-00001") is not None
    assert playbook(database, here).load().bullets == ()


def test_a_folder_without_git_has_a_playbook_by_where_it_is(database: Database, tmp_path: Path) -> None:
    here = tmp_path / "plain"
    here.mkdir()
    (tmp_path / "link").symlink_to(here)
    add(playbook(database, here), "A lesson.")
    assert playbook(database, tmp_path / "link").get("cm-00001") is not None
    assert open_playbooks(database, ()).repository is None


@pytest.mark.parametrize("points", ["file", "link", "commondir", "objects"])
def test_a_folder_that_only_points_at_a_repository_does_not_get_its_playbook(
    database: Database, tmp_path: Path, points: str
) -> None:
    """A strange `.git` names a person's repository as its own: it gets none of its lessons, and gives it none."""
    here, strange = repository(tmp_path / "here"), tmp_path / "strange"
    add(playbook(database, here), "A lesson.")
    strange.mkdir()
    match points:
        case "file":
            (strange / ".git").write_text(f"gitdir: {here / '.git'}\n")
        case "link":
            (strange / ".git").symlink_to(here / ".git")
        case "commondir":
            git(strange, "init", "--quiet")
            (strange / ".git" / "commondir").write_text(str(here / ".git"))
        case _:
            git(strange, "init", "--quiet")
            (strange / ".git" / "objects" / "info" / "alternates").write_text(
                f"{here / '.git' / 'objects'}\n"
            )
            (strange / ".git" / "refs" / "heads" / "main").write_text(git(here, "rev-parse", "HEAD") + "\n")
    assert playbook(database, strange).load().bullets == ()


def test_no_program_runs_and_no_setting_counts(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings of a repository can name programs: none of them is read, for git is not asked."""
    here, ran = repository(tmp_path / "here"), tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    for name in ("core.fsmonitor", "core.pager", "core.sshCommand", "alias.rev-list"):
        git(here, "config", name, str(program))
    monkeypatch.setenv("PATH", "")
    add(playbook(database, here), "A lesson.")
    assert not ran.exists()


@pytest.mark.parametrize("what", ["HEAD", "refs/heads/main", "objects", "pack", "index"])
def test_a_damaged_repository_has_a_playbook_by_where_it_is(
    database: Database, tmp_path: Path, what: str
) -> None:
    here = repository(tmp_path / "here")
    folder = here / ".git"
    if what in ("pack", "index"):
        git(here, "gc", "--quiet")
        files = list((folder / "objects" / "pack").glob("*.pack" if what == "pack" else "*.idx"))
    elif what == "objects":
        files = [each for each in (folder / "objects").rglob("*") if each.is_file()]
    else:
        files = [folder / what]
    for each in files:
        each.chmod(0o600)
        each.write_bytes(b"\xfftOc\x00\x00\x00\x02" + b"\xff" * 50 if what == "index" else b"\xff\x00" * 40)
    add(playbook(database, here), "A lesson.")
    assert playbook(database, here).get("cm-00001") is not None


def test_the_first_commit_is_the_one_that_git_names(tmp_path: Path) -> None:
    """Over merges, packs with deltas, and what is borrowed from another repository."""
    here = repository(tmp_path / "here", commits=60)
    git(here, "checkout", "--quiet", "--orphan", "other")
    commit(here, "Another beginning")
    git(here, "checkout", "--quiet", "main")
    git(here, "merge", "--quiet", "--allow-unrelated-histories", "-m", "Both", "other")
    named = git(here, "rev-list", "--first-parent", "--max-parents=0", "main")
    assert first_commit(here / ".git", here / ".git") == named
    git(here, "gc", "--quiet", "--aggressive")
    assert (
        "delta" in git(here, "verify-pack", "-v", *map(str, (here / ".git/objects/pack").glob("*.idx")))
        or True
    )
    assert first_commit(here / ".git", here / ".git") == named
    commit(here, "One more, loose")
    assert first_commit(here / ".git", here / ".git") == named
    git(tmp_path, "clone", "--quiet", "--shared", str(here), "borrows")
    assert first_commit(tmp_path / "borrows" / ".git", tmp_path) == named


def test_a_history_that_leads_in_a_circle_ends(tmp_path: Path) -> None:
    here = repository(tmp_path / "here")
    head = git(here, "rev-parse", "HEAD")
    file = here / ".git" / "objects" / head[:2] / head[2:]
    file.chmod(0o600)
    body = f"tree {'0' * 40}\nparent {head}\n\nIn a circle".encode()
    file.write_bytes(zlib.compress(b"commit %d\0" % len(body) + body))
    with pytest.raises(UnreadableError):
        first_commit(here / ".git", here / ".git")

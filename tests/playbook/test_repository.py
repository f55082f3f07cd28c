"""A repository keeps its playbook: in work trees, in folders that were moved or copied, with several roots."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from daiku.playbook.repository import find_first_commit, open_playbooks
from daiku.playbook.store import PlaybookStore
from daiku.store.database import Database
from daiku.store.opening import open_place, open_tables
from daiku.tools.git.ownrun import GIT_UNAVAILABLE, read_git
from daiku.workspace.repository import GitPlaces
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
    opened = open_tables(open_place(database), "")
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


def places(folder: Path) -> GitPlaces:
    return GitPlaces(folder, folder / ".git", folder / ".git")


@pytest.fixture
def away_from_tmp() -> Iterator[Path]:
    """A folder outside the system's temporary one."""
    caches = Path.home() / ".cache" / "daiku-tests"
    caches.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=caches) as made:
        yield Path(made)


def test_no_program_runs_and_no_setting_counts(
    database: Database, away_from_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings of a repository and of its person can name programs and files: git runs none and reads none."""
    here, ran = repository(away_from_tmp / "here"), away_from_tmp / "ran"
    program = away_from_tmp / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\nexit 1\n")
    program.chmod(0o755)
    named = (
        *("core.fsmonitor", "core.pager", "pager.rev-list", "core.sshCommand", "core.gitProxy"),
        *("core.alternateRefsCommand", "core.askPass", "credential.helper", "uploadpack.packObjectsHook"),
        *("alias.rev-list", "alias.cat-file", "filter.x.smudge", "diff.external", "gpg.program"),
    )
    for name in named:
        git(here, "config", name, str(program))
    (here / ".git" / "more").write_text(f"[core]\n\tfsmonitor = {program}\n\tpager = {program}\n")
    git(here, "config", "include.path", "more")
    (here / ".gitattributes").write_text("* filter=x diff=x\n")
    home = away_from_tmp / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f"[core]\n\tfsmonitor = {program}\n[trace2]\n\teventTarget = {ran}\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    monkeypatch.setenv("GIT_TRACE", str(ran))
    monkeypatch.setenv("GIT_DIR", str(away_from_tmp / "nowhere"))
    monkeypatch.setenv("GIT_PAGER", str(program))
    monkeypatch.setenv("PATH", "")
    add(playbook(database, here), "A lesson.")
    assert playbook(database, here).get("cm-00001") is not None
    assert not ran.exists()
    monkeypatch.undo()
    assert find_first_commit(places(here), (here,)) == git(here, "rev-list", "--max-parents=0", "main")


def test_a_missing_commit_is_not_fetched(away_from_tmp: Path) -> None:
    """A partial clone names where its missing objects are fetched from, by a program of its choice."""
    here, ran = repository(away_from_tmp / "here", commits=3), away_from_tmp / "ran"
    program = away_from_tmp / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\nexit 1\n")
    program.chmod(0o755)
    missing = git(here, "rev-parse", "HEAD~1")
    for name, value in (
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.url", f"ext::{program}"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.uploadpack", str(program)),
        ("protocol.allow", "always"),
        ("protocol.ext.allow", "always"),
    ):
        git(here, "config", name, value)
    (here / ".git" / "objects" / missing[:2] / missing[2:]).unlink()
    for url in (f"ext::{program}", str(away_from_tmp / "other"), "ssh://localhost/x"):
        git(here, "config", "remote.origin.url", url)
        assert find_first_commit(places(here), (here,)) == "?"
        assert not ran.exists()


def test_no_program_of_the_workspace_is_taken_for_git(
    away_from_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = repository(away_from_tmp / "here")
    program = here / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {here / 'ran'}\n")
    program.chmod(0o755)
    monkeypatch.setattr("daiku.workspace.programs.SYSTEM_FOLDERS", ())
    monkeypatch.setenv("PATH", str(program.parent))
    assert find_first_commit(places(here), (here,)) == "?"
    assert not (here / "ran").exists()


def test_replaced_and_grafted_commits_do_not_count(tmp_path: Path) -> None:
    """They would make a repository that of a commit of their choosing."""
    here = repository(tmp_path / "here", commits=3)
    first, second, last = (git(here, "rev-parse", name) for name in ("HEAD~2", "HEAD~1", "HEAD"))
    git(here, "replace", "--graft", second)
    (here / ".git" / "info" / "grafts").write_text(f"{last}\n")
    assert find_first_commit(places(here), (here,)) == first


def test_a_repository_of_another_owner_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The person trusts the workspace: git's own question for the owner of its folder is answered by that."""
    here = repository(tmp_path / "here")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert find_first_commit(places(here), (here,)) == git(here, "rev-list", "--max-parents=0", "main")


def test_without_git_a_repository_is_known_by_its_folder(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = repository(tmp_path / "here"), repository(tmp_path / "there")
    add(playbook(database, there), "A lesson from before git was removed.")
    monkeypatch.setattr("daiku.tools.git.ownrun.find_program", lambda *_: "")
    assert playbook(database, there).get("cm-00001") is not None
    add(playbook(database, here), "A lesson.")
    assert playbook(database, here).get("cm-00001") is not None
    git(tmp_path, "clone", "--quiet", str(here), "clone")
    assert playbook(database, tmp_path / "clone").load().bullets == ()
    monkeypatch.undo()
    assert playbook(database, here).get("cm-00001") is not None


def test_git_that_does_not_end_is_stopped(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, slow = repository(tmp_path / "here"), tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr("daiku.tools.git.ownrun.find_program", lambda *_: str(slow))
    monkeypatch.setattr("daiku.playbook.repository._SECONDS", 0.2)
    started = time.monotonic()
    assert read_git(here / ".git", ("cat-file", "-e", "0" * 40), (), seconds=0.2) == (GIT_UNAVAILABLE, "")
    add(playbook(database, here), "A lesson.")
    assert playbook(database, here).get("cm-00001") is not None
    assert time.monotonic() - started < 10


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
    assert find_first_commit(places(here), (here,)) == named
    git(here, "gc", "--quiet", "--aggressive")
    assert (
        "delta" in git(here, "verify-pack", "-v", *map(str, (here / ".git/objects/pack").glob("*.idx")))
        or True
    )
    assert find_first_commit(places(here), (here,)) == named
    commit(here, "One more, loose")
    assert find_first_commit(places(here), (here,)) == named
    git(tmp_path, "clone", "--quiet", "--shared", str(here), "borrows")
    assert find_first_commit(places(tmp_path / "borrows"), (tmp_path,)) == named


def test_a_history_that_leads_in_a_circle_ends(tmp_path: Path) -> None:
    here = repository(tmp_path / "here")
    head = git(here, "rev-parse", "HEAD")
    file = here / ".git" / "objects" / head[:2] / head[2:]
    file.chmod(0o600)
    body = f"tree {'0' * 40}\nparent {head}\n\nIn a circle".encode()
    file.write_bytes(zlib.compress(b"commit %d\0" % len(body) + body))
    assert find_first_commit(places(here), (here,)) == "?"

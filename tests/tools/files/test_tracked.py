"""Files that git tracks although its ignore rules match them: listed and searched like any other file."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from daiku.tools.files import search
from daiku.workspace.disk import DiskWorkspace
from daiku.workspace.walk import walk_files
from tests.tools.files.test_search import call

GIT = ("git", "-c", "user.name=T", "-c", "user.email=t@x.org", "-c", "protocol.file.allow=always")


def git(root: Path, *words: str) -> None:
    subprocess.run([*GIT, *words], cwd=root, check=True, capture_output=True)


def write(root: Path, *names: str) -> None:
    for name in names:
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("needle\n")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / "home").mkdir()
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "-q")
    return root


def listed(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in walk_files((root,)))


async def found(root: Path, path: str | None = None) -> list[str]:
    answer = await call(root, "search/text", pattern="needle", mode="files", path=path)
    return sorted(line for line in answer.text.splitlines() if not line.startswith("["))


TRACKED = ["build/a/gen.txt", "build/gen.txt", "build/日本 語.txt", 'build/"q".txt', "keep.log", "src/a.py"]


def prepare(root: Path, rules: str) -> None:
    (root / rules).parent.mkdir(parents=True, exist_ok=True)
    (root / rules).write_text("build/\n*.log\n")
    write(root, *TRACKED, "build/a/other.txt", "build/out.txt", "out.log", "build/sub/out.txt")
    (root / "build/.gitignore").write_text("!out.txt\n")  # below an ignored folder nothing is taken back
    git(root, "add", "--force", "--", *TRACKED)


@pytest.mark.parametrize("engine", ["ripgrep", "python"])
@pytest.mark.parametrize("rules", [".gitignore", ".git/info/exclude", "../home/.config/git/ignore"])
async def test_a_tracked_file_that_is_ignored_is_listed_and_found(
    repository: Path, rules: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C23.2: git ignores no file that it tracks, wherever the rule stands."""
    if engine == "python":
        monkeypatch.setattr(search, "find_ripgrep", lambda roots: "")
    prepare(repository, rules)
    own = [".gitignore"] if rules == ".gitignore" else []
    assert listed(repository) == sorted([*own, *TRACKED])
    assert await found(repository) == sorted(TRACKED)
    answer = await call(repository, "search/text", pattern="needle", mode="count", glob="*.txt")
    assert "4 matches in 4 files" in answer.text
    workspace = DiskWorkspace([repository])
    ignored = [workspace.ignored(repository / name) for name in ("build/gen.txt", "build/out.txt", "build")]
    assert ignored == [False, True, True]
    assert "build/out.txt" in await found(repository, "build")  # what is named is searched as before


async def test_a_subfolder_that_is_opened_shows_its_tracked_files(repository: Path) -> None:
    """C23.2: the index is that of the repository above the folder."""
    (repository / ".gitignore").write_text("dist/\n")
    write(repository, "packages/app/dist/a.js", "packages/app/dist/b.js", "packages/app/src/c.js")
    git(repository, "add", "--force", "packages/app/dist/a.js")
    root = repository / "packages/app"
    assert listed(root) == ["dist/a.js", "src/c.js"]
    assert await found(root) == ["dist/a.js", "src/c.js"]


async def test_what_is_closed_stays_closed_and_what_is_removed_is_ignored_again(repository: Path) -> None:
    """C23.2: a .daikuignore is stronger than git, and the index is read again when it changes."""
    prepare(repository, ".gitignore")
    (repository / ".daikuignore").write_text("gen.txt\n")
    assert not {"build/gen.txt", "build/a/gen.txt"} & set(listed(repository))
    assert "keep.log" in listed(repository)
    git(repository, "rm", "--quiet", "--cached", "keep.log")
    os.utime(repository / ".git/index", ns=(1, 1))
    assert "keep.log" not in listed(repository)


def test_no_program_of_the_repository_is_started(repository: Path) -> None:
    """C23.2: a monitor that the settings name is not asked."""
    prepare(repository, ".gitignore")
    program = repository / "program.sh"
    program.write_text(f"#!/bin/sh\ntouch {repository}/started\n")
    program.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(program))
    assert "build/gen.txt" in listed(repository)
    assert not (repository / "started").exists()


async def test_an_ignored_submodule_is_listed(repository: Path, tmp_path: Path) -> None:
    """C23.3: what git tracks as a submodule is no ignored folder."""
    part = tmp_path / "part"
    part.mkdir()
    git(part, "init", "-q")
    write(part, "lib.py")
    git(part, "add", ".")
    git(part, "commit", "-qm", "x")
    (repository / ".gitignore").write_text("vendor/\n")
    git(repository, "submodule", "--quiet", "add", "--force", str(part), "vendor/part")
    write(repository, "vendor/other.py")
    assert listed(repository) == [".gitignore", ".gitmodules", "vendor/part/lib.py"]
    assert await found(repository) == ["vendor/part/lib.py"]


def test_git_is_not_asked_again_where_its_matcher_does_not_end(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A23.5"""
    write(repository, "a" * 120 + "0", "x.log")
    git(repository, "add", "-A")
    write(repository, "later")
    (repository / ".gitignore").write_text("*a" * 30 + "b\n*.log\n")
    monkeypatch.setattr("daiku.workspace.repository._SECONDS", 0.3)
    asked: list[object] = []

    def run(*args: Any, **options: Any) -> subprocess.CompletedProcess[bytes]:
        asked.append(args)
        return run_program(*args, **options)

    run_program = subprocess.run
    monkeypatch.setattr("daiku.workspace.repository.subprocess.run", run)
    assert "x.log" not in listed(repository)
    git(repository, "add", "later")
    assert "x.log" not in listed(repository)
    assert len(asked) == 1 + 1

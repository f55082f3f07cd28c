"""Changes in submodules are told by name and line, and no program that a submodule names is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from daiku.domain.config import SandboxSettings
from daiku.tools.git.git import CommitArgs, DiffArgs, LogArgs, StatusArgs, commit, diff, log, status
from daiku.tools.tool import ToolContext
from tests.tools.git.test_git import git, repository
from tests.tools.shell.test_shell import context_of

pytestmark = pytest.mark.slow  # real git
__all__ = ["repository"]


@pytest.fixture
def top(repository: Path, tmp_path: Path) -> Path:
    part = tmp_path / "part"
    part.mkdir()
    git(part, "init", "-q", "-b", "main")
    (part / "a b.txt").write_text("one\n")
    (part / ".env").write_text("KEY=1\n")
    git(part, "add", ".")
    git(part, "commit", "-q", "-m", "part")
    for place in ("lib/sub", "ünused"):
        git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(part), place)
    git(repository, "commit", "-q", "-m", "with parts")
    (repository / "lib/sub/a b.txt").write_text("two\n")
    return repository


@pytest.fixture
def context(top: Path) -> ToolContext:
    return context_of(top, lambda _: None, SandboxSettings())


async def test_a_change_in_a_submodule_is_told(top: Path, context: ToolContext) -> None:
    """C23.3: git itself says only that it is dirty, or nothing."""
    (top / "lib/sub/new.txt").write_text("new\n")
    told = (await status(StatusArgs(), context)).text
    assert told == '## main\nIn the submodule lib/sub:\n M "a b.txt"\n?? new.txt'
    told = (await diff(DiffArgs(), context)).text
    assert told.startswith("In the submodule lib/sub:\ndiff --git ")
    assert "--- a/lib/sub/a b.txt" in told
    assert "+++ b/lib/sub/a b.txt" in told
    assert "-one\n+two" in told
    (top / "a.txt").write_text("two\n")
    told = (await diff(DiffArgs(), context)).text
    assert told.index("a/a.txt") < told.index("In the submodule lib/sub:")
    assert (await diff(DiffArgs(paths=("a.txt",)), context)).text.count("diff --git") == 1


@pytest.mark.parametrize("path", ["lib", "lib/sub", "lib/sub/a b.txt"])
async def test_a_path_leads_into_its_submodule(top: Path, context: ToolContext, path: str) -> None:
    """C23.3: a folder above it, the submodule, and a file in it."""
    assert "-one\n+two" in (await diff(DiffArgs(paths=(path,)), context)).text
    assert "a b.txt" in (await status(StatusArgs(paths=(path,)), context)).text


async def test_a_file_in_a_submodule_is_committed_there(top: Path, context: ToolContext) -> None:
    """C23.3: the commit belongs to the repository of the file."""
    assert (await commit(CommitArgs(message="inner", paths=("lib/sub/a b.txt",)), context)).ok
    assert "inner" in (await log(LogArgs(paths=("lib/sub/a b.txt",)), context)).text
    assert git(top / "lib/sub", "show", "HEAD:a b.txt") == "two\n"
    assert git(top, "log", "-1", "--format=%s") == "with parts\n"
    assert "lib/sub" in (await diff(DiffArgs(), context)).text  # the superproject names another commit


async def test_a_file_of_secrets_in_a_submodule_is_not_shown(top: Path, context: ToolContext) -> None:
    """C23.3: the same is left out as anywhere else."""
    (top / "lib/sub/.env").write_text("KEY=hidden\n")
    told = (await diff(DiffArgs(), context)).text
    assert "hidden" not in told
    assert "+two" in told
    assert "Not shown" in told


@pytest.mark.parametrize("setting", ["filter.evil.clean", "core.fsmonitor", "diff.external"])
async def test_no_program_of_a_submodule_is_started(top: Path, context: ToolContext, setting: str) -> None:
    """C23.3: its own settings are looked at before it is asked."""
    canary = top.parent / "canary"
    inner = top / "lib/sub"
    git(inner, "config", setting, f"sh -c 'touch {canary}; cat'")
    (top / ".git/modules/lib/sub/info/attributes").write_text("* filter=evil\n")
    assert "+two" in (await diff(DiffArgs(), context)).text
    assert (await status(StatusArgs(), context)).ok
    assert not canary.exists()


async def test_a_path_of_gitmodules_that_leads_out_is_not_followed(
    top: Path, context: ToolContext, tmp_path: Path
) -> None:
    """C23.3: the file is the repository's, and names what it likes."""
    outside = tmp_path / "outside"
    outside.mkdir()
    git(outside, "init", "-q")
    (outside / "secret.txt").write_text("x\n")
    (top / "link").symlink_to(outside)
    for number, path in enumerate((str(outside), "../outside", "link", "", ".")):
        git(top, "config", "--file", ".gitmodules", f"submodule.{number}.path", path)
    told = await status(StatusArgs(), context)
    assert told.ok
    assert "secret.txt" not in told.text
    assert told.text.count("In the submodule") == 1

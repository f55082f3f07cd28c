"""Real git in real repositories, hostile ones included."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.config import SandboxSettings
from daiku.settings.config import Config
from daiku.tools.git.git import (
    CommitArgs,
    DiffArgs,
    LogArgs,
    StatusArgs,
    commit,
    diff,
    log,
    preview_commit,
    status,
)
from daiku.tools.shell import RunArgs, run
from daiku.tools.shell.background import Jobs
from daiku.tools.tool import Preview, ToolContext
from tests.tools.shell.test_shell import context_of

pytestmark = pytest.mark.slow  # real git


def git(root: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def repository(workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "T")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "t@example.org")
    root = workspace.resolve()
    git(root, "init", "-q", "-b", "main")
    (root / "a.txt").write_text("one\n")
    (root / "b.txt").write_text("one\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    return root


@pytest.fixture
def context(repository: Path) -> ToolContext:
    return context_of(repository, lambda _: None, SandboxSettings())


async def test_status_diff_log_and_commit_work_together(repository: Path, context: ToolContext) -> None:
    (repository / "a.txt").write_text("two\n")
    (repository / "b.txt").write_text("two\n")
    (repository / "new.txt").write_text("new\n")
    assert (await status(StatusArgs(), context)).text == "## main\n M a.txt\n M b.txt\n?? new.txt"
    changed = await diff(DiffArgs(paths=("a.txt",)), context)
    assert "-one\n+two" in changed.text
    assert "b.txt" not in changed.text
    assert (await commit(CommitArgs(message="-m second\n\nbody", paths=("a.txt", "new.txt")), context)).ok
    assert (await status(StatusArgs(), context)).text == "## main\n M b.txt"
    listed = await log(LogArgs(limit=1), context)
    assert "-m second" in listed.text
    assert "first" not in listed.text
    assert "a.txt" in (await diff(DiffArgs(ref="HEAD~1..HEAD", stat=True), context)).text
    assert (await diff(DiffArgs(staged=True), context)).text == "No differences."


async def test_a_preview_of_a_commit_shows_its_message_and_files(
    repository: Path, context: ToolContext
) -> None:
    (repository / "a.txt").write_text("two\n")
    shown = await preview_commit(CommitArgs(message="words", all=True), context)
    assert isinstance(shown, Preview)
    assert "words" in shown.text
    assert "M a.txt" in shown.text


async def test_outside_a_repository_it_says_so(workspace: Path) -> None:
    result = await status(StatusArgs(), context_of(workspace.resolve(), lambda _: None, SandboxSettings()))
    assert not result.ok
    assert "no git repository" in result.text


@pytest.mark.parametrize(
    "ref",
    [
        "--output=/tmp/C",
        "-o",
        "--upload-pack=touch C",
        "ext::sh -c touch% C",
        "a b",
        "x\ny",
        "HEAD:../x",
        "--no-index",
    ],
)
async def test_a_ref_is_never_an_option(repository: Path, context: ToolContext, ref: str) -> None:
    assert not (await diff(DiffArgs(ref=ref), context)).ok
    assert not (await log(LogArgs(ref=ref), context)).ok
    assert sorted(p.name for p in repository.iterdir()) == [".git", "a.txt", "b.txt"]


@pytest.mark.parametrize("path", ["../outside", "../../../.kube/config", "/etc/passwd", "link/x"])
async def test_paths_outside_are_refused(repository: Path, context: ToolContext, path: str) -> None:
    (repository.parent / "outside").write_text("secret")
    (repository / "link").symlink_to("/etc")
    for result in (
        await status(StatusArgs(paths=(path,)), context),
        await diff(DiffArgs(paths=(path,)), context),
        await commit(CommitArgs(message="m", paths=(path,)), context),
    ):
        assert not result.ok
    assert git(repository, "log", "--oneline").count("\n") == 1


@pytest.mark.parametrize("path", [":(exclude)a.txt", ":/", "*.txt", "-a.txt"])
async def test_a_path_is_a_path_and_no_pattern(repository: Path, context: ToolContext, path: str) -> None:
    (repository / "a.txt").write_text("two\n")
    result = await diff(DiffArgs(paths=(path,)), context)
    assert "two" not in result.text


HOSTILE: dict[str, list[str]] = {
    "fsmonitor": ["config core.fsmonitor CANARY"],
    "pager": ["config core.pager CANARY", "config pager.log CANARY", "config pager.diff CANARY", "config pager.status CANARY"],
    "external diff": ["config diff.external CANARY"],
    "textconv": ["config diff.evil.textconv CANARY"],
    "diff command": ["config diff.evil.command CANARY"],
    "clean filter": ["config filter.evil.clean CANARY", "config filter.evil.required true"],
    "process filter": ["config filter.evil.process CANARY"],
    "smudge filter": ["config filter.evil.smudge CANARY"],
    "hooks": ["config core.hooksPath hooks"],
    "editor": ["config core.editor CANARY"],
    "signing": ["config commit.gpgSign true", "config gpg.program CANARY", "config log.showSignature true", "config user.signingKey x"],
    "ssh signing": ["config gpg.format ssh", "config commit.gpgSign true", "config gpg.ssh.program CANARY", "config user.signingKey x"],
    "alias": ["config alias.status !CANARY", "config alias.diff !CANARY"],
    "lazy fetch": ["config core.repositoryFormatVersion 1", "config extensions.partialClone origin", "config remote.origin.promisor true",
                   "config remote.origin.url ext::CANARY", "config protocol.ext.allow always", "config remote.origin.uploadpack CANARY"],
    "ask pass": ["config core.askPass CANARY", "config credential.helper !CANARY"],
    "trailers": ["config trailer.x.command CANARY", "config trailer.x.cmd CANARY"],
    "include": ["config include.path ../evil.config"],
    "maintenance": ["config gc.auto 1", "config core.alternateRefsCommand CANARY"],
}  # fmt: skip


@pytest.mark.parametrize("attack", HOSTILE)
async def test_a_repository_cannot_make_git_run_its_programs(
    repository: Path, context: ToolContext, attack: str, tmp_path: Path
) -> None:
    canary, script = tmp_path / "CANARY", tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {canary}\ncat\n")
    script.chmod(0o755)
    (repository / ".gitattributes").write_text("* diff=evil filter=evil\n")
    (repository / "evil.config").write_text(
        f'[core]\nfsmonitor = {script}\n[filter "evil"]\nclean = {script}\n'
    )
    for folder in (repository / "hooks", repository / ".git" / "hooks"):
        folder.mkdir(exist_ok=True)
        for hook in (
            "pre-commit",
            "commit-msg",
            "post-commit",
            "post-index-change",
            "pre-auto-gc",
            "prepare-commit-msg",
            "reference-transaction",
        ):
            (folder / hook).write_text(f"#!/bin/sh\ntouch {canary}\n")
            (folder / hook).chmod(0o755)
    for line in HOSTILE[attack]:
        git(repository, *(part.replace("CANARY", str(script)) for part in line.split(" ", 2)))
    (repository / "a.txt").write_text("changed\n")
    (repository / "b.txt").touch()
    for result in (
        await status(StatusArgs(), context),
        await diff(DiffArgs(), context),
        await diff(DiffArgs(ref="HEAD", staged=True), context),
        await log(LogArgs(patch=True), context),
        await preview_commit(CommitArgs(message="m"), context),
        await commit(CommitArgs(message="m", paths=("a.txt",)), context),
        await status(StatusArgs(), context),
        await log(LogArgs(patch=True), context),
    ):
        assert isinstance(result, Preview) or result.ok, result.text
    assert not canary.exists()


DRIVERS = (
    "evil",
    "a=b",
    "a.clean=x",
    "=",
    "a.b.c",
    "clean",
    "required=true",
    "UPPER",
    "ü",
    "-c",
    "$x",
    "a[b]",
)
"""Names that a repository may give its drivers."""


@pytest.mark.parametrize("name", DRIVERS)
async def test_a_driver_of_any_name_is_switched_off(
    repository: Path, context: ToolContext, name: str, tmp_path: Path
) -> None:
    canary, script = tmp_path / "CANARY", tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {canary}\ncat\n")
    script.chmod(0o755)
    (repository / ".gitattributes").write_text(f"* filter={name} diff={name} merge={name}\n")
    for setting in ("filter.{}.clean", "filter.{}.process", "diff.{}.textconv"):
        git(repository, "config", setting.format(name), str(script))
    (repository / "a.txt").write_text("changed\n")
    (repository / "b.txt").touch()
    assert (await status(StatusArgs(), context)).ok
    assert "+changed" in (await diff(DiffArgs(), context)).text
    assert (await log(LogArgs(patch=True), context)).ok
    assert (await commit(CommitArgs(message="m", paths=("a.txt",)), context)).ok
    bare = replace(context, config=Config(sandbox=SandboxSettings(mode="off")))
    (repository / "b.txt").write_text("changed\n")
    for command in ("git status", "git diff", "git log -p", "git add b.txt", "git commit -qam m"):
        assert (await run(RunArgs(command=command), bare, Jobs())).ok, command
    assert not canary.exists()


async def test_a_work_tree_that_was_moved_outside_is_refused(
    repository: Path, context: ToolContext, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    git(repository, "config", "core.worktree", str(elsewhere))
    result = await status(StatusArgs(), context)
    assert not result.ok


async def test_a_bare_repository_in_the_workspace_is_not_used(workspace: Path) -> None:
    root = workspace.resolve()
    git(root, "init", "-q", "--bare", ".")
    canary = root / "CANARY"
    git(root, "config", "core.fsmonitor", f"touch {canary}")
    result = await status(StatusArgs(), context_of(root, lambda _: None, SandboxSettings()))
    assert not result.ok
    assert not canary.exists()


async def test_git_of_the_workspace_is_never_run(
    repository: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "git").write_text("#!/bin/sh\ntouch CANARY\n")
    (repository / "git").chmod(0o755)
    import os

    monkeypatch.setenv("PATH", f".:{repository}:{os.environ['PATH']}")
    monkeypatch.chdir(repository)
    result: Any = await status(StatusArgs(), context)
    assert result.ok
    assert not (repository / "CANARY").exists()


@pytest.mark.parametrize("how", ["all", "named", "folder", "nothing"])
async def test_a_commit_runs_no_program_of_a_repository_within_the_repository(
    repository: Path, context: ToolContext, how: str
) -> None:
    """Its settings are not the ones that are looked at; git would go through its files to say whether they changed."""
    inner, canary = repository / "sub", repository.parent / "canary"
    inner.mkdir()
    git(inner, "init", "-q", "-b", "main")
    (inner / "f").write_text("one\n")
    git(inner, "add", ".")
    git(inner, "commit", "-q", "-m", "inner")
    (repository / ".gitmodules").write_text('[submodule "sub"]\n\tpath = sub\n\turl = ./x\n\tignore = none\n')
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "with it")
    git(inner, "config", "filter.evil.clean", f"sh -c 'touch {canary}; cat'")
    (inner / ".git/info/attributes").write_text("* filter=evil\n")
    (inner / "f").write_text("two\n")
    if how != "nothing":
        (repository / "a.txt").write_text("two\n")
    asked = {
        "all": CommitArgs(message="m", all=True),
        "named": CommitArgs(message="m", paths=("a.txt", "sub")),
        "folder": CommitArgs(message="m", paths=(".",)),
        "nothing": CommitArgs(message="m"),
    }[how]
    done = await commit(asked, context)
    assert not canary.exists()
    assert done.ok == (how != "nothing")
    assert how == "nothing" or git(repository, "show", "HEAD:a.txt") == "two\n"


async def test_the_commit_of_a_repository_within_the_repository_is_committed(
    repository: Path, context: ToolContext
) -> None:
    inner = repository / "sub"
    inner.mkdir()
    git(inner, "init", "-q", "-b", "main")
    git(inner, "commit", "-q", "--allow-empty", "-m", "one")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "with it")
    git(inner, "commit", "-q", "--allow-empty", "-m", "two")
    assert (await commit(CommitArgs(message="m", all=True), context)).ok
    assert git(repository, "rev-parse", "HEAD:sub") == git(inner, "rev-parse", "HEAD")


@pytest.mark.parametrize("where", ["repository", "local path", "global path"])
async def test_a_commit_tells_which_of_the_users_hooks_did_not_run(
    repository: Path, context: ToolContext, where: str
) -> None:
    hooks = repository / ".git" / "hooks" if where == "repository" else repository.parent / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-commit", "commit-msg"):
        (hooks / name).write_text("#!/bin/sh\nexit 1\n")
        (hooks / name).chmod(0o755)
    (hooks / "post-commit").write_text("not executable")
    if where != "repository":
        scope = "--local" if where == "local path" else "--global"
        git(repository, "config", scope, "core.hooksPath", str(hooks))
    (repository / "a.txt").write_text("changed")
    done = await commit(CommitArgs(message="m", all=True), context)
    if where == "global path":
        git(repository, "config", "--global", "--unset", "core.hooksPath")
    assert done.ok
    assert "these hooks did not run: pre-commit, commit-msg." in done.text
    assert "not signed" not in done.text


async def test_a_commit_tells_that_it_is_not_signed(repository: Path, context: ToolContext) -> None:
    git(repository, "config", "commit.gpgSign", "yes")
    (repository / "a.txt").write_text("changed")
    done = await commit(CommitArgs(message="m", all=True), context)
    assert "the commit is not signed, although commit.gpgSign is set" in done.text


async def test_a_commit_without_hooks_and_signing_says_nothing_of_them(
    repository: Path, context: ToolContext
) -> None:
    (repository / "a.txt").write_text("changed")
    assert "Skipped" not in (await commit(CommitArgs(message="m", all=True), context)).text

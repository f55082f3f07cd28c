"""Hostile repositories: nothing of theirs runs while a tree is made, kept and pushed, and no command leaves it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from daiku.dataclass import replace
from daiku.domain.config import SandboxSettings
from daiku.domain.errors import DaikuError
from daiku.guard.sandbox import bubblewrap
from daiku.settings.config import Config
from daiku.tools.files.reading import ReadArgs, read
from daiku.tools.files.seen import SeenTexts
from daiku.tools.git.git import CommitArgs, StatusArgs, commit, status
from daiku.tools.git.itemtree import ItemTree, checkout, list_changed_paths, snapshot
from daiku.tools.git.mirror import read_head, update_mirror
from daiku.tools.git.remote import PushResult, push
from daiku.workspace.disk import DiskWorkspace
from tests.services.git_server import raw_object, run_git
from tests.tools.git.bench import WHO, Bench, bench_at, git, in_the_home, kind
from tests.tools.shell.test_shell import Bench as Commands
from tests.tools.shell.test_shell import data

pytestmark = pytest.mark.slow  # real git

# The sandbox needs bubblewrap, which `npm test` installs but not every container can run.
needs_bubblewrap = pytest.mark.skipif(not bubblewrap(), reason="no working bubblewrap here")
HOOKS = ("pre-commit", "commit-msg", "post-commit", "post-checkout", "post-index-change", "pre-push", "post-merge",
         "reference-transaction", "pre-auto-gc", "prepare-commit-msg", "fsmonitor-watchman")  # fmt: skip


@pytest.fixture(params=["tmp", "home"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """In a temporary folder and in one that no sandbox covers."""
    if request.param == "tmp":
        with bench_at(tmp_path) as made:
            yield made
    else:
        with in_the_home() as folder, bench_at(folder) as made:
            yield made


def evil(bench: Bench) -> tuple[Path, Path]:
    canary, script = bench.own.parent / "CANARY", bench.own.parent / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {canary}\ncat\n")
    script.chmod(0o755)
    return canary, script


def hostile_files(script: Path) -> dict[str, str]:
    """What a repository can bring along to have something run."""
    settings = f'[core]\n\tfsmonitor = {script}\n\thooksPath = .githooks\n[filter "lfs"]\n\tsmudge = {script}\n\tclean = {script}\n'
    files = {
        ".gitattributes": "* filter=lfs diff=lfs merge=lfs -text\n*.x filter=evil diff=evil\n",
        ".gitmodules": f'[submodule "sub"]\n\tpath = sub\n\turl = ext::{script}\n\tignore = none\n\tfetchRecurseSubmodules = true\n',
        ".lfsconfig": f"[lfs]\n\turl = http://127.0.0.1:1/\n\tcustomtransfer.x.path = {script}\n",
        ".gitconfig": settings,
        "config": settings,
        "HEAD": "ref: refs/heads/main\n",
        "objects/x": "",
        "refs/x": "",
        "big.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:0000\nsize 12345\n",
        "a.x": "x\n",
        "$(touch CANARY);`touch CANARY`": "x\n",
        "-c core.fsmonitor=x": "x\n",
    }
    return files | {
        f"{folder}/{hook}": script.read_text() for folder in (".githooks", "hooks") for hook in HOOKS
    }


def add_raw(bench: Bench, entries: str) -> None:
    """A commit whose tree has these entries as well: links, submodules."""
    place = bench.server.place("o/r")
    whole = f"{run_git(place, 'ls-tree', 'main')}\n{entries}"
    done = subprocess.run(
        ["git", "mktree", "--missing"], cwd=place, input=whole, capture_output=True, text=True, check=True
    )
    made = run_git(place, "commit-tree", done.stdout.strip(), "-p", "main", "-m", "raw")
    run_git(place, "update-ref", "refs/heads/main", made)


def blob(bench: Bench, content: str) -> str:
    return raw_object(bench.server.place("o/r"), "blob", content.encode())


async def test_nothing_that_a_repository_brings_along_runs(bench: Bench) -> None:
    canary, script = evil(bench)
    bench.server.commit("o/r", hostile_files(script))
    add_raw(bench, f"160000 commit {bench.first}\tsub\n")
    tree = await bench.tree()
    assert (tree.place / "big.bin").read_text().startswith("version https://git-lfs")
    assert list((tree.place / "sub").iterdir()) == []
    (tree.place / "big.bin").write_text("changed")
    (tree.place / "a.x").write_text("changed")
    start = await read_head(tree.mirror, "main")
    made = await snapshot(tree, "-c core.fsmonitor=x", WHO)
    assert isinstance(made, str), made
    assert made
    assert await list_changed_paths(tree, start, await tree.git.find_commit(tree.ref)) == ("a.x", "big.bin")
    assert isinstance(
        await push(tree.mirror, bench.remote(), tree.branch, made, "", default="main"), PushResult
    )
    assert (await bench.tree()).taken_over
    assert not canary.exists()
    assert not list(bench.own.rglob("CANARY"))


@pytest.mark.parametrize("line", ["url = -uCANARY", "update = !CANARY", "path = --x"])
async def test_a_submodule_that_names_a_program_is_not_even_copied(bench: Bench, line: str) -> None:
    canary, script = evil(bench)
    settings = f'[submodule "sub"]\n\tpath = sub\n\t{line.replace("CANARY", str(script))}\n'
    bench.server.commit("o/r", {".gitmodules": settings})
    assert kind(await update_mirror(bench.own / "mirrors", bench.remote())) == "damaged"
    assert not canary.exists()


async def test_repositories_that_were_made_within_the_tree_are_not_looked_into(bench: Bench) -> None:
    """Also where a submodule belongs: git would run the programs that their settings name."""
    canary, script = evil(bench)
    add_raw(bench, f"160000 commit {bench.first}\tsub\n")
    tree = await bench.tree()
    for name in ("sub", "own", "src/inner", "without"):
        place = tree.place / name
        place.mkdir(exist_ok=True)
        git(place, "init", "-q")
        (place / "file").write_text("x")
        if name != "without":
            who = ("-c", "user.name=x", "-c", "user.email=x@x")
            git(place, "add", ".")
            git(place, *who, "commit", "-q", "-m", "x")
        for key in ("core.fsmonitor", "core.sshCommand", "diff.external", "filter.x.clean", "core.pager"):
            git(place, "config", key, str(script))
        (place / ".gitattributes").write_text("* filter=x\n")
        for hook in HOOKS:
            (place / ".git" / "hooks").mkdir(exist_ok=True)
            (place / ".git" / "hooks" / hook).write_text(script.read_text())
            (place / ".git" / "hooks" / hook).chmod(0o755)
    (tree.place / "README.md").write_text("changed")
    start = await read_head(tree.mirror, "main")
    made = await snapshot(tree, "change", WHO)
    assert isinstance(made, str), made
    assert await list_changed_paths(tree, start, await tree.git.find_commit(tree.ref)) == ("README.md",)
    assert not canary.exists()


async def test_a_git_folder_put_in_the_place_of_the_trees_own_has_no_say(bench: Bench) -> None:
    canary, script = evil(bench)
    tree = await bench.tree()
    (tree.place / ".git").unlink()
    git(tree.place, "init", "-q")
    for key in ("core.fsmonitor", "filter.x.clean", "core.worktree", "core.hooksPath"):
        git(tree.place, "config", "--file", ".git/config", key, str(script))
    (tree.place / "README.md").write_text("changed")
    made = await snapshot(tree, "change", WHO)
    assert isinstance(made, str), made
    assert await list_changed_paths(tree, bench.first, await tree.git.find_commit(tree.ref)) == ("README.md",)
    again = await bench.tree()
    assert not again.taken_over
    assert (again.place / ".git").is_file()
    assert not canary.exists()


async def test_links_that_lead_out_are_not_followed(bench: Bench) -> None:
    private = bench.own.parent / "private"
    private.mkdir()
    (private / "secret.txt").write_text("CANARY-7f3a")
    to = blob(bench, str(private))
    add_raw(bench, f"120000 blob {to}\tout\n120000 blob {blob(bench, str(private / 'secret.txt'))}\tfile\n")
    tree = await bench.tree()
    assert (tree.place / "out").is_symlink()
    workspace = DiskWorkspace((tree.place,))
    context = replace(Commands(tree.place, SandboxSettings()).context, workspace=workspace)
    for path in ("out/secret.txt", "file"):
        with pytest.raises(DaikuError, match="outside the workspace"):
            await read(SeenTexts(), ReadArgs(path=path), context)
    (tree.place / "README.md").write_text("changed")
    made = await snapshot(tree, "change", WHO)
    assert isinstance(made, str), made
    assert "CANARY-7f3a" not in git(tree.mirror, "--git-dir=.", "grep", "-e", "", made)
    assert sorted(each.name for each in private.iterdir()) == ["secret.txt"]


@pytest.mark.parametrize("name", [".git", ".GIT", "git~1", ".g\u200cit", "..", ".git "])
async def test_a_name_that_means_the_git_folder_is_never_written(bench: Bench, name: str) -> None:
    place = bench.server.place("o/r")
    inner = raw_object(place, "tree", b"100644 config\0" + bytes.fromhex(blob(bench, "EVIL")))
    made = raw_object(place, "tree", b"40000 " + name.encode() + b"\0" + bytes.fromhex(inner))
    run_git(place, "update-ref", "refs/heads/main", run_git(place, "commit-tree", made, "-m", "evil"))
    found = await update_mirror(bench.own / "mirrors", bench.remote())
    if isinstance(found, Path):
        await checkout(found, "daiku/1", await read_head(found, "main"), bench.own / "trees" / "1", WHO)
    assert bench.holds("EVIL") == []


@needs_bubblewrap
async def test_a_command_reads_the_repository_and_changes_nothing_of_it(bench: Bench) -> None:
    """What one item's commands could write there, another item's tree would be made of."""
    if str(bench.own).startswith("/tmp/"):  # a name only
        # The sandbox has a /tmp of its own, and hides every repository below /tmp.
        pytest.skip("there the sandbox has a /tmp of its own")
    tree = await bench.tree()
    other = await bench.tree("daiku/2-y", "two")
    before = git(tree.mirror, "--git-dir=.", "for-each-ref")
    commands = Commands(tree.place, SandboxSettings())
    shown = data(await commands.run("git log --oneline"))
    assert "first" in shown["output"]
    (tree.place / "README.md").write_text("changed\n")
    assert "README.md" in data(await commands.run("git status --short"))["output"]
    for attack in (
        f"git update-ref refs/heads/{other.branch} HEAD~0; git branch -f {other.branch} HEAD; git branch new",
        "git commit -qam mine",
        "git add README.md",
        f"git config core.hooksPath {tree.place}/hooks",
        f"git config user.name evil; echo x >{tree.mirror}/config; echo x >{tree.mirror}/hooks; rm -rf {tree.mirror}",
        f"python3 -c \"open('{other.place}/README.md', 'w').write('evil')\"",
        "git stash; git gc; git worktree prune; git worktree remove --force ../two; git checkout -q -b x",
    ):
        await commands.run(attack)
    assert git(tree.mirror, "--git-dir=.", "for-each-ref") == before
    assert git(tree.mirror, "--git-dir=.", "config", "user.name") == WHO.name
    assert (other.place / "README.md").read_text() == "one\n"
    assert git(other.place, "status", "--short") == ""
    made = await snapshot(tree, "change", WHO)
    assert isinstance(made, str), made
    assert made


async def test_daikus_own_git_tools_work_in_a_tree(bench: Bench) -> None:
    tree = await bench.tree()
    assert isinstance(tree, ItemTree)
    context = Commands(tree.place, SandboxSettings()).context
    assert isinstance(context.config, Config)
    (tree.place / "README.md").write_text("changed\n")
    assert "M README.md" in (await status(StatusArgs(), context)).text
    assert (await commit(CommitArgs(message="mine", all=True), context)).ok
    shown = git(tree.place, "log", "-1", "--format=%an <%ae> %s")
    assert shown == f"{WHO.name} <{WHO.email}> mine"
    assert await snapshot(tree, "change", WHO) == ""


async def test_a_commit_in_a_tree_runs_no_filter_that_the_person_has_set_up(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger's attributes choose among them, and so what is done with a stranger's bytes."""
    canary, script = evil(bench)
    home = bench.own.parent / "person"
    home.mkdir()
    (home / ".gitconfig").write_text(
        f'[user]\n\tname = Ann\n[filter "lfs"]\n\tclean = {script}\n\trequired = true\n'
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Ann")
    bench.server.commit("o/r", {".gitattributes": "* filter=lfs\n"})
    tree = await bench.tree()
    context = Commands(tree.place, SandboxSettings()).context
    (tree.place / "README.md").write_text("changed\n")
    assert (await commit(CommitArgs(message="mine", paths=("README.md",)), context)).ok
    assert not canary.exists()
    assert git(tree.place, "log", "-1", "--format=%an") == WHO.name
    assert git(tree.place, "show", "HEAD:README.md") == "changed"

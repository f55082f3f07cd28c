"""The work tree of an item: made, taken over, kept as commits; of another process, of another machine, of a dead one."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from daiku.tools.git.itemtree import (
    MAX_FILE_BYTES,
    ItemTree,
    checkout,
    list_changed_paths,
    remove_tree,
    snapshot,
)
from daiku.tools.git.mirror import read_head, update_mirror
from daiku.tools.git.remote import PushResult, push
from tests.tools.git.bench import WHO, Bench, bench_at, git, kind

pytestmark = pytest.mark.slow  # real git


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_at(tmp_path) as made:
        yield made


async def kept(tree: ItemTree, message: str = "change") -> str:
    commit = await snapshot(tree, message, WHO)
    assert isinstance(commit, str), commit
    return commit


async def test_what_is_not_committed_becomes_one_commit(bench: Bench) -> None:
    tree = await bench.tree()
    assert await kept(tree) == ""
    (tree.place / ".gitignore").write_text("*.log\n")
    (tree.place / "new file").write_text("1\n2\n")
    (tree.place / "noise.log").write_text("noise")
    (tree.place / "src" / "a.py").unlink()
    (tree.place / "README.md").chmod(0o755)
    (tree.place / "link").symlink_to("/etc/passwd")
    commit = await kept(tree, "all of it\0\n\nwith a body \ud800")
    assert await kept(tree) == ""
    assert await list_changed_paths(tree, bench.first, await tree.git.find_commit(tree.ref)) == (
        ".gitignore",
        "README.md",
        "link",
        "new file",
        "src/a.py",
    )
    shown = git(tree.mirror, "--git-dir=.", "log", "-1", "--format=%an %ae %cn %ce %P", commit)
    assert shown == f"{WHO.name} {WHO.email} {WHO.name} {WHO.email} {bench.first}"
    assert git(tree.mirror, "--git-dir=.", "cat-file", "-p", f"{commit}:link") == "/etc/passwd"
    assert git(tree.place, "status", "--short") == ""


async def test_files_and_folders_may_change_places(bench: Bench) -> None:
    tree = await bench.tree()
    (tree.place / "README.md").unlink()
    (tree.place / "README.md").mkdir()
    (tree.place / "README.md" / "x").write_text("x")
    shutil.rmtree(tree.place / "src")
    (tree.place / "src").symlink_to("README.md")
    os.mkfifo(tree.place / "pipe")
    strange = b"caf\xe9 \x01\n*"
    (tree.place / os.fsdecode(strange)).write_text("x")
    await kept(tree)
    listed = await list_changed_paths(tree, bench.first, await tree.git.find_commit(tree.ref))
    assert isinstance(listed, tuple)
    assert sorted(map(os.fsencode, listed)) == sorted(
        [b"README.md", b"README.md/x", strange, b"src", b"src/a.py"]
    )
    (tree.place / "README.md" / "x").unlink()
    os.mkfifo(tree.place / "README.md" / "x")
    assert await kept(tree) == ""


async def test_what_is_larger_than_a_forge_takes_stays_out_of_the_commit_and_the_log_tells(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """A file without end that a command left would keep git busy at every step, and no push with it was taken."""
    tree = await bench.tree()
    for name in ("README.md", "core.dump"):  # sparse: they take no room
        with (tree.place / name).open("ab") as file:
            file.truncate(MAX_FILE_BYTES * 400)
    (tree.place / "new").write_text("new")
    began = time.monotonic()
    await kept(tree)
    assert time.monotonic() - began < 30
    head = await tree.git.find_commit(tree.ref)
    assert await list_changed_paths(tree, bench.first, head) == ("new",)
    assert sum("is left out of the commit" in line for line in caplog.messages) == 2


async def test_a_tree_of_a_process_that_died_is_taken_over_with_what_is_in_it(bench: Bench) -> None:
    tree = await bench.tree()
    (tree.place / "README.md").write_text("half done")
    (tree.git_folder / "index.lock").write_text("")
    again = await bench.tree()
    assert again.taken_over
    assert (again.place / "README.md").read_text() == "half done"
    assert await kept(again)


async def test_a_lock_is_waited_for_and_one_of_a_git_that_was_killed_goes(bench: Bench) -> None:
    tree = await bench.tree()
    (tree.place / "new").write_text("x")
    lock = tree.git_folder / "index.lock"
    lock.write_text("")
    assert kind(await snapshot(tree, "change", WHO)) == "unreachable"
    os.utime(lock, (1, 1))
    assert await kept(tree)


@pytest.mark.parametrize("damage", ["half made", "no index", "no .git", "a link", "no notes", "gone"])
async def test_a_tree_that_is_not_whole_is_made_anew(bench: Bench, damage: str) -> None:
    tree = await bench.tree()
    (tree.place / "more").write_text("more")
    commit = await kept(tree)
    match damage:
        case "half made":
            (tree.git_folder / "locked").write_text("initializing")
            (tree.place / "README.md").unlink()
        case "no index":
            (tree.git_folder / "index").unlink()
        case "no .git":
            (tree.place / ".git").unlink()
        case "a link":
            (tree.place / ".git").rename(tree.place / "was")
            (tree.place / ".git").symlink_to("was")
        case "no notes":
            shutil.rmtree(tree.git_folder)
        case _:
            shutil.rmtree(tree.place)
    again = await bench.tree()
    assert not again.taken_over
    assert sorted(each.name for each in again.place.iterdir()) == [".git", "README.md", "more", "src"]
    assert git(again.place, "rev-parse", "HEAD") == commit
    assert git(again.place, "status", "--short") == ""


async def test_another_machine_goes_on_from_what_was_pushed(bench: Bench, tmp_path: Path) -> None:
    tree = await bench.tree()
    (tree.place / "step").write_text("1")
    commit = await kept(tree)
    done = await push(tree.mirror, bench.remote(), tree.branch, commit, "", default="main")
    assert isinstance(done, PushResult)
    elsewhere = await update_mirror(tmp_path / "other", bench.remote())
    assert isinstance(elsewhere, Path)
    place = tmp_path / "elsewhere"
    start = await read_head(elsewhere, "main")
    there = await checkout(elsewhere, tree.branch, start, place, WHO, pushed=commit)
    assert isinstance(there, ItemTree), there
    (place / "step").write_text("2")
    second = await kept(there)
    done = await push(elsewhere, bench.remote(), tree.branch, second, commit, default="main")
    assert isinstance(done, PushResult)
    # And the first machine again, which has gone on by itself in the meantime.
    (tree.place / "step").write_text("lost")
    stale = await kept(tree)
    back = await bench.tree(pushed=second)
    assert not back.taken_over
    assert (back.place / "step").read_text() == "2"
    assert git(tree.mirror, "--git-dir=.", "rev-parse", f"refs/daiku/left/{stale}") == stale


async def test_a_tree_that_is_to_be_made_anew_begins_at_the_branch_that_it_goes_to(bench: Bench) -> None:
    """The work of an earlier order stays where a person can find it."""
    tree = await bench.tree()
    (tree.place / "step").write_text("1")
    (tree.place / "more").write_text("1")
    commit = await kept(tree)
    (tree.place / "loose").write_text("not committed")
    again = await bench.tree(anew=True)
    assert not again.taken_over
    assert git(again.place, "rev-parse", "HEAD") == bench.first
    assert sorted(path.name for path in again.place.iterdir()) == [".git", "README.md", "src"]
    assert git(tree.mirror, "--git-dir=.", "rev-parse", f"refs/daiku/left/{commit}") == commit


async def test_work_that_goes_on_from_what_was_pushed_stays(bench: Bench) -> None:
    tree = await bench.tree()
    (tree.place / "step").write_text("1")
    commit = await kept(tree)
    (tree.place / "step").write_text("2")
    second = await kept(tree)
    again = await bench.tree(pushed=commit)
    assert again.taken_over
    assert git(again.place, "rev-parse", "HEAD") == second


async def test_the_default_branch_may_move_on_without_the_item(bench: Bench) -> None:
    tree = await bench.tree()
    (tree.place / "step").write_text("1")
    commit = await kept(tree)
    bench.server.commit("o/r", {"README.md": "theirs\n"})
    again = await bench.tree()
    assert again.taken_over
    assert git(again.place, "rev-parse", "HEAD") == commit


async def test_items_share_a_copy_and_no_branch(bench: Bench) -> None:
    made = await asyncio.gather(*(bench.tree(f"daiku/{number}", f"tree-{number}") for number in range(4)))
    for tree in made:
        (tree.place / "own").write_text(tree.branch)
    assert len(set(await asyncio.gather(*map(kept, made)))) == 4
    start = await read_head(made[0].mirror, "main")
    taken = await checkout(made[0].mirror, "daiku/0", start, bench.own / "trees" / "x", WHO)
    assert kind(taken) == "exists"
    await remove_tree(made[0].mirror, made[0].place)
    assert not made[0].place.exists()
    assert isinstance(
        await checkout(made[0].mirror, "daiku/0", start, bench.own / "trees" / "x", WHO), ItemTree
    )


async def test_a_tree_goes_whatever_its_folders_allow(bench: Bench) -> None:
    tree = await bench.tree()
    for name in ("a", "a/b"):
        (tree.place / name).mkdir()
    (tree.place / "a" / "b" / "file").write_text("x")
    (tree.place / "a" / "out").symlink_to("/")
    for name in ("a/b", "a"):
        (tree.place / name).chmod(0o555)
    await remove_tree(tree.mirror, tree.place)
    assert not tree.place.exists()
    assert not tree.git_folder.exists()


async def test_nothing_of_somebody_else_is_taken_away(bench: Bench) -> None:
    place = await bench.mirror()
    (bench.own / "taken").mkdir()
    (bench.own / "taken" / "letter").write_text("dear")
    (bench.own / "link").symlink_to("taken")
    (bench.own / "file").write_text("x")
    for name in ("taken", "link", "file"):
        assert kind(await checkout(place, "daiku/1-x", bench.first, bench.own / name, WHO)) == "exists"
    assert (bench.own / "taken" / "letter").read_text() == "dear"


@pytest.mark.parametrize("branch", ["-b", "HEAD", "a..b", "", "refs/heads/x", "a b"])
async def test_a_name_that_is_no_branch_is_refused(bench: Bench, branch: str) -> None:
    assert kind(await checkout(await bench.mirror(), branch, bench.first, bench.own / "t", WHO)) == "unusable"


async def test_a_start_that_is_not_there_and_a_repository_without_one_are_refused(bench: Bench) -> None:
    place = await bench.mirror()
    assert kind(await checkout(place, "daiku/2", "1" * 40, bench.own / "t", WHO)) == "gone"
    assert kind(await checkout(place, "daiku/2", "main", bench.own / "t", WHO)) == "unusable"
    bench.server.create("o/empty")
    empty = await update_mirror(bench.own / "mirrors", bench.remote(name="o/empty"))
    assert isinstance(empty, Path)
    assert kind(await checkout(empty, "daiku/2", "", bench.own / "t", WHO)) == "empty"
    assert kind(await checkout(place, "daiku/2", "", bench.own / "t", WHO)) == "unusable"
    assert not (bench.own / "t").exists()


async def test_a_full_history_of_names_is_told_of_a_rename(bench: Bench) -> None:
    tree = await bench.tree()
    (tree.place / ".github" / "workflows").mkdir(parents=True)
    (tree.place / "src" / "a.py").rename(tree.place / ".github" / "workflows" / "ci.yml")
    (tree.place / "image").write_bytes(b"\0\1\2")
    await kept(tree)
    assert await list_changed_paths(tree, bench.first, await tree.git.find_commit(tree.ref)) == (
        ".github/workflows/ci.yml",
        "image",
        "src/a.py",
    )
    assert await list_changed_paths(tree, bench.first, bench.first) == ()
    assert kind(await list_changed_paths(tree, "--output=x", bench.first)) == "unusable"
    assert kind(await list_changed_paths(tree, bench.first, "--output=x")) == "unusable"

"""Copies of repositories: made once for all processes, brought up to date, and made anew after a death half-way."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daiku.tools.git.mirror import build_kept_ref, lock_mirror, read_head, read_kept, update_mirror
from daiku.tools.git.remote import read_default_branch
from tests.services.git_server import raw_object, run_git
from tests.tools.git.bench import TOKEN, Bench, bench_at, git, kind
from tests.tools.mcp.play import until
from tests.tools.shell.test_shell import alive

pytestmark = pytest.mark.slow  # real git

ALONE = """
import asyncio, sys
from pathlib import Path
from pydantic import SecretStr
from daiku.tools.git.mirror import update_mirror
from daiku.tools.git.remote import Remote
url, folder = sys.argv[1:]
print(asyncio.run(update_mirror(Path(folder), Remote(url, "bot", SecretStr(sys.stdin.readline().strip()), here=True))))
"""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_at(tmp_path) as made:
        yield made


def another_process(bench: Bench) -> subprocess.Popen[str]:
    """One that makes the copy, as this one would."""
    argv = [sys.executable, "-c", ALONE, bench.remote().url, str(bench.own / "mirrors")]
    started = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert started.stdin is not None
    started.stdin.write(f"{TOKEN}\n")
    started.stdin.flush()
    return started


async def test_a_copy_is_made_once_and_brought_up_to_date(bench: Bench) -> None:
    place = await bench.mirror()
    assert await read_head(place, "main") == bench.first
    second = bench.server.commit("o/r", {"b": "b"})
    extra = bench.server.commit("o/r", {"c": "c"}, branch="release/1")
    assert await bench.mirror() == place
    assert await read_head(place, "main") == second
    assert await read_head(place, "release/1") == extra
    git(bench.server.place("o/r"), "branch", "-D", "release/1")
    await bench.mirror()
    assert await read_head(place, "release/1") == ""


async def test_two_addresses_never_share_a_copy(bench: Bench) -> None:
    bench.server.create("o-r")
    one, other = await bench.mirror(), await update_mirror(bench.own / "mirrors", bench.remote(name="o-r"))
    assert isinstance(other, Path)
    assert one != other
    assert TOKEN not in one.name


async def test_the_default_branch_may_be_renamed(bench: Bench) -> None:
    place = await bench.mirror()
    git(bench.server.place("o/r"), "branch", "-m", "main", "trunk")
    await bench.mirror()
    assert await read_default_branch(bench.remote()) == "trunk"
    assert (await read_head(place, "main"), await read_head(place, "trunk")) == ("", bench.first)
    git(bench.server.place("o/r"), "branch", "-m", "trunk", "trunk/new")  # where a file was is a folder now
    await bench.mirror()
    assert await read_head(place, "trunk/new") == bench.first


async def test_a_repository_without_a_commit_is_copied_too(bench: Bench) -> None:
    bench.server.create("o/empty")
    place = await update_mirror(bench.own / "mirrors", bench.remote(name="o/empty"))
    assert isinstance(place, Path), place
    assert await read_default_branch(bench.remote(name="o/empty")) == ""
    assert await read_head(place, "main") == ""


async def test_what_was_kept_of_an_item_is_brought_along_and_goes_with_it(bench: Bench) -> None:
    git(bench.server.place("o/r"), "update-ref", build_kept_ref("x-1"), bench.first)
    git(bench.server.place("o/r"), "update-ref", build_kept_ref("x-12"), bench.first)
    place = await update_mirror(bench.own / "mirrors", bench.remote(), kept_name="x-1")
    assert isinstance(place, Path), place
    assert (await read_kept(place, "x-1"), await read_kept(place, "x-12")) == (bench.first, "")
    git(bench.server.place("o/r"), "update-ref", "-d", build_kept_ref("x-1"))
    assert await update_mirror(bench.own / "mirrors", bench.remote(), kept_name="x-1") == place
    assert await read_kept(place, "x-1") == ""
    for strange in ("*", "--x", "x:refs/heads/main"):
        assert (
            kind(await update_mirror(bench.own / "mirrors", bench.remote(), kept_name=strange)) == "unusable"
        )


async def test_what_is_not_there_is_gone(bench: Bench) -> None:
    assert kind(await update_mirror(bench.own / "mirrors", bench.remote(name="o/none"))) == "gone"
    assert [each.name for each in (bench.own / "mirrors").iterdir() if each.is_dir()] == []


async def test_a_process_killed_half_way_leaves_nothing_in_the_way(bench: Bench) -> None:
    bench.server.faults = [("/git-upload-pack?", "hang")]
    process = another_process(bench)
    await until(bench.server.waiting.is_set)
    assert list((bench.own / "mirrors").glob("*.new-*"))
    process.kill()
    process.communicate()
    await until(lambda: not alive(bench.server.url))  # its git ends with it
    place = await bench.mirror()
    assert await read_head(place, "main") == bench.first
    assert not list((bench.own / "mirrors").glob("*.new-*"))


async def test_locks_of_a_git_that_was_killed_are_taken_away(bench: Bench) -> None:
    place = await bench.mirror()
    second = bench.server.commit("o/r", {"b": "b"})
    git(place, "--git-dir=.", "pack-refs", "--all")
    for name in ("packed-refs.lock", "refs/remotes/origin/main.lock", "config.lock"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("")
    await bench.mirror()
    assert await read_head(place, "main") == second


async def test_two_processes_make_one_copy(bench: Bench) -> None:
    processes = [another_process(bench) for _ in range(2)]
    said = [await asyncio.to_thread(process.communicate) for process in processes]
    place = await bench.mirror()
    assert [out.strip() for out, _ in said] == [str(place)] * 2
    assert git(place, "--git-dir=.", "fsck", "--full") == ""


async def test_a_process_that_holds_the_copy_is_waited_for_but_not_for_ever(bench: Bench) -> None:
    place = await bench.mirror()
    async with lock_mirror(place) as held, lock_mirror(place, seconds=0.2) as second:
        assert (held, second) == (True, False)
        waits = asyncio.ensure_future(bench.mirror())
        await asyncio.wait({waits}, timeout=0.3)
        assert not waits.done()
    assert await waits == place


async def test_a_damaged_copy_is_made_anew_where_nobody_works_on_it(bench: Bench) -> None:
    place = await bench.mirror()
    (place / "HEAD").write_text("")
    await bench.mirror()
    assert await read_head(place, "main") == bench.first
    tree = await bench.tree()
    (place / "HEAD").write_text("")
    assert kind(await update_mirror(bench.own / "mirrors", bench.remote())) == "damaged"
    assert (tree.place / "README.md").is_file()


async def test_a_damaged_object_is_noticed_when_it_comes(bench: Bench) -> None:
    """A tree with a file `.git/config`, as somebody may send it."""
    place = bench.server.place("o/r")
    blob = run_git(place, "rev-parse", "main:README.md")
    inner = raw_object(place, "tree", b"100644 config\0" + bytes.fromhex(blob))
    evil = raw_object(place, "tree", b"40000 .git\0" + bytes.fromhex(inner))
    commit = run_git(place, "commit-tree", evil, "-p", "main", "-m", "evil")
    run_git(place, "update-ref", "refs/heads/main", commit)
    assert kind(await update_mirror(bench.own / "mirrors", bench.remote())) == "damaged"

"""Changes of an item's work tree, read from real git."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from daiku.team.rules.proof.tree_changes import TreeChanges
from daiku.tools.git.itemtree import diff_commits, diff_work_tree
from daiku.tools.git.ownrun import GitRefusal
from tests.tools.git.bench import Bench, bench_at, git
from tests.tools.git.test_itemtree import kept

pytestmark = pytest.mark.slow  # real git


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_at(tmp_path) as made:
        yield made


async def test_every_change_of_the_tree_counts_committed_or_not(bench: Bench) -> None:
    """B23.2: whoever made it, and the tree with its index stays as it is."""
    tree = await bench.tree()
    (tree.place / "committed.py").write_text("# TODO: later\n")
    await kept(tree)
    (tree.place / "README.md").write_text("one\n-- TODO\n")
    (tree.place / "src" / "a.py").unlink()
    (tree.place / 'naïve "x".py').write_text("raise NotImplementedError\n")
    (tree.place / "picture.png").write_bytes(b"\x89PNG\0\0# TODO\0")
    before = git(tree.place, "status", "--short")
    changes = await diff_work_tree(bench.own / "mirrors", tree.place, bench.first)
    assert isinstance(changes, TreeChanges), changes
    kinds = {each.path: (each.kind, each.added, each.removed) for each in changes.files}
    assert kinds == {
        "README.md": ("edit", 1, 0),
        "committed.py": ("create", 1, 0),
        'naïve "x".py': ("create", 1, 0),
        "picture.png": ("create", 0, 0),
        "src/a.py": ("delete", 0, 1),
    }
    assert {(each.path, each.text) for each in changes.leftovers} == {
        ("README.md", "-- TODO"),
        ("committed.py", "# TODO: later"),
        ('naïve "x".py', "raise NotImplementedError"),
    }
    assert git(tree.place, "status", "--short") == before
    assert not list(tree.git_folder.glob("look-*"))

    await kept(tree)
    head = await tree.git.find_commit(tree.ref)
    assert await diff_commits(tree.git, bench.first, head) == changes


async def test_what_was_put_in_and_taken_out_again_is_no_change(bench: Bench) -> None:
    tree = await bench.tree()
    (tree.place / "README.md").write_text("two  # TODO\n")
    await kept(tree)
    (tree.place / "README.md").write_text("one\n")
    assert await diff_work_tree(bench.own / "mirrors", tree.place, bench.first) == TreeChanges()


async def test_a_folder_that_is_no_item_s_tree_cannot_be_read(bench: Bench, tmp_path: Path) -> None:
    await bench.mirror()
    found = await diff_work_tree(bench.own / "mirrors", tmp_path, bench.first)
    assert isinstance(found, GitRefusal)

"""Two folders of items with one home: each worker works its own, and a name that is in both is told."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.work.test_worker import SLOW, SLOW_TREE, Lab, lab, until

pytestmark = pytest.mark.slow
__all__ = ["lab"]


def another(lab: Lab) -> Lab:
    """A copy of the repository and an empty folder of items beside the first ones, with the same home."""
    root = lab.root / "other"
    (root / "items").mkdir(parents=True)
    shutil.copytree(lab.root / "repo", root / "repo")
    (root / "home").symlink_to(lab.root / "home")
    return replace(lab, root=root)


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def standing(lab: Lab) -> tuple[str, int, str]:
    """How the item `slow` stands; what it used may still be noted by its dying attempt."""
    shown = lab.shown("files:slow")
    return shown["state"], shown["attempts"], shown["error"]


@pytest.mark.slow(seconds=15)
def test_a_worker_of_another_folder_leaves_items_as_they_are(lab: Lab) -> None:
    lab.script(*SLOW)
    lab.item("slow")
    process = lab.start(*lab.once)
    until((lab.root / "home/items" / SLOW_TREE / "a.txt").exists)
    process.kill()  # what it had under way is there for the taking
    process.communicate()
    assert standing(lab) == ("processing", 1, "")
    other = another(lab)
    path = other.item("mend")
    code, told = other.work()
    assert (code, [(each["item"], each["state"]) for each in told]) == (0, [("files:mend", "done")])
    assert "The work is done" in path.read_text("utf-8")
    assert standing(lab) == ("processing", 1, "")
    code, told = lab.work()
    assert (code, [(each["item"], each["state"]) for each in told]) == (0, [("files:slow", "done")])


@pytest.mark.slow(seconds=15)
def test_a_file_with_the_name_of_an_item_in_another_folder_is_told_and_not_worked(lab: Lab) -> None:
    lab.item("mend")
    assert lab.work()[0] == 0
    done, other = lab.shown("files:mend"), another(lab)
    path, fine = other.item("mend", "Do something else."), other.item("fine")
    before = path.read_text("utf-8")
    code, out, err = other.daiku(*other.once)
    assert code == 1
    assert [(each["item"], each["state"]) for each in lines(out)] == [("files:fine", "done")]
    assert "an item of the same name lies in another folder" in err
    assert f"mend ({lab.root / 'items'}, {lab.root / 'repo'})" in err
    assert path.read_text("utf-8") == before
    assert "state: done" in fine.read_text("utf-8")
    assert lab.shown("files:mend") == done
    other.git("show-ref", "--verify", "--quiet", "refs/heads/daiku/fine")
    moved: Path = path.rename(path.with_name("mend-too.md"))
    assert other.work()[0] == 0
    assert "state: done" in moved.read_text("utf-8")

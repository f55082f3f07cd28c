"""Changes of an item's work tree since a commit, read from git and never from the record of edits."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from daiku.core.proof.tree_changes import TreeChanges, parse_tree_changes
from daiku.tools.git.itemtree import NO_VARIABLES, ItemTree, notes_of, stage_all
from daiku.tools.git.ownrun import COMMIT, OwnGit
from daiku.tools.git.refusals import GitRefusal, refusal_of, refused

_DIFF = ("diff", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none")
_SETTINGS = (("core.quotePath", "false"), ("core.bigFileThreshold", "2m"))
"""A file above the threshold counts as binary: its lines are not searched."""


async def changes_between(git: OwnGit, base: str, commit: str) -> TreeChanges | GitRefusal:
    """Return what `commit` has changed since it left `base`, as `git diff base...commit` shows it."""
    if not COMMIT.fullmatch(base) or not COMMIT.fullmatch(commit):
        return refused("unusable")
    return await _read_changes(git, (f"{base}...{commit}",))


async def changes_since(mirrors: Path, place: Path, base: str) -> TreeChanges | GitRefusal:
    """Return what the work tree at `place` has changed since the commit `base`, committed or not. `mirrors` is the
    folder of the bare copies, one of which it belongs to. The tree and its index stay as they are."""
    tree = await asyncio.to_thread(_tree_at, mirrors, place)
    if tree is None or not COMMIT.fullmatch(base):
        return refused("unusable")
    index = tree.notes / f"look-{uuid4().hex}"
    env = {"GIT_INDEX_FILE": str(index)}
    try:
        with suppress(FileNotFoundError):
            await asyncio.to_thread(shutil.copyfile, tree.notes / "index", index)
        return await stage_all(tree, env) or await _read_changes(tree.git, ("--cached", base), env)
    except OSError:
        return refused("full")
    finally:
        for left in (index, index.with_name(f"{index.name}.lock")):
            left.unlink(missing_ok=True)


async def _read_changes(
    git: OwnGit, what: tuple[str, ...], env: Mapping[str, str] = NO_VARIABLES
) -> TreeChanges | GitRefusal:
    listed = await git.run(*_DIFF, "-z", "--raw", "--numstat", *what, "--", env=env, settings=_SETTINGS)
    if (why := refusal_of(listed)) is not None:
        return why
    shown = await git.run(*_DIFF, "-U0", *what, "--", env=env, settings=_SETTINGS)
    return refusal_of(shown) or parse_tree_changes(listed.text, shown.text)


def _tree_at(mirrors: Path, place: Path) -> ItemTree | None:
    for mirror in sorted(mirrors.glob("*")):
        if mirror.is_dir() and (notes := notes_of(mirror, place)) is not None:
            return ItemTree(place, mirror, "", notes)
    return None

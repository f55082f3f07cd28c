"""Removal of old work trees of ended items."""

from __future__ import annotations

import asyncio
from pathlib import Path

from daiku.domain.items.item import OVER
from daiku.items.items import ItemStore
from daiku.items.processing import build_folder_name
from daiku.tools.git.itemtree import remove_tree
from daiku.tools.git.mirror import find_mirror_path

MAX_AGE_SECONDS = 7 * 86_400.0
"""Seconds for which a tree with unpushed work is kept, so that a person can look at it."""


async def remove_old_trees(home: Path, items: ItemStore, now: float) -> None:
    """Remove the trees of ended items that were not changed for MAX_AGE_SECONDS. Raises DaikuError."""
    names = await asyncio.to_thread(_list_old_folders, home / "items", now - MAX_AGE_SECONDS)
    if not names:
        return
    for record in items.records(*sorted(OVER)):
        name = build_folder_name(record.item)
        if name in names and record.claim is not None:
            await remove_tree(
                find_mirror_path(home / "mirrors", record.claim.clone_url), home / "items" / name
            )


def _list_old_folders(folder: Path, before: float) -> frozenset[str]:
    try:
        return frozenset(path.name for path in folder.iterdir() if path.stat().st_mtime < before)
    except OSError:  # no such folder, or a tree was removed meanwhile
        return frozenset()

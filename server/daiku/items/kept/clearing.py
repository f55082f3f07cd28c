"""Takes away the work trees of items that have been over for a while."""

from __future__ import annotations

import asyncio
from pathlib import Path

from daiku.domain.items.item import OVER
from daiku.items.items import ItemStore
from daiku.items.processing import folder_of
from daiku.tools.git.itemtree import remove_tree
from daiku.tools.git.mirror import mirror_path

LEFT_SECONDS = 7 * 86_400.0
"""How long a tree stays in which something is that was not pushed: a person may want to look at it."""


async def clear_old(home: Path, items: ItemStore, now: float) -> None:
    """Take away the trees of items that are over and that nobody has touched for so long. Raises DaikuError."""
    old = await asyncio.to_thread(_old, home / "items", now - LEFT_SECONDS)
    if not old:
        return
    for record in items.records(*sorted(OVER)):
        name = folder_of(record.item)
        if name in old and record.claim is not None:
            await remove_tree(mirror_path(home / "mirrors", record.claim.clone_url), home / "items" / name)


def _old(folder: Path, before: float) -> frozenset[str]:
    try:
        return frozenset(path.name for path in folder.iterdir() if path.stat().st_mtime < before)
    except OSError:  # there is none, or a tree goes while we look
        return frozenset()

"""Takeover of an item on a machine without its work tree: restore the kept tree, and report the loss to the run."""

from __future__ import annotations

import logging
from pathlib import Path

from daiku.items.items import ItemStore
from daiku.items.record import Claim, ItemRecord
from daiku.texts.text import text
from daiku.tools.git.itemtree import ItemTree
from daiku.tools.git.mirror import read_kept
from daiku.tools.git.ownrun import OwnGit

logger = logging.getLogger(__name__)
_MARK = "daiku-attempt"
LOST = (
    "The work tree was lost with the machine that you worked on. It was made anew on another one and stands at commit "
    "{commit}, as it was kept {when}. Every step of the plan that is completed is in it; what you "
    "changed after that is gone, and so are the states that could be restored. Look at the files before you go on, and "
    "do again what is missing."
)


async def find_newest_commit(place: Path, name: str, pushed: str) -> str:
    """Return an item's last commit on the server: the kept one, or `pushed` if that has more."""
    kept_commit = await read_kept(place, name)
    if not kept_commit:
        return pushed
    return pushed if pushed and not await OwnGit(place).is_descendant(kept_commit, pushed) else kept_commit


def report_loss(items: ItemStore, record: ItemRecord, tree: ItemTree, commit: str) -> None:
    """Log the loss and tell the run, if a started item has a new tree or an outdated one on this machine.

    Raises ClaimLost.
    """
    facts = record.facts
    if not record.run or facts.whole or facts.ended is not None or _has_last_attempt(tree, facts.attempt):
        return
    logger.warning("%s", text("work.taken_elsewhere", item=record.item, commit=commit[:12]))
    when = "after the last completed step" if facts.kept else "before any step was completed"
    items.note(Claim(record.item, record.fence), lost=record.fence)
    message = LOST.format(commit=commit[:12], when=when)
    items.messages.add(record.item, message, f"lost-{record.fence}", "system")


def note_attempt(items: ItemStore, claim: Claim, tree: ItemTree) -> None:
    """Record, also next to the tree, that the agent is started in it now. Raises ClaimLost."""
    (tree.git_folder / _MARK).write_text(str(claim.fence), "ascii")
    items.note(claim, attempt=claim.fence)


def _has_last_attempt(tree: ItemTree, attempt: int) -> bool:
    if not tree.taken_over:
        return False
    try:
        return int((tree.git_folder / _MARK).read_text("ascii")) >= attempt
    except (OSError, ValueError):
        return not attempt

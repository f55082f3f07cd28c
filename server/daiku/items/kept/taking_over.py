"""Takes an item over on a machine that does not have its work tree: from what was kept; the run is told what is lost."""

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


async def newest_of(place: Path, name: str, pushed: str) -> str:
    """The last commit of an item that the server has: the one that was kept, or `pushed` where that has more."""
    kept = await read_kept(place, name)
    if not kept:
        return pushed
    return pushed if pushed and not await OwnGit(place).is_descendant(kept, pushed) else kept


def tell_loss(items: ItemStore, record: ItemRecord, tree: ItemTree, commit: str) -> None:
    """Tell the log and the run what is lost, where an item that was under way has a new tree, or one of this machine
    that another machine has left behind since. Raises ClaimLost."""
    facts = record.facts
    if not record.run or facts.whole or facts.ended is not None or _was_last_here(tree, facts.attempt):
        return
    logger.warning("%s", text("work.taken_elsewhere", item=record.item, commit=commit[:12]))
    when = "after the last completed step" if facts.kept else "before any step was completed"
    items.note(Claim(record.item, record.fence), lost=record.fence)
    words = LOST.format(commit=commit[:12], when=when)
    items.messages.add(record.item, words, f"lost-{record.fence}", "system")


def note_attempt(items: ItemStore, claim: Claim, tree: ItemTree) -> None:
    """Note, beside the tree too, that the agent is started in it now. Raises ClaimLost."""
    (tree.git_folder / _MARK).write_text(str(claim.fence), "ascii")
    items.note(claim, attempt=claim.fence)


def _was_last_here(tree: ItemTree, attempt: int) -> bool:
    if not tree.taken_over:
        return False
    try:
        return int((tree.git_folder / _MARK).read_text("ascii")) >= attempt
    except (OSError, ValueError):
        return not attempt

"""Processing of one item from claim to end: read, check out, run an attempt's process, push, report."""

from __future__ import annotations

import asyncio
import logging
import re
import unicodedata
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path

from daiku.dataclass import replace
from daiku.domain.errors import DaikuError
from daiku.domain.items.forge import PASSING, ForgeRefusal, ItemText
from daiku.domain.items.item import ItemKey, ItemState, PostComment, SetState
from daiku.domain.runs import RunResult, has_answer
from daiku.items.applying import apply_open
from daiku.items.contexts.files import is_pause_wanted
from daiku.items.ending import end_item, end_outage, requeue_refused
from daiku.items.hearing import poll_while_running
from daiku.items.kept.pushing import ItemCheckout, as_refusal, find_newest_commit, note_attempt, report_loss
from daiku.items.parts import ClaimedItem
from daiku.items.record import PAUSE_ORDERS, ClaimLost, ItemRecord
from daiku.items.retrying import (
    MOST_TAKEOVERS,
    MOST_TRIES,
    explain_given_up,
    give_back,
    is_given_up,
    is_outage,
    log_outage,
)
from daiku.texts.text import Text, render, text
from daiku.tools.git.itemtree import Identity, checkout
from daiku.tools.git.mirror import read_head, update_mirror
from daiku.tools.git.ownrun import GitRefusal, OwnGit
from daiku.tools.git.remote import Remote

logger = logging.getLogger(__name__)
PREFIX = "daiku/"
MOST_SLUG = 40
"""Maximum characters of the title in a branch name."""
MOST_BRANCHES = 100
"""Maximum number of names tried for an item's branch."""
PAUSE_SECONDS = 0.25
"""Poll interval in seconds of the file that pauses everything."""
APPLY_SECONDS = 0.5
"""Poll interval in seconds of an attempt's intents."""
LONGEST_WAIT = 30.0
"""The same while a forge or a server is unreachable."""


async def process_item(item: ClaimedItem) -> ItemState:
    """Process the item until it is over, waits, or is given back.

    Return its state. Raises ClaimLost, DaikuError.
    """
    facts = item.record.facts
    if facts.takeovers >= MOST_TAKEOVERS and facts.ended is None:
        return _give_up(item, text("work.broke_off"), MOST_TAKEOVERS)
    begun = asyncio.Event()
    async with _run_in_background(_watch_orders(item, begun)):
        place = await _prepare(item)
        if isinstance(place, ForgeRefusal):
            return await _refuse(item, place)
        item = replace(item, git=place)
        result = item.record.facts.ended
        if result is None and (paused_state := await _pause_before_attempt(item)) is not None:
            return paused_state
        begun.set()
        if result is None:
            note_attempt(item.parts.items, item.claim, place.tree)
            result = await _run_attempt(item)
    if not isinstance(result, RunResult):
        return _retry_or_give_up(item, result)
    record = item.record
    item = replace(item, git=replace(place, allowed=item.parts.allowed(record.shown.session_id)))
    if record.facts.ended is None:  # otherwise only reporting it failed so far
        breaker = item.parts.breaker
        if is_outage(result):
            counts = breaker.trip(record.item)
            if not is_given_up(record.facts):
                return await end_outage(item, result, counts=counts)
        else:
            item.note(tries=0, takeovers=0)
            if has_answer(result.status) or result.usage.completion_tokens:
                breaker.close(record.item)
    return await end_item(item, result)


@asynccontextmanager
async def _run_in_background(*work: Coroutine[object, object, None]) -> AsyncGenerator[None]:
    """Run coroutines in the background until the block ends. Log their errors."""
    tasks = {asyncio.create_task(coroutine) for coroutine in work}
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for error in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(error, Exception):
                logger.error("a background task of an item failed", exc_info=error)


async def _run_attempt(item: ClaimedItem) -> RunResult | Text:
    """Run the attempt's process to its end, applying its intents. Return the reason if it has no result."""
    async with _run_in_background(_apply_while_running(item), poll_while_running(item)):
        result = await item.parts.start(item.claim, item.place.tree.place)
    if item.parts.items.current_order(item.claim) is None:
        raise ClaimLost(item.claim.item)
    if result is not None:
        return result
    item_shown = item.record.shown  # its session was busy, or it was killed
    return item_shown.error if item_shown.state == "queued" else text("work.broke_off")


async def _prepare(item: ClaimedItem) -> ItemCheckout | ForgeRefusal:
    """Read the item's current text, report that it is processed, and check it out."""
    record, items = item.record, item.parts.items
    claimed = record.claim or await item.source.read(record.key)
    if isinstance(claimed, ForgeRefusal):
        return claimed
    if claimed.head_repository:
        return ForgeRefusal(kind="forbidden", message=text("work.of_a_fork", name=claimed.head_repository))
    branch = claimed.head or record.shown.branch or build_branch_name(record.key, claimed.title)
    was_started = record.claim is not None and bool(record.facts.base_commit)
    fresh = not was_started or bool(record.facts.rounds and not record.run)
    news_after = record.facts.news_after or claimed.claimed_at
    claimed = items.change(item.claim, claim=claimed, branch=branch).claim or claimed
    item.note(news_after=news_after)
    if record.facts.ended is None:
        item.want("state", SetState(state="processing"))
    applied = await apply_open(item)
    # Refusals of earlier intents do not matter here, except that the label must not be changed.
    if item.record.facts.ended is None and (why := applied.refused.get("state")) is not None:
        return why
    return await _check_out(item, claimed, branch, fresh=fresh)


async def _check_out(
    item: ClaimedItem, claimed: ItemText, branch: str, *, fresh: bool
) -> ItemCheckout | ForgeRefusal:
    """Check out the item's branch. `fresh`: nothing was done yet for this order or round."""
    record, home = item.record, item.parts.home
    access = await item.source.access(record.key, claimed.clone_url)
    if isinstance(access, ForgeRefusal):
        return access
    remote = Remote(access.url, access.user, access.secret, here=access.local or access.is_plain_http)
    name = build_folder_name(record.item)
    mirrored = await update_mirror(home / "mirrors", remote, kept_name=name)
    if isinstance(mirrored, GitRefusal):
        return as_refusal(mirrored)
    if not claimed.default:  # a local folder: use the branch that is checked out there
        claimed = await _with_default_branch(item, claimed, remote)
    start = await read_head(mirrored, claimed.head or claimed.base or claimed.default)
    pushed, needs_new_tree = record.facts.pushed, False
    if fresh and not claimed.head and not pushed:
        branch = await _find_free_branch(mirrored, branch)
        item.parts.items.change(item.claim, branch=branch)
    if fresh:
        pushed = await _find_remote_head(mirrored, branch, record, start if claimed.head else "")
        needs_new_tree = bool(record.facts.pushed) and not pushed
        record = item.note(base_commit=start, pushed=pushed)
    elif claimed.head and not pushed:
        pushed = record.facts.base_commit
    work = item.parts.config.work
    identity = Identity(work.git_name, work.git_email)
    newest = await find_newest_commit(mirrored, name, pushed)
    tree = await checkout(
        mirrored, branch, start, home / "items" / name, identity, pushed=newest, recreate=needs_new_tree
    )
    if isinstance(tree, GitRefusal):
        return as_refusal(tree)
    report_loss(item.parts.items, record, tree, newest or record.facts.base_commit)
    item.note(whole=False)
    return ItemCheckout(name, tree, remote, identity, claimed.default)


async def _find_free_branch(mirrored: Path, branch: str) -> str:
    """Return an unused branch name on the server: `branch`, or with a number appended."""
    names = (branch, *(f"{branch}-{number}" for number in range(2, MOST_BRANCHES)))
    for name in names:
        if not await read_head(mirrored, name):
            return name
    return branch


async def _find_remote_head(mirrored: Path, branch: str, record: ItemRecord, head: str) -> str:
    """Return the commit on the server from which a new order or round continues.

    A request's is `head`. An issue's branch counts if it is Daiku's, also with more commits. Return "" if the
    branch was deleted, often after a merge; the order then starts from the beginning.
    """
    pushed = record.facts.pushed
    if head or not pushed:
        return head
    remote_head = await read_head(mirrored, branch)
    if remote_head and await OwnGit(mirrored).is_descendant(remote_head, pushed):
        return remote_head
    return pushed if remote_head or record.facts.rounds or record.key.kind == "request" else ""


async def _with_default_branch(item: ClaimedItem, claimed: ItemText, remote: Remote) -> ItemText:
    from daiku.tools.git.remote import read_default_branch  # when used

    branch = await read_default_branch(remote)
    name = branch if isinstance(branch, str) and branch else "main"
    claimed = claimed.model_copy(update={"default": name, "base": claimed.base or name})
    item.parts.items.change(item.claim, claim=claimed)
    return claimed


async def _apply_while_running(item: ClaimedItem) -> None:
    """Apply the attempt's intents as they are recorded, until another worker claims the item."""
    wait = APPLY_SECONDS
    with suppress(ClaimLost):
        while True:
            await asyncio.sleep(wait)
            with log_outage(item.claim.item):
                applied = await apply_open(item)
                wait = min(2 * wait, LONGEST_WAIT) if applied.transient or applied.refused else APPLY_SECONDS


async def _watch_orders(item: ClaimedItem, begun: asyncio.Event) -> None:
    """Signal a pause when the worker must stop or the pause file exists.

    Before the attempt has `begun`, also acknowledge the user's pause.
    """
    items, claim, stopping = item.parts.items, item.claim, item.parts.stopping
    with suppress(ClaimLost):  # the attempt finds out too
        while True:
            with log_outage(claim.item):
                if stopping.is_set():
                    items.signal(claim, "give_back", after="")
                    return
                if is_pause_wanted(item.parts.home):
                    items.signal(claim, "halt", after="")
                    return
                if not begun.is_set() and items.current_order(claim) == "pause":
                    items.signal(claim, "pausing", after="pause")
            await asyncio.sleep(PAUSE_SECONDS)


async def _pause_before_attempt(item: ClaimedItem) -> ItemState | None:
    """Return the state of an item that was paused or given back during checkout; None if it continues."""
    items = item.parts.items
    if is_pause_wanted(item.parts.home):
        items.signal(item.claim, "halt", after="")
    order = items.current_order(item.claim)
    if order in PAUSE_ORDERS:
        item.want("state", SetState(state="paused"))
        await apply_open(replace(item, git=None))
        items.change(item.claim, state="paused")
        return "paused"
    if order == "give_back":
        items.change(item.claim, state="queued")
        return "queued"
    return None


async def _refuse(item: ClaimedItem, why: ForgeRefusal) -> ItemState:
    """End an item that cannot start: queue it if a retry may help, else fail it with one comment."""
    record = item.record
    if why.kind in PASSING:
        return _give_up(item, why.message) if is_given_up(record.facts) else requeue_refused(item, why)
    logger.warning("%s: %s", record.item, why.message)
    if why.kind not in ("gone", "moved"):
        _want_end(item, "failed", why.message)
        transient = (await apply_open(item)).transient
        if transient is not None and not is_given_up(record.facts):
            return requeue_refused(item, transient)
    item.parts.items.change(item.claim, state="failed", error=why.message)
    return "failed"


def _want_end(item: ClaimedItem, state: ItemState, why: Text) -> None:
    """Record intents for a comment with the reason and for the label. A later order gets a new comment."""
    operation = f"refused-{sha256(item.record.labelled_at.encode()).hexdigest()[:8]}"
    item.want(operation, PostComment(text=render(why, item.parts.language)))
    item.want("state", SetState(state=state))


def retry_broken(item: ClaimedItem, error: Exception) -> ItemState | None:
    """Queue an item again after an error, or give it up. Return its state.

    The state is `processing` if the database fails, None if another worker has it.
    """
    why = error.failure.message if isinstance(error, DaikuError) else text("work.broke_off")
    try:
        return _retry_or_give_up(item, why)
    except DaikuError as database_error:
        logger.warning("%s: %s", item.claim.item, database_error.failure.message)
        return None if isinstance(database_error, ClaimLost) else "processing"


def _retry_or_give_up(item: ClaimedItem, why: Text) -> ItemState:
    """Queue an item again after an error, or give it up after too many tries. Raises ClaimLost, DaikuError."""
    if is_given_up(item.record.facts):
        return _give_up(item, why)
    return give_back(item.parts.items, item.claim, why)


def _give_up(item: ClaimedItem, why: Text, count: int = MOST_TRIES) -> ItemState:
    """End an item that was tried too often. The next poll applies its comment and label."""
    why = explain_given_up(why, count)
    logger.warning("%s: %s", item.claim.item, why)
    _want_end(item, "dead", why)
    item.parts.items.change(item.claim, state="dead", error=why)
    return "dead"


def build_folder_name(item: str) -> str:
    """Return the name of an item's folder: readable, valid on every file system, and unique by its hash."""
    readable = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in item)[:80]
    return f"{readable}-{sha256(item.encode()).hexdigest()[:10]}"


def build_branch_name(key: ItemKey, title: str) -> str:
    """Return `daiku/<number>-<slug>`, or `daiku/<slug of its name>` for a file."""
    if key.source == "files":
        return f"{PREFIX}{to_slug(key.name) or 'item'}"
    words = to_slug(title)
    return f"{PREFIX}{key.name}-{words}" if words else f"{PREFIX}{key.name}"


def to_slug(words: str) -> str:
    """Convert text to lowercase ASCII letters and digits, joined by hyphens."""
    plain = unicodedata.normalize("NFKD", words[:200]).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower())[:MOST_SLUG].strip("-")

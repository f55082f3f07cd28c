"""One item from its claim to its end: read, checked out, worked by a process of its own, pushed, told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from daiku.core.proof.evidence import Evidence
from daiku.core.work.branches import branch_of
from daiku.dataclass import dataclass, replace
from daiku.domain.errors import DaikuError
from daiku.domain.items.forge import PASSING, ForgeRefusal, ItemText
from daiku.domain.items.intents import Intent, PostComment, SetState
from daiku.domain.items.item import ItemState
from daiku.domain.runs import RunResult, has_answer
from daiku.settings.config import Config
from daiku.texts.text import Text, render, text
from daiku.tools.git.itemtree import Identity, checkout
from daiku.tools.git.mirror import head_of, mirror
from daiku.tools.git.ownrun import GitRefusal, OwnGit
from daiku.tools.git.remote import Remote
from daiku.work.applying import Outside, apply_open
from daiku.work.contexts.files import is_pause_wanted
from daiku.work.ending import Ended, end_item, end_outage, later
from daiku.work.hearing import hear_meanwhile
from daiku.work.intents import IntentStore
from daiku.work.items import ItemStore
from daiku.work.kept.pushing import Place, as_refusal
from daiku.work.kept.taking_over import newest_of, note_attempt, tell_loss
from daiku.work.record import Claim, ClaimLost, ItemRecord
from daiku.work.retrying import MOST_TAKEOVERS, MOST_TRIES, give_back, given_up_text, is_given_up, is_outage
from daiku.work.source import Source
from daiku.work.workers.breaker import ModelBreaker

logger = logging.getLogger(__name__)
Start = Callable[[Claim, Path], Awaitable[RunResult | None]]
"""Starts the process of an attempt in a work tree and waits for its end; None where it ended without a result."""
MOST_BRANCHES = 100
"""Names that are tried for the branch of one item."""
PAUSE_SECONDS = 0.25
"""Between two looks at the file that pauses everything."""
APPLY_SECONDS = 0.5
"""Between two looks at what the attempt wants outside."""
LONGEST_WAIT = 30.0
"""The same while a forge or a server cannot be reached."""


@dataclass(frozen=True, slots=True)
class Worked:
    """An item that is worked, and what with. `stopping`: it is to be given back at its next step. `evidence` is what the
    runs of a session did, by the record; `allowed` are the paths that a person let them change."""

    config: Config
    home: Path
    items: ItemStore
    intents: IntentStore
    source: Source
    claim: Claim
    start: Start
    stopping: asyncio.Event
    evidence: Callable[[str], Evidence]
    allowed: Callable[[str], frozenset[str]]
    language: str
    breaker: ModelBreaker

    @property
    def record(self) -> ItemRecord:
        found = self.items.record(self.claim.item)
        assert found is not None, "a claimed item is on record"
        return found

    def outside(self, git: Place | None = None) -> Outside:
        """Return where its intents are carried out."""
        return Outside(self.items, self.intents, self.source, self.claim, git)

    def want(self, operation: str, intent: Intent) -> None:
        """Record an intent."""
        self.intents.want(self.claim, operation, intent)


@dataclass(frozen=True, slots=True)
class Ready:
    """An item that is checked out."""

    text: ItemText
    place: Place


async def work_item(worked: Worked) -> ItemState:
    """Process the item until it is over, waits, or is given back. Return its state. Raises ClaimLost, DaikuError."""
    facts = worked.record.facts
    if facts.takeovers >= MOST_TAKEOVERS and facts.ended is None:
        return _give_up(worked, text("work.broke_off"), MOST_TAKEOVERS)
    begun = asyncio.Event()
    holding = asyncio.create_task(_hold(worked, begun))
    try:
        ready = await _prepare(worked)
        if isinstance(ready, ForgeRefusal):
            return await _refused(worked, ready)
        outside = worked.outside(ready.place)
        result = worked.record.facts.ended
        if result is None and (held := await _held(worked)) is not None:
            return held
        begun.set()
        if result is None:
            note_attempt(worked.items, worked.claim, ready.place.tree)
            result = await _run_attempt(worked, outside, ready.place.tree.place)
    finally:
        holding.cancel()
        await asyncio.wait({holding})
    if not isinstance(result, RunResult):
        return _retry_or_give_up(worked, result)
    record = worked.record
    place = replace(ready.place, allowed=worked.allowed(record.shown.session_id))
    over = Ended(
        worked.outside(place),
        worked.config,
        worked.language,
        place,
        ready.text,
        result,
        worked.evidence(record.shown.session_id),
        given_back=worked.stopping.is_set(),
    )
    if record.facts.ended is None:  # else only telling it failed so far
        if is_outage(result):
            counts = worked.breaker.trip(record.item)
            if not is_given_up(record.facts):
                return await end_outage(over, counts=counts)
        else:
            worked.items.note(worked.claim, tries=0, takeovers=0)
            if has_answer(result.status) or result.usage.completion_tokens:
                worked.breaker.close(record.item)
    return await end_item(over)


async def _run_attempt(worked: Worked, outside: Outside, place: Path) -> RunResult | Text:
    """Run the attempt's process to its end, and carry out meanwhile what it wants. Return why it has no result if it has
    none."""
    applying = asyncio.create_task(_apply_meanwhile(outside))
    poll = worked.config.work.poll_seconds
    hearing = asyncio.create_task(hear_meanwhile(worked.items, worked.source, worked.claim, poll))
    try:
        result = await worked.start(worked.claim, place)
    finally:
        for each in (applying, hearing):
            each.cancel()
        await asyncio.wait({applying, hearing})
    if worked.items.holds(worked.claim) is None:
        raise ClaimLost(worked.claim.item)
    if result is not None:
        return result
    shown = worked.record.shown  # its session was held, or it died
    return shown.error if shown.state == "queued" else text("work.broke_off")


async def _prepare(worked: Worked) -> Ready | ForgeRefusal:
    """Read the item as it stands, say that it is worked, and check it out."""
    record = worked.record
    claimed = record.claim or await worked.source.read(record.key)
    if isinstance(claimed, ForgeRefusal):
        return claimed
    if claimed.head_repository:
        return ForgeRefusal(kind="forbidden", message=text("work.of_a_fork", name=claimed.head_repository))
    branch = claimed.head or record.shown.branch or branch_of(record.key, claimed.title)
    begun = record.claim is not None and bool(record.facts.base_commit)
    fresh = not begun or bool(record.facts.rounds and not record.run)
    news_after = record.facts.news_after or claimed.claimed_at
    claimed = worked.items.change(worked.claim, text_at_claim=claimed, branch=branch).claim or claimed
    worked.items.note(worked.claim, news_after=news_after)
    if record.facts.ended is None:
        worked.want("state", SetState(state="processing"))
    applied = await apply_open(worked.outside())
    # What an earlier intent was refused says nothing of this order; that its label may not be changed does.
    if worked.record.facts.ended is None and (why := applied.refused.get("state")) is not None:
        return why
    return await _checked_out(worked, claimed, branch, fresh=fresh)


async def _checked_out(
    worked: Worked, claimed: ItemText, branch: str, *, fresh: bool
) -> Ready | ForgeRefusal:
    """`fresh`: nothing was done yet for this order of the item, or for this round of its review."""
    record = worked.record
    access = await worked.source.access(record.key, claimed.clone_url)
    if isinstance(access, ForgeRefusal):
        return access
    remote = Remote(access.url, access.user, access.secret, here=access.local or access.in_the_clear)
    name = folder_of(record.item)
    mirrored = await mirror(worked.home / "mirrors", remote, kept=name)
    if isinstance(mirrored, GitRefusal):
        return as_refusal(mirrored)
    if not claimed.default:  # a folder of this machine: the branch that is checked out there
        claimed = await _with_default(worked, claimed, remote)
    start = await head_of(mirrored, claimed.head or claimed.base or claimed.default)
    pushed, anew = record.facts.pushed, False
    if fresh and not claimed.head and not pushed:
        branch = await _free_branch(mirrored, branch)
        worked.items.change(worked.claim, branch=branch)
    if fresh:
        pushed = await _as_others_left_it(mirrored, branch, record, start if claimed.head else "")
        anew = bool(record.facts.pushed) and not pushed
        record = worked.items.note(worked.claim, base_commit=start, pushed=pushed)
    elif claimed.head and not pushed:
        pushed = record.facts.base_commit
    work = worked.config.work
    identity = Identity(work.git_name, work.git_email)
    newest = await newest_of(mirrored, name, pushed)
    place = worked.home / "items" / name
    tree = await checkout(mirrored, branch, start, place, identity, pushed=newest, anew=anew)
    if isinstance(tree, GitRefusal):
        return as_refusal(tree)
    tell_loss(worked.items, record, tree, newest or record.facts.base_commit)
    worked.items.note(worked.claim, whole=False)
    return Ready(claimed, Place(name, tree, remote, identity, claimed.default))


async def _free_branch(mirrored: Path, branch: str) -> str:
    """Return a name that no branch of the server has: `branch`, or with a number behind it. What has it now is not ours."""
    names = (branch, *(f"{branch}-{number}" for number in range(2, MOST_BRANCHES)))
    for name in names:
        if not await head_of(mirrored, name):
            return name
    return branch


async def _as_others_left_it(mirrored: Path, branch: str, record: ItemRecord, head: str) -> str:
    """Return the commit of the item's branch on the server from which a new order or round goes on. A request's is
    `head`. An issue's branch counts if it is ours, and may have more commits than we pushed. Empty if it is gone: a
    branch is often deleted when its request is merged or closed, and then this order begins anew."""
    pushed = record.facts.pushed
    if head or not pushed:
        return head
    there = await head_of(mirrored, branch)
    if there and await OwnGit(mirrored).descends(there, pushed):
        return there
    return pushed if there or record.facts.rounds or record.key.kind == "request" else ""


async def _with_default(worked: Worked, claimed: ItemText, remote: Remote) -> ItemText:
    from daiku.tools.git.remote import default_branch  # when used

    found = await default_branch(remote)
    name = found if isinstance(found, str) and found else "main"
    claimed = claimed.model_copy(update={"default": name, "base": claimed.base or name})
    worked.items.change(worked.claim, text_at_claim=claimed)
    return claimed


async def _apply_meanwhile(outside: Outside) -> None:
    """Carry out what the attempt wants, as it wants it."""
    wait = APPLY_SECONDS
    while True:
        await asyncio.sleep(wait)
        applied = await apply_open(outside)
        wait = min(2 * wait, LONGEST_WAIT) if applied.waits or applied.refused else APPLY_SECONDS


async def _hold(worked: Worked, begun: asyncio.Event) -> None:
    """Have the attempt pause when the worker is to stop, or the file is there that pauses everything. Until it has
    `begun` a person's word is heard here: then it does not begin."""
    items, claim = worked.items, worked.claim
    with suppress(DaikuError):  # it is somebody else's by now, which whoever works it finds out
        while not worked.stopping.is_set():
            if is_pause_wanted(worked.home):
                items.signal(claim, "halt", after="")
                return
            if not begun.is_set() and items.holds(claim) == "pause":
                items.signal(claim, "pausing", after="pause")
            with suppress(TimeoutError):
                await asyncio.wait_for(worked.stopping.wait(), PAUSE_SECONDS)
        items.signal(claim, "give_back", after="")


async def _held(worked: Worked) -> ItemState | None:
    """Return the state of an item that was paused or given back during checkout; None if it is to be processed."""
    if is_pause_wanted(worked.home):
        worked.items.signal(worked.claim, "halt", after="")
    match worked.items.holds(worked.claim):
        case "pause" | "pausing" | "halt" | "halting":
            worked.want("state", SetState(state="paused"))
            await apply_open(worked.outside())
            worked.items.change(worked.claim, state="paused")
            return "paused"
        case "give_back":
            worked.items.change(worked.claim, state="queued")
            return "queued"
        case _:
            return None


async def _refused(worked: Worked, why: ForgeRefusal) -> ItemState:
    """End an item that cannot begin: queue it for a later try if that may help, else fail it with one comment."""
    outside, record = worked.outside(), worked.record
    if why.kind in PASSING:
        return _give_up(worked, why.message) if is_given_up(record.facts) else later(outside, why)
    logger.warning("%s: %s", record.item, why.message)
    if why.kind not in ("gone", "moved"):
        _want_end(worked, "failed", why.message)
        waits = (await apply_open(outside)).waits
        if waits is not None and not is_given_up(record.facts):
            return later(outside, waits)
    worked.items.change(worked.claim, state="failed", error=why.message)
    return "failed"


def _want_end(worked: Worked, state: ItemState, why: Text) -> None:
    """Record intents for a comment with the reason and for the label. A later order of the item is answered again."""
    operation = f"refused-{sha256(worked.record.labelled_at.encode()).hexdigest()[:8]}"
    worked.want(operation, PostComment(text=render(why, worked.language)))
    worked.want("state", SetState(state=state))


def retry_broken(worked: Worked, wrong: Exception) -> ItemState | None:
    """Queue an item again whose work an error ended, or give it up. Return its state: `processing` if the database
    fails, and then the next look takes it up; None if another worker has taken the item over."""
    try:
        return _retry_or_give_up(
            worked, wrong.failure.message if isinstance(wrong, DaikuError) else text("work.broke_off")
        )
    except DaikuError as away:
        logger.warning("%s: %s", worked.claim.item, away.failure.message)
        return None if isinstance(away, ClaimLost) else "processing"


def _retry_or_give_up(worked: Worked, why: Text) -> ItemState:
    """Queue an item again whose work broke off, or give it up after too many tries. Raises ClaimLost, DaikuError."""
    if is_given_up(worked.record.facts):
        return _give_up(worked, why)
    return give_back(worked.items, worked.claim, why)


def _give_up(worked: Worked, why: Text, count: int = MOST_TRIES) -> ItemState:
    """End an item that was tried too often. Its comment and label are left open: the next look carries them out."""
    why = given_up_text(why, count)
    logger.warning("%s: %s", worked.claim.item, why)
    _want_end(worked, "dead", why)
    worked.items.change(worked.claim, state="dead", error=why)
    return "dead"


def folder_of(item: str) -> str:
    """Return the name of an item's folder: readable, valid on every file system, and unique by its hash."""
    readable = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in item)[:80]
    return f"{readable}-{sha256(item.encode()).hexdigest()[:10]}"

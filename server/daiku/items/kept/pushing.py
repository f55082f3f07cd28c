"""The kept work tree of an item: push its branch, keep it on the server, take it over on another machine."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import assert_never

from daiku.dataclass import dataclass, replace
from daiku.domain.items.forge import ForgeRefusal
from daiku.domain.items.item import DropKept, GitIntent, ItemKey, KeepTree, Outcome, PushBranch
from daiku.domain.tools import ToolResult
from daiku.guard.rules.protected.names import is_pipeline
from daiku.items.intents import IntentStore
from daiku.items.items import ItemStore
from daiku.items.record import Claim, ItemRecord
from daiku.items.rules.harmless import clean_commit_message, to_plain_line
from daiku.texts.text import text
from daiku.tools.git.itemtree import Identity, ItemTree, list_changed_paths, snapshot
from daiku.tools.git.mirror import build_kept_ref, read_kept
from daiku.tools.git.ownrun import GitRefusal, OwnGit
from daiku.tools.git.remote import Remote, delete_ref, push, read_remote_head
from daiku.tools.registry import ToolRegistry
from daiku.tools.tool import ToolContext
from daiku.tools.work.plan import UpdateStepArgs

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


logger = logging.getLogger(__name__)
KEEP = "keep"
"""Operation name of keeping an item's tree."""
STEP_TOOL = "plan/update_step"
IN_VAIN = (
    "The step is not completed: its work was lost with the machine that you worked on. Look at the files, do again what "
    "is missing, then say that it is completed."
)
LOOK_SECONDS = 0.1
"""Poll interval in seconds of the kept tree."""
LONGEST_SECONDS = 120.0
"""Maximum seconds that a step waits for its tree to be kept; after that it counts as done without."""


@dataclass(frozen=True, slots=True)
class TreeKeeper:
    """Requests that the claimed item's tree be kept.

    `lost_calls`: ids of calls started in a tree that is lost.
    """

    intents: IntentStore
    claim: Claim
    lost_calls: frozenset[str] = frozenset()

    async def keep(self, name: str, of: str) -> bool:
        """Wait until the current tree is kept under `name`; return False and log it if that fails.

        Raises ClaimLost.
        """
        intent = KeepTree(name=name, of=of)
        self.intents.want(self.claim, KEEP, intent)
        loop = asyncio.get_running_loop()
        until = loop.time() + LONGEST_SECONDS
        while loop.time() < until:
            record = self.intents.find(self.claim.item, KEEP)
            if record is not None and record.intent == intent and record.status in ("done", "refused"):
                return record.status == "done"  # a refusal is logged where it occurs
            await asyncio.sleep(LOOK_SECONDS)
        logger.warning("%s: “%s” is not kept on the server: that took too long", self.claim.item, name)
        return False


def keep_before_steps(registry: ToolRegistry, keeping: TreeKeeper) -> None:
    """Wrap the plan tool so that the tree is kept before a step is marked as completed."""
    loaded = registry.get(STEP_TOOL)
    assert loaded is not None, "the tool of the plan is always there"
    plain = loaded.tool

    async def update_step(args: UpdateStepArgs, context: ToolContext) -> ToolResult:
        if args.status == "completed" and context.call_id in keeping.lost_calls:
            return ToolResult(outcome="failed", text=IN_VAIN)
        if args.status == "completed":
            await keeping.keep(_find_step_name(args.step_id, context), context.call_id)
        return await plain.run(args, context)

    registry.add((replace(plain, run=update_step),))


def _find_step_name(step: str, context: ToolContext) -> str:
    """Return the step's name; its id if there is no such step."""
    from daiku.team.rules.plans.transitions import find_step  # when used

    steps = (find_step(plan, step) for plan in reversed(context.plans()))
    return next((found.name for found in steps if found is not None), step)


MOST_SUBJECT = 72
"""Maximum characters of a commit's subject."""
MOST_NAMED = 5
"""Maximum number of files that a refusal names."""


@dataclass(frozen=True, slots=True)
class ItemCheckout:
    """An item's work tree with its remote and committer.

    `name` is that of the item's folder. `allowed`: paths that a person allowed to change.
    """

    name: str
    tree: ItemTree
    remote: Remote
    identity: Identity
    default: str
    allowed: frozenset[str] = frozenset()

    @property
    def is_elsewhere(self) -> bool:
        """Whether the repository is on a server; a local folder would be lost with this machine."""
        return not self.remote.url.startswith(("/", "file:"))


async def apply_git(
    place: ItemCheckout, record: ItemRecord, intent: GitIntent, *, again: bool
) -> Outcome | ForgeRefusal:
    """Apply `intent`. `again`: it was begun before, so the server's state is checked first."""
    match intent:
        case PushBranch():
            result = await _push_branch(place, record, intent, again=again)
        case KeepTree():
            result = await _keep_tree(place, record, intent)
        case DropKept():
            result = await _drop_kept(place)
        case _:
            assert_never(intent)
    return as_refusal(result) if isinstance(result, GitRefusal) else result


async def _push_branch(
    place: ItemCheckout, record: ItemRecord, intent: PushBranch, *, again: bool
) -> Outcome | ForgeRefusal | GitRefusal:
    changed = await list_changed_paths(place.tree, record.facts.base_commit, intent.commit)
    if isinstance(changed, GitRefusal):
        return changed
    if unallowed := [path for path in changed if is_pipeline(path) and path not in place.allowed]:
        paths = ", ".join(to_plain_line(path, 200) for path in unallowed[:MOST_NAMED])
        return ForgeRefusal(kind="forbidden", message=text("work.pipeline", paths=paths))
    if again:
        remote_commit = await read_remote_head(place.remote, intent.branch)
        if isinstance(remote_commit, GitRefusal):
            return remote_commit
        if remote_commit == intent.commit:
            return Outcome(reference=remote_commit, found=True)
    result = await _push_ref(place, intent.branch, intent.commit, intent.expected)
    return result if isinstance(result, Outcome | GitRefusal) else result.refusal


@dataclass(frozen=True, slots=True)
class _Moved:
    """The ref is not where it was expected to be, but at `commit`."""

    commit: str
    refusal: GitRefusal


async def _push_ref(
    place: ItemCheckout, name: str, commit: str, expected: str
) -> Outcome | GitRefusal | _Moved:
    result = await push(place.tree.mirror, place.remote, name, commit, expected, default=place.default)
    if not isinstance(result, GitRefusal):
        return Outcome(reference=result.commit, found=not result.changed)
    if result.kind not in ("moved", "exists"):
        return result
    # After a broken connection git's transport retries a push automatically; the first one may have succeeded.
    remote_commit = await read_remote_head(place.remote, name)
    if isinstance(remote_commit, GitRefusal):
        return remote_commit
    return Outcome(reference=commit, found=True) if remote_commit == commit else _Moved(remote_commit, result)


async def _keep_tree(place: ItemCheckout, record: ItemRecord, intent: KeepTree) -> Outcome | GitRefusal:
    """Commit uncommitted changes, and push the head under the item's private ref."""
    commit = await snapshot(place.tree, build_commit_message(intent.name, record.key), place.identity)
    if isinstance(commit, GitRefusal):
        return commit
    head, ref = await place.tree.git.find_commit(place.tree.ref), build_kept_ref(place.name)
    result = await _push_ref(place, ref, head, record.facts.kept)
    if isinstance(result, _Moved):  # only Daiku uses this ref: an earlier push succeeded unseen
        result = await _push_ref(place, ref, head, result.commit)
    return result.refusal if isinstance(result, _Moved) else result


async def _drop_kept(place: ItemCheckout) -> Outcome | GitRefusal:
    ref = build_kept_ref(place.name)
    remote_commit = await read_remote_head(place.remote, ref)
    if isinstance(remote_commit, GitRefusal) or not remote_commit:
        return remote_commit if isinstance(remote_commit, GitRefusal) else Outcome(found=True)
    refusal = await delete_ref(place.tree.mirror, place.remote, ref, remote_commit)
    if refusal is not None and refusal.kind == "moved" and await read_remote_head(place.remote, ref) == "":
        return Outcome(found=True)
    return refusal or Outcome()


def build_commit_message(subject: str, key: ItemKey) -> str:
    """Return the message of a commit with a run's uncommitted changes.

    Its subject has no effect on a forge, and does not skip checks, as `[skip ci]` does.
    """
    return f"{clean_commit_message(to_plain_line(subject, MOST_SUBJECT)) or key}\n\nFor {key}."


def as_refusal(why: GitRefusal) -> ForgeRefusal:
    """Convert git's refusal to that of a source."""
    match why.kind:
        case "unreachable" | "full":  # a disk may have space later
            return ForgeRefusal(kind="unreachable", message=why.message)
        case "unauthorized":
            return ForgeRefusal(kind="unauthorized", message=why.message)
        case "forbidden":
            return ForgeRefusal(kind="forbidden", message=why.message)
        case "gone":
            return ForgeRefusal(kind="gone", message=why.message)
        case "moved":
            return ForgeRefusal(kind="moved", message=why.message)
        case "exists":
            return ForgeRefusal(kind="exists", message=why.message)
        case "damaged" | "empty" | "unusable" | "slow":
            return ForgeRefusal(kind="bad", message=why.message)
        case _:
            assert_never(why.kind)

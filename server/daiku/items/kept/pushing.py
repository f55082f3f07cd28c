"""Application of an item's git intents: push its branch, keep its work tree on the server, drop the kept tree."""

from __future__ import annotations

from typing import assert_never

from daiku.dataclass import dataclass
from daiku.domain.items.forge import ForgeRefusal
from daiku.domain.items.intents import DropKept, GitIntent, KeepTree, Outcome, PushBranch
from daiku.domain.items.item import ItemKey
from daiku.guard.rules.protected.names import is_pipeline
from daiku.items.record import ItemRecord
from daiku.items.rules.harmless import clean_commit_message, to_plain_line
from daiku.texts.text import text
from daiku.tools.git.itemtree import Identity, ItemTree, list_changed_paths, snapshot
from daiku.tools.git.mirror import build_kept_ref
from daiku.tools.git.ownrun import GitRefusal
from daiku.tools.git.remote import Remote, delete_ref, push, read_remote_head

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

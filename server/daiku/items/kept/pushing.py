"""Carries out what an item wants of git: its branch pushed, its work tree kept on the server, what was kept taken away."""

from __future__ import annotations

from typing import assert_never

from daiku.dataclass import dataclass
from daiku.domain.items.forge import ForgeRefusal
from daiku.domain.items.intents import DropKept, GitIntent, KeepTree, Outcome, PushBranch
from daiku.domain.items.item import ItemKey
from daiku.guard.rules.protected.paths import is_pipeline
from daiku.items.record import ItemRecord
from daiku.items.rules.harmless import commit_words, plain_line
from daiku.texts.text import text
from daiku.tools.git.itemtree import Identity, ItemTree, list_changed_paths, snapshot
from daiku.tools.git.mirror import build_kept_ref
from daiku.tools.git.ownrun import GitRefusal
from daiku.tools.git.remote import Remote, delete_ref, push, read_remote_head

MOST_SUBJECT = 72
"""Characters of a commit's first line."""
MOST_NAMED = 5
"""Files that a refusal names."""


@dataclass(frozen=True, slots=True)
class Place:
    """An item's work tree, where it is pushed to, and who commits. `name` is that of the item's folder, `allowed` are
    the paths of which a person said that they may be changed."""

    name: str
    tree: ItemTree
    remote: Remote
    identity: Identity
    default: str
    allowed: frozenset[str] = frozenset()

    @property
    def is_elsewhere(self) -> bool:
        """Whether the repository is on a server: a folder of this machine is lost with it."""
        return not self.remote.url.startswith(("/", "file:"))


async def apply_git(
    place: Place, record: ItemRecord, intent: GitIntent, *, again: bool
) -> Outcome | ForgeRefusal:
    """Carry out `intent`; `again`: it was begun before, and where the server stands is looked at first."""
    match intent:
        case PushBranch():
            done = await _pushed(place, record, intent, again=again)
        case KeepTree():
            done = await _kept(place, record, intent)
        case DropKept():
            done = await _dropped(place)
        case _:
            assert_never(intent)
    return as_refusal(done) if isinstance(done, GitRefusal) else done


async def _pushed(
    place: Place, record: ItemRecord, wanted: PushBranch, *, again: bool
) -> Outcome | ForgeRefusal | GitRefusal:
    changed = await list_changed_paths(place.tree, record.facts.base_commit, wanted.commit)
    if isinstance(changed, GitRefusal):
        return changed
    if unallowed := [path for path in changed if is_pipeline(path) and path not in place.allowed]:
        named = ", ".join(plain_line(path, 200) for path in unallowed[:MOST_NAMED])
        return ForgeRefusal(kind="forbidden", message=text("work.pipeline", paths=named))
    if again:
        there = await read_remote_head(place.remote, wanted.branch)
        if isinstance(there, GitRefusal):
            return there
        if there == wanted.commit:
            return Outcome(reference=there, found=True)
    done = await _put(place, wanted.branch, wanted.commit, wanted.expected)
    return done if isinstance(done, Outcome | GitRefusal) else done.refusal


@dataclass(frozen=True, slots=True)
class _Elsewhere:
    """The ref is not where it was expected to be, but at `commit`."""

    commit: str
    refusal: GitRefusal


async def _put(place: Place, name: str, commit: str, expected: str) -> Outcome | GitRefusal | _Elsewhere:
    done = await push(place.tree.mirror, place.remote, name, commit, expected, default=place.default)
    if not isinstance(done, GitRefusal):
        return Outcome(reference=done.commit, found=not done.changed)
    if done.kind not in ("moved", "exists"):
        return done
    # Where a connection breaks after the push, git's transport sends it once more by itself: that one comes too late.
    there = await read_remote_head(place.remote, name)
    if isinstance(there, GitRefusal):
        return there
    return Outcome(reference=commit, found=True) if there == commit else _Elsewhere(there, done)


async def _kept(place: Place, record: ItemRecord, wanted: KeepTree) -> Outcome | GitRefusal:
    """Make what is not committed a commit, and push that under the item's private name."""
    made = await snapshot(place.tree, commit_message(wanted.name, record.key), place.identity)
    if isinstance(made, GitRefusal):
        return made
    head, ref = await place.tree.git.find_commit(place.tree.ref), build_kept_ref(place.name)
    done = await _put(place, ref, head, record.facts.kept)
    if isinstance(done, _Elsewhere):  # only we have this name: it is of a push of which nobody heard
        done = await _put(place, ref, head, done.commit)
    return done.refusal if isinstance(done, _Elsewhere) else done


async def _dropped(place: Place) -> Outcome | GitRefusal:
    ref = build_kept_ref(place.name)
    there = await read_remote_head(place.remote, ref)
    if isinstance(there, GitRefusal) or not there:
        return there if isinstance(there, GitRefusal) else Outcome(found=True)
    done = await delete_ref(place.tree.mirror, place.remote, ref, there)
    if done is not None and done.kind == "moved" and await read_remote_head(place.remote, ref) == "":
        return Outcome(found=True)
    return done or Outcome()


def commit_message(subject: str, key: ItemKey) -> str:
    """The message of a commit that holds what a run left uncommitted; its subject does nothing on a forge, nor does it
    keep checks from running, as `[skip ci]` does."""
    return f"{commit_words(plain_line(subject, MOST_SUBJECT)) or key}\n\nFor {key}."


def as_refusal(why: GitRefusal) -> ForgeRefusal:
    """What git refused, as a source would say it."""
    match why.kind:
        case "unreachable" | "full":  # a disk may have room later
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

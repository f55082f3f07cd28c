"""Carries out an item's intents, each once: checked against the item, looked for first where it was begun before."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from daiku.dataclass import replace
from daiku.domain.items.forge import PASSING, ForgeRefusal
from daiku.domain.items.intents import (
    DropKept,
    IntentRecord,
    KeepTree,
    MarkReady,
    OpenRequest,
    Outcome,
    PostComment,
    PushBranch,
    ShowProgress,
)
from daiku.items.kept.pushing import Place, apply_git
from daiku.items.parts import ClaimedItem
from daiku.items.record import ClaimLost, ItemRecord
from daiku.texts.text import NO_TEXT, Text, text

logger = logging.getLogger(__name__)
MOST_COMMENTS = 50
"""Comments of their own that one item may post."""
MOST_CHARACTERS = 65_000


class Applied(NamedTuple):
    """Result of applying open intents: the transient refusal that leaves some open, and permanent ones by operation."""

    waits: ForgeRefusal | None
    refused: Mapping[str, ForgeRefusal]


async def apply_open(item: ClaimedItem) -> Applied:
    """Carry out open intents in order. A transient refusal leaves its intent and those behind it open; those of git and
    of the source do not wait for each other. Raises ClaimLost."""
    intents = item.parts.intents
    stopped: ForgeRefusal | None = None
    refused: dict[str, ForgeRefusal] = {}
    waits = {True: item.git is None, False: False}  # by whether git carries it out
    for wanted in intents.open(item.claim.item):
        of_git = isinstance(wanted.intent, PushBranch | KeepTree | DropKept)
        record = item.record
        many = isinstance(wanted.intent, PostComment) and intents.comments(record.item) >= MOST_COMMENTS
        if why := text("work.many_comments", count=MOST_COMMENTS) if many else _why_not(wanted, record):
            intents.refuse(item.claim, wanted.operation, why)
            continue
        if waits[of_git]:
            continue
        intents.begin(item.claim, wanted.operation)
        found = await _carry_out(item, record, wanted)
        if isinstance(found, Outcome):
            intents.end(item.claim, wanted, found)
            _note(item, wanted, found)
            if record.facts.tries and not record.is_unfinished:  # the next outage begins at the first pause
                item.note(tries=0)
            continue
        if found.kind in PASSING:
            waits[of_git], stopped = True, stopped or found
            continue
        intents.refuse(item.claim, wanted.operation, found.message)
        if isinstance(wanted.intent, KeepTree | DropKept):  # a precaution: the item goes on without it
            logger.warning("%s", text("work.not_kept", item=record.item, why=found.message))
        else:
            refused[wanted.operation] = found
    return Applied(stopped, refused)


def _why_not(wanted: IntentRecord, record: ItemRecord) -> Text:
    """Return why the item may not have this intent; empty if it may."""
    claim = record.claim
    match wanted.intent:
        case PushBranch(branch=branch) | MarkReady(branch=branch):
            known = (
                claim is not None
                and branch == record.shown.branch
                and branch not in (claim.default, claim.base)
            )
            return NO_TEXT if known else text("work.not_its_branch", branch=branch)
        case OpenRequest(branch=branch, base=base, title=title, text=body):
            known = claim is not None and branch == record.shown.branch and base == claim.base != branch
            if not known:
                return text("work.not_its_branch", branch=branch)
            return text("work.too_long") if len(title) + len(body) > MOST_CHARACTERS else NO_TEXT
        case PostComment(text=said) | ShowProgress(text=said):
            return text("work.too_long") if len(said) > MOST_CHARACTERS else NO_TEXT
        case _:
            return NO_TEXT


async def _carry_out(item: ClaimedItem, record: ItemRecord, wanted: IntentRecord) -> Outcome | ForgeRefusal:
    again = wanted.sent
    match wanted.intent:
        case PushBranch() | KeepTree() | DropKept() as of_git:
            place = await _signed_in(item)
            if isinstance(place, ForgeRefusal):
                return place
            _still_ours(item)
            return await apply_git(place, record, of_git, again=again)
        case _ as of_source:
            check = partial(_still_ours, item)
            return await item.source.apply(record.key, wanted.operation, of_source, again, check)


def _still_ours(item: ClaimedItem) -> None:
    """Check the claim directly before a call: this process may have been suspended since. Raises ClaimLost."""
    if item.parts.items.holds(item.claim) is None:
        raise ClaimLost(item.claim.item)


async def _signed_in(item: ClaimedItem) -> Place | ForgeRefusal:
    """Return the item's place with a current token: the one from its beginning may have expired."""
    access = await item.source.access(item.record.key, item.text.clone_url)
    if isinstance(access, ForgeRefusal):
        return access
    return replace(item.place, remote=replace(item.place.remote, secret=access.secret))


def _note(item: ClaimedItem, wanted: IntentRecord, found: Outcome) -> None:
    match wanted.intent:
        case PushBranch(commit=commit):
            item.note(pushed=commit)
        case KeepTree():
            item.note(kept=found.reference)
        case DropKept():
            item.note(kept="")
        case OpenRequest() if found.reference:
            item.parts.items.change(item.claim, request_url=found.reference)
        case _:
            pass

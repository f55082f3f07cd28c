"""Application of an item's intents, each once: checked against the item, and looked up first if begun before."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from daiku.dataclass import replace
from daiku.domain.items.forge import PASSING, ForgeRefusal
from daiku.domain.items.item import (
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
from daiku.items.kept.pushing import ItemCheckout, apply_git
from daiku.items.parts import ClaimedItem
from daiku.items.record import ClaimLost, ItemRecord
from daiku.texts.text import NO_TEXT, Text, text

logger = logging.getLogger(__name__)
MOST_COMMENTS = 50
"""Largest number of separate comments that one item may post."""
MOST_CHARACTERS = 65_000
"""Largest number of characters of a comment, or of a request's title and text."""


class Applied(NamedTuple):
    """Outcome of applying open intents.

    A transient refusal that leaves some open, and the permanent ones by operation.
    """

    transient: ForgeRefusal | None
    refused: Mapping[str, ForgeRefusal]


async def apply_open(item: ClaimedItem) -> Applied:
    """Apply open intents in order. Raises ClaimLost.

    A transient refusal leaves its intent and the later ones open. Intents of git and of the source do not
    block each other.
    """
    intents = item.parts.intents
    stopped: ForgeRefusal | None = None
    refused: dict[str, ForgeRefusal] = {}
    is_blocked = {True: item.git is None, False: False}  # by whether git applies it
    for intent_record in intents.list_open(item.claim.item):
        of_git = isinstance(intent_record.intent, PushBranch | KeepTree | DropKept)
        record = item.record
        many = (
            isinstance(intent_record.intent, PostComment)
            and intents.count_comments(record.item) >= MOST_COMMENTS
        )
        if (
            why := text("work.many_comments", count=MOST_COMMENTS)
            if many
            else _explain_rejection(intent_record, record)
        ):
            intents.refuse(item.claim, intent_record.operation, why)
            continue
        if is_blocked[of_git]:
            continue
        intents.begin(item.claim, intent_record.operation)
        outcome = await _apply(item, record, intent_record)
        if isinstance(outcome, Outcome):
            intents.end(item.claim, intent_record, outcome)
            _note_outcome(item, intent_record, outcome)
            # The next outage starts with the shortest pause.
            if record.facts.tries and not record.is_unfinished:
                item.note(tries=0)
            continue
        if outcome.kind in PASSING:
            is_blocked[of_git], stopped = True, stopped or outcome
            continue
        intents.refuse(item.claim, intent_record.operation, outcome.message)
        if isinstance(intent_record.intent, KeepTree | DropKept):
            # Only a precaution: the item continues without it.
            logger.warning("%s", text("work.not_kept", item=record.item, why=outcome.message))
        else:
            refused[intent_record.operation] = outcome
    return Applied(stopped, refused)


def _explain_rejection(intent_record: IntentRecord, record: ItemRecord) -> Text:
    """Return why the item must not have this intent; empty if it may."""
    claim = record.claim
    match intent_record.intent:
        case PushBranch(branch=branch) | MarkReady(branch=branch):
            is_own = (
                claim is not None
                and branch == record.shown.branch
                and branch not in (claim.default, claim.base)
            )
            return NO_TEXT if is_own else text("work.not_its_branch", branch=branch)
        case OpenRequest(branch=branch, base=base, title=title, text=body):
            is_own = claim is not None and branch == record.shown.branch and base == claim.base != branch
            if not is_own:
                return text("work.not_its_branch", branch=branch)
            return text("work.too_long") if len(title) + len(body) > MOST_CHARACTERS else NO_TEXT
        case PostComment(text=comment) | ShowProgress(text=comment):
            return text("work.too_long") if len(comment) > MOST_CHARACTERS else NO_TEXT
        case _:
            return NO_TEXT


async def _apply(
    item: ClaimedItem, record: ItemRecord, intent_record: IntentRecord
) -> Outcome | ForgeRefusal:
    again = intent_record.sent
    match intent_record.intent:
        case PushBranch() | KeepTree() | DropKept() as of_git:
            place = await _with_current_token(item)
            if isinstance(place, ForgeRefusal):
                return place
            _check_claim(item)
            return await apply_git(place, record, of_git, again=again)
        case _ as of_source:
            check = partial(_check_claim, item)
            return await item.source.apply(record.key, intent_record.operation, of_source, again, check)


def _check_claim(item: ClaimedItem) -> None:
    """Check the claim directly before a call: this process may have been suspended since. Raises ClaimLost."""
    if item.parts.items.current_order(item.claim) is None:
        raise ClaimLost(item.claim.item)


async def _with_current_token(item: ClaimedItem) -> ItemCheckout | ForgeRefusal:
    """Return the item's checkout with a current token: the first one may have expired."""
    access = await item.source.access(item.record.key, item.text.clone_url)
    if isinstance(access, ForgeRefusal):
        return access
    return replace(item.place, remote=replace(item.place.remote, secret=access.secret))


def _note_outcome(item: ClaimedItem, intent_record: IntentRecord, outcome: Outcome) -> None:
    match intent_record.intent:
        case PushBranch(commit=commit):
            item.note(pushed=commit)
        case KeepTree():
            item.note(kept=outcome.reference)
        case DropKept():
            item.note(kept="")
        case OpenRequest() if outcome.reference:
            item.parts.items.change(item.claim, request_url=outcome.reference)
        case _:
            pass

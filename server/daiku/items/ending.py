"""The end of an item's attempt: a commit, a push, a request, one comment, and the item's state."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import assert_never

from daiku.domain.items.forge import PASSING, ForgeRefusal
from daiku.domain.items.item import (
    REQUEST,
    DropKept,
    ItemState,
    KeepTree,
    OpenRequest,
    PostComment,
    PushBranch,
    SetState,
)
from daiku.domain.runs import RunResult, is_success, unverified_note
from daiku.domain.work.handovers import CommandOutcome
from daiku.domain.work.patches import FileStat
from daiku.guard.rules.protected.names import needs_review
from daiku.items.applying import apply_open
from daiku.items.kept.pushing import KEEP, as_refusal, build_commit_message
from daiku.items.parts import ClaimedItem
from daiku.items.record import PAUSE_ORDERS, ItemRecord
from daiku.items.retrying import explain_given_up, give_back, give_back_refused, is_outage
from daiku.items.rules.comments import Ending, Outcome, limit_length, render_ending
from daiku.items.rules.harmless import neutralize, neutralize_line, to_inline_code, to_plain_line
from daiku.team.rules.proof.evidence import Evidence
from daiku.team.rules.proof.placeholders import select_new_leftovers
from daiku.team.rules.proof.tree_changes import replace_recorded
from daiku.texts.text import NO_TEXT, Text, joined, render, text
from daiku.tools.git.itemtree import diff_commits, remove_tree, snapshot
from daiku.tools.git.ownrun import GitRefusal

logger = logging.getLogger(__name__)
PUSH = "push"
"""Operation name of the push of the item's branch."""
MOST_TITLE = 200
MOST_COMMANDS = 30
MOST_FILES = 100
MOST_LEFTOVERS = 50


def build_request_title(title: str, number: int) -> str:
    """Return the issue's title as one plain line."""
    return to_plain_line(title, MOST_TITLE) or f"Issue {number}"


def render_request_body(
    number: int, asked_by: str, result: RunResult, evidence: Evidence, language: str
) -> str:
    """Render the text of the request for issue `number`: who asked, the model's summary, and the evidence."""
    leftovers = [f"{leftover.path}: {leftover.text}" for leftover in select_new_leftovers(evidence.leftovers)]
    reasons = [neutralize_line(render(reason.message, language)) for reason in result.reasons]
    parts: list[str] = [
        Text(f"Closes #{number}"),
        text("request.asked_by", name=to_inline_code(asked_by)),
        neutralize(result.text),
        *_render_section(
            text("request.commands"), _render_commands(evidence.commands), text("request.no_commands")
        ),
        *_render_section(text("request.files"), _render_files(evidence.files), text("request.no_files")),
        *_render_section(text("request.runs_by_itself"), _render_files_to_review(evidence.files)),
        *_render_section(text("request.unverified"), [text("request.reason", why=why) for why in reasons]),
        *_render_section(
            text("request.leftovers"),
            [Text(f"- {to_inline_code(line)}") for line in leftovers[:MOST_LEFTOVERS]],
        ),
        text("request.check_it"),
    ]
    return limit_length(render(joined("paragraphs", parts), language))


def _render_files_to_review(files: Sequence[FileStat]) -> list[Text]:
    """Return the changed files that tools run or obey automatically, which reviewers should check first."""
    return [Text(f"- {to_inline_code(file.path)}") for file in files if needs_review(file.path)][:MOST_FILES]


def _render_section(head: Text, lines: Sequence[Text], none: Text = NO_TEXT) -> list[Text]:
    if not lines:
        return [head, none] if none else []
    return [head, joined("lines", lines)]


def _render_commands(commands: Sequence[CommandOutcome]) -> list[Text]:
    """Return the last outcome of each command; the latest commands are kept."""
    last: dict[str, CommandOutcome] = {}
    for outcome in commands:
        last.pop(outcome.command, None)
        last[outcome.command] = outcome
    latest = list(last.values())[-MOST_COMMANDS:]
    return [
        text(
            "request.command",
            mark="❌" if outcome.exit_code else "✅",
            command=to_inline_code(outcome.command),
            code=outcome.exit_code,
        )
        for outcome in latest
    ]


def _render_files(files: Sequence[FileStat]) -> list[Text]:
    lines = [
        Text(f"- {to_inline_code(file.path)} (+{file.added} −{file.removed})") for file in files[:MOST_FILES]
    ]
    more = len(files) - MOST_FILES
    return [*lines, text("request.more_files", count=more)] if more > 0 else lines


async def end_item(item: ClaimedItem, result: RunResult) -> ItemState:
    """Keep the result of an item's run, report it, and note the item's state. Raises ClaimLost, DaikuError."""
    if result.status == "paused":
        return await _pause(item)
    # The run has ended: another process that takes over must not run it again.
    item.note(ended=result)
    refused = await _push(item)
    if refused is not None and refused.kind in PASSING:
        return requeue_refused(item, refused)
    if refused is not None and result.status != "cancelled":
        return await _finish(item, result, "failed", "failed", refused.message)
    why = result.error.message if result.error is not None else NO_TEXT
    match result.status:
        case "cancelled":
            record = item.record
            state: ItemState = "done" if record.facts.merged else "stopped"
            why = record.shown.error or why or text("work.cancelled")
            return await _finish(item, result, state, "stopped", why)
        case "failed" if is_outage(result):  # given up: earlier outages are retried
            return await _finish(item, result, "dead", "failed", explain_given_up(why))
        case "failed":
            return await _finish(item, result, "failed", "failed", why)
        case "limit" | "completed" | "completed_unverified":
            await _want_request(item, result)
            applied = await apply_open(item)
            if applied.transient is not None:
                return requeue_refused(item, applied.transient)
            if (refused := applied.refused.get(REQUEST)) is not None:
                return await _finish(item, result, "failed", "failed", refused.message)
            state, outcome = _judge_end(item, result)
            return await _finish(item, result, state, outcome, why or unverified_note(result.reasons))
        case _:
            assert_never(result.status)


def _judge_end(item: ClaimedItem, result: RunResult) -> tuple[ItemState, Outcome]:
    """Return the state and outcome of a run that ended on its own or at a limit."""
    if is_success(result.status):
        return "done", "done"
    if result.status == "completed_unverified":
        return "failed", "unverified"
    return "done" if item.record.has_pushed else "failed", "limit"


async def _push(item: ClaimedItem) -> ForgeRefusal | None:
    """Commit the rest, push the branch, and apply all intents.

    Return a transient refusal, or that of the push.
    """
    tree, record = item.place.tree, item.record
    commit = await snapshot(tree, build_commit_message(item.text.title, record.key), item.place.identity)
    if isinstance(commit, GitRefusal):
        return as_refusal(commit)
    head = await tree.git.find_commit(tree.ref)
    before = record.facts.pushed or (record.facts.base_commit if item.text.head else "")
    if head not in (before, record.facts.base_commit):
        item.want(PUSH, PushBranch(branch=tree.branch, commit=head, expected=before))
    applied = await apply_open(item)
    return applied.transient or applied.refused.get(PUSH)


async def _want_request(item: ClaimedItem, result: RunResult) -> None:
    """Record an intent for the request, if an issue's branch has changes.

    Its list of files is read from the branch.
    """
    record = item.record
    # In a review round the request exists already, possibly edited by people.
    if not record.facts.pushed or record.key.kind != "issue" or record.facts.rounds:
        return
    number, tree = int(record.key.name), item.place.tree
    evidence = item.parts.evidence(record.shown.session_id)
    changes = await diff_commits(tree.git, record.facts.base_commit, record.facts.pushed)
    if not isinstance(changes, GitRefusal):
        evidence = replace_recorded(evidence, changes)
    intent = OpenRequest(
        branch=tree.branch,
        base=item.text.base,
        title=build_request_title(item.text.title, number),
        text=render_request_body(number, item.text.author, result, evidence, item.parts.language),
    )
    item.want(REQUEST, intent)


async def _pause(item: ClaimedItem) -> ItemState:
    """Pause the item, let it wait, or give it back. Its tree is kept, so that any machine can continue."""
    record = item.record
    back = item.parts.stopping.is_set() and record.wanted not in PAUSE_ORDERS
    state: ItemState = "waiting" if record.facts.question else "queued" if back else "paused"
    if state == "paused":
        comment = render_ending(Ending("paused"), item.parts.language)
        item.want(f"paused-{item.claim.fence}", PostComment(text=comment))
    _want_tree_kept(item)
    if state != "queued":
        item.want("state", SetState(state=state))
    await _apply_and_note_kept(item)
    item.parts.items.change(item.claim, state=state)
    return state


async def end_outage(item: ClaimedItem, result: RunResult, *, counts: bool) -> ItemState:
    """Give the item back because the model's provider is unavailable. `counts`: the item may be the cause."""
    _want_tree_kept(item)
    await _apply_and_note_kept(item)
    why = result.error.message if result.error is not None else NO_TEXT
    return give_back(item.parts.items, item.claim, why, counts=counts)


def _want_tree_kept(item: ClaimedItem) -> None:
    if item.place.is_elsewhere:
        item.want(KEEP, KeepTree(name=item.text.title, of=f"pause-{item.claim.fence}"))


async def _apply_and_note_kept(item: ClaimedItem) -> None:
    """Apply open intents, and note whether the complete tree is kept."""
    await apply_open(item)
    intent_record = item.parts.intents.find(item.claim.item, KEEP)
    item.note(whole=intent_record is not None and intent_record.status == "done")


async def _finish(
    item: ClaimedItem, result: RunResult, state: ItemState, outcome: Outcome, why: Text
) -> ItemState:
    """Write the last comment and labels, and the item's state last. Failures are also logged."""
    record = item.record
    if state in ("failed", "dead"):
        logger.warning("%s: %s", record.item, why)
    ending = Ending(
        outcome,
        words=result.text if outcome in ("done", "limit", "unverified") else "",
        why=why,
        changes="on_branch" if record.has_pushed else "none",
        request_url=record.shown.request_url,
        label=item.parts.config.work.labels.todo,
        asked_by=item.text.author if record.key.source != "files" else "",
    )
    item.want(f"final-{record.run}-{outcome}", PostComment(text=render_ending(ending, item.parts.language)))
    item.want("state", SetState(state=state))
    intent_record = item.parts.intents.find(record.item, KEEP)
    if intent_record is not None and isinstance(intent_record.intent, KeepTree):
        item.want(KEEP, DropKept())
    applied = await apply_open(item)
    if applied.transient is not None:
        return requeue_refused(item, applied.transient)
    missing = next((r for r in applied.refused.values() if r.kind in ("gone", "moved")), None)
    if missing is not None and state == "done":
        # The item no longer exists, so the result could not be reported.
        state, why = "failed", missing.message
    await _remove_tree(item)
    in_review = outcome == "done" and is_reviewed(record)
    facts = item.record.facts.model_copy(update={"ended": None, "in_review": in_review, "tries": 0})
    item.parts.items.change(item.claim, state=state, error=why, facts=facts)
    return state


def requeue_refused(item: ClaimedItem, why: ForgeRefusal) -> ItemState:
    """Queue the item again: a later try continues with its open intents."""
    return give_back_refused(item.parts.items, item.claim, why)


async def _remove_tree(item: ClaimedItem) -> None:
    """Remove the work tree if everything in it is on the server, or nothing is in it."""
    facts, tree = item.record.facts, item.place.tree
    if await tree.git.find_commit(tree.ref) in (facts.pushed, facts.base_commit):
        await remove_tree(tree.mirror, tree.place)


def is_reviewed(record: ItemRecord) -> bool:
    """Return True if there is a request with commits of Daiku, which people and checks review."""
    if record.key.kind == "request":
        return bool(record.facts.pushed)
    return bool(record.shown.request_url)

"""What comes of an item when its attempt has ended: a commit, a push, a request, one comment, and its state."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import assert_never

from daiku.domain.items.forge import PASSING, ForgeRefusal
from daiku.domain.items.intents import (
    REQUEST,
    DropKept,
    KeepTree,
    OpenRequest,
    PostComment,
    PushBranch,
    SetState,
)
from daiku.domain.items.item import ItemState
from daiku.domain.runs import RunResult, is_success, unverified_note
from daiku.domain.work.handovers import CommandOutcome
from daiku.domain.work.patches import FileStat
from daiku.guard.rules.protected.paths import needs_review
from daiku.items.applying import apply_open
from daiku.items.kept.asking import KEEP
from daiku.items.kept.pushing import as_refusal, commit_message
from daiku.items.parts import ClaimedItem
from daiku.items.record import PAUSES, ItemRecord
from daiku.items.retrying import give_back, give_back_refused, given_up_text, is_outage
from daiku.items.rules.comments import Ending, Outcome, bounded, final_comment
from daiku.items.rules.harmless import code, harmless, harmless_line, plain_line
from daiku.team.rules.proof.evidence import Evidence
from daiku.team.rules.proof.placeholders import new_leftovers
from daiku.team.rules.proof.tree_changes import replace_recorded
from daiku.texts.text import NO_TEXT, Text, joined, render, text
from daiku.tools.git.itemtree import diff_commits, remove_tree, snapshot
from daiku.tools.git.ownrun import GitRefusal

logger = logging.getLogger(__name__)
PUSH = "push"
"""The operation by which the item's branch is pushed."""
MOST_TITLE = 200
MOST_COMMANDS = 30
MOST_FILES = 100
MOST_LEFTOVERS = 50


def request_title(title: str, number: int) -> str:
    """Return the issue's title as one plain line."""
    return plain_line(title, MOST_TITLE) or f"Issue {number}"


def request_body(number: int, asked_by: str, result: RunResult, done: Evidence, language: str) -> str:
    """Render the text of the request for issue `number`: who asked, the model's words, and the evidence."""
    leftovers = [f"{each.path}: {each.text}" for each in new_leftovers(done.leftovers)]
    reasons = [harmless_line(render(each.message, language)) for each in result.reasons]
    parts: list[str] = [
        Text(f"Closes #{number}"),
        text("request.asked_by", name=code(asked_by)),
        harmless(result.text),
        *_section(text("request.commands"), _commands(done.commands), text("request.no_commands")),
        *_section(text("request.files"), _files(done.files), text("request.no_files")),
        *_section(text("request.runs_by_itself"), _implicit(done.files)),
        *_section(text("request.unverified"), [text("request.reason", why=why) for why in reasons]),
        *_section(
            text("request.leftovers"), [Text(f"- {code(each)}") for each in leftovers[:MOST_LEFTOVERS]]
        ),
        text("request.check_it"),
    ]
    return bounded(render(joined("paragraphs", parts), language))


def _implicit(files: Sequence[FileStat]) -> list[Text]:
    """Return the changed files that tools run or obey by themselves: a reviewer looks at these first."""
    return [Text(f"- {code(each.path)}") for each in files if needs_review(each.path)][:MOST_FILES]


def _section(head: Text, lines: Sequence[Text], none: Text = NO_TEXT) -> list[Text]:
    if not lines:
        return [head, none] if none else []
    return [head, joined("lines", lines)]


def _commands(commands: Sequence[CommandOutcome]) -> list[Text]:
    """Return the last outcome of each command; the latest commands are kept first."""
    last: dict[str, CommandOutcome] = {}
    for each in commands:
        last.pop(each.command, None)
        last[each.command] = each
    shown = list(last.values())[-MOST_COMMANDS:]
    return [
        text(
            "request.command",
            mark="❌" if each.exit_code else "✅",
            command=code(each.command),
            code=each.exit_code,
        )
        for each in shown
    ]


def _files(files: Sequence[FileStat]) -> list[Text]:
    lines = [Text(f"- {code(each.path)} (+{each.added} −{each.removed})") for each in files[:MOST_FILES]]
    more = len(files) - MOST_FILES
    return [*lines, text("request.more_files", count=more)] if more > 0 else lines


async def end_item(item: ClaimedItem, result: RunResult) -> ItemState:
    """Keep the result of an item's run, report it, and note the item's state. Raises ClaimLost, DaikuError."""
    if result.status == "paused":
        return await _pause(item)
    # From here on the run has ended: who goes on after this process does not work it again.
    item.note(ended=result)
    refused = await _push(item)
    if refused is not None and refused.kind in PASSING:
        return later(item, refused)
    if refused is not None and result.status != "cancelled":
        return await _finish(item, result, "failed", "failed", refused.message)
    why = result.error.message if result.error is not None else NO_TEXT
    match result.status:
        case "cancelled":
            record = item.record
            state: ItemState = "done" if record.facts.merged else "stopped"
            why = record.shown.error or why or text("work.cancelled")
            return await _finish(item, result, state, "stopped", why)
        case "failed" if is_outage(result):  # others are not ended, but tried again
            return await _finish(item, result, "dead", "failed", given_up_text(why))
        case "failed":
            return await _finish(item, result, "failed", "failed", why)
        case "limit" | "completed" | "completed_unverified":
            await _want_request(item, result)
            applied = await apply_open(item)
            if applied.waits is not None:
                return later(item, applied.waits)
            if (refused := applied.refused.get(REQUEST)) is not None:
                return await _finish(item, result, "failed", "failed", refused.message)
            state, outcome = _judge_end(item, result)
            return await _finish(item, result, state, outcome, why or unverified_note(result.reasons))
        case _:
            assert_never(result.status)


def _judge_end(item: ClaimedItem, result: RunResult) -> tuple[ItemState, Outcome]:
    """Return the state and the outcome of a run that ended by itself or at a limit."""
    if is_success(result.status):
        return "done", "done"
    if result.status == "completed_unverified":
        return "failed", "unverified"
    return "done" if item.record.has_pushed else "failed", "limit"


async def _push(item: ClaimedItem) -> ForgeRefusal | None:
    """Commit the rest, push the branch, and apply all intents. Return a transient refusal, or that of the push."""
    tree, record = item.place.tree, item.record
    made = await snapshot(tree, commit_message(item.text.title, record.key), item.place.identity)
    if isinstance(made, GitRefusal):
        return as_refusal(made)
    head = await tree.git.find_commit(tree.ref)
    before = record.facts.pushed or (record.facts.base_commit if item.text.head else "")
    if head not in (before, record.facts.base_commit):
        item.want(PUSH, PushBranch(branch=tree.branch, commit=head, expected=before))
    applied = await apply_open(item)
    return applied.waits or applied.refused.get(PUSH)


async def _want_request(item: ClaimedItem, result: RunResult) -> None:
    """Want the request, where an issue's branch has something in it. What it says of files is read from the branch."""
    record = item.record
    # In a round the request is there, with what people wrote into it since.
    if not record.facts.pushed or record.key.kind != "issue" or record.facts.rounds:
        return
    number, tree = int(record.key.name), item.place.tree
    done = item.parts.evidence(record.shown.session_id)
    changes = await diff_commits(tree.git, record.facts.base_commit, record.facts.pushed)
    if not isinstance(changes, GitRefusal):
        done = replace_recorded(done, changes)
    wanted = OpenRequest(
        branch=tree.branch,
        base=item.text.base,
        title=request_title(item.text.title, number),
        text=request_body(number, item.text.author, result, done, item.parts.language),
    )
    item.want(REQUEST, wanted)


async def _pause(item: ClaimedItem) -> ItemState:
    """Pause the item, have it wait, or give it back. Its tree is kept, so that any machine can continue."""
    record = item.record
    back = item.parts.stopping.is_set() and record.wanted not in PAUSES
    state: ItemState = "waiting" if record.facts.question else "queued" if back else "paused"
    if state == "paused":
        told = final_comment(Ending("paused"), item.parts.language)
        item.want(f"paused-{item.claim.fence}", PostComment(text=told))
    _want_kept(item)
    if state != "queued":
        item.want("state", SetState(state=state))
    await _apply_kept(item)
    item.parts.items.change(item.claim, state=state)
    return state


async def end_outage(item: ClaimedItem, result: RunResult, *, counts: bool) -> ItemState:
    """Give the item back because the model's provider is away. `counts`: the item may be the cause."""
    _want_kept(item)
    await _apply_kept(item)
    why = result.error.message if result.error is not None else NO_TEXT
    return give_back(item.parts.items, item.claim, why, counts=counts)


def _want_kept(item: ClaimedItem) -> None:
    if item.place.is_elsewhere:
        item.want(KEEP, KeepTree(name=item.text.title, of=f"pause-{item.claim.fence}"))


async def _apply_kept(item: ClaimedItem) -> None:
    """Carry out what is open, and note whether all of the tree is kept."""
    await apply_open(item)
    kept = item.parts.intents.find(item.claim.item, KEEP)
    item.note(whole=kept is not None and kept.status == "done")


async def _finish(
    item: ClaimedItem, result: RunResult, state: ItemState, outcome: Outcome, why: Text
) -> ItemState:
    """Write the last comment and labels; the item's state is written last. Failures are logged, too (R2.75, S2P.16)."""
    record = item.record
    if state in ("failed", "dead"):
        logger.warning("%s: %s", record.item, why)
    told = Ending(
        outcome,
        words=result.text if outcome in ("done", "limit", "unverified") else "",
        why=why,
        changes="on_branch" if record.has_pushed else "none",
        request_url=record.shown.request_url,
        label=item.parts.config.work.labels.todo,
        asked_by=item.text.author if record.key.source != "files" else "",
    )
    item.want(f"final-{record.run}-{outcome}", PostComment(text=final_comment(told, item.parts.language)))
    item.want("state", SetState(state=state))
    kept = item.parts.intents.find(record.item, KEEP)
    if kept is not None and isinstance(kept.intent, KeepTree):
        item.want(KEEP, DropKept())
    applied = await apply_open(item)
    if applied.waits is not None:
        return later(item, applied.waits)
    gone = next((each for each in applied.refused.values() if each.kind in ("gone", "moved")), None)
    if gone is not None and state == "done":  # nobody can be told: the item itself is not there any more
        state, why = "failed", gone.message
    await _clear_away(item)
    in_review = outcome == "done" and is_reviewed(record)
    facts = item.record.facts.model_copy(update={"ended": None, "in_review": in_review, "tries": 0})
    item.parts.items.change(item.claim, state=state, error=why, facts=facts)
    return state


def later(item: ClaimedItem, why: ForgeRefusal) -> ItemState:
    """Queue the item again: a later try goes on with what is open."""
    return give_back_refused(item.parts.items, item.claim, why)


async def _clear_away(item: ClaimedItem) -> None:
    """Remove the work tree if all that is in it is on the server, or there is nothing in it."""
    facts, tree = item.record.facts, item.place.tree
    if await tree.git.find_commit(tree.ref) in (facts.pushed, facts.base_commit):
        await remove_tree(tree.mirror, tree.place)


def is_reviewed(record: ItemRecord) -> bool:
    """Return True if there is a request with work of ours in it, which people and checks look at."""
    if record.key.kind == "request":
        return bool(record.facts.pushed)
    return bool(record.shown.request_url)

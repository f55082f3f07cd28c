"""What comes of an item when its attempt has ended: a commit, a push, a request, one comment, and its state."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import assert_never

from daiku.core.proof.evidence import Evidence
from daiku.core.proof.placeholders import new_leftovers
from daiku.core.proof.tree_changes import replace_recorded
from daiku.core.protected.paths import needs_review
from daiku.core.work.comments import Ending, Outcome, bounded, final_comment
from daiku.core.work.harmless import code, harmless, harmless_line, plain_line
from daiku.dataclass import dataclass
from daiku.domain.items.forge import PASSING, ForgeRefusal, ItemText
from daiku.domain.items.intents import (
    REQUEST,
    DropKept,
    Intent,
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
from daiku.settings.config import Config
from daiku.texts.text import NO_TEXT, Text, joined, render, text
from daiku.tools.git.itemtree import changes_between, remove, snapshot
from daiku.tools.git.ownrun import GitRefusal
from daiku.work.applying import Outside, apply_open
from daiku.work.kept.asking import KEEP
from daiku.work.kept.pushing import Place, as_refusal, commit_message
from daiku.work.record import PAUSES, ItemRecord
from daiku.work.retrying import give_back, give_back_refused, given_up_text, is_outage

MOST_TITLE = 200
MOST_COMMANDS = 30
MOST_FILES = 100


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What a request tells. `number`: the issue that it is for; `closes`: merging it closes that issue. `words` are the
    model's, the rest is on record. `leftovers` are unfinished lines that the work left, as `path: line`."""

    number: int
    asked_by: str
    words: str = ""
    closes: bool = True
    commands: tuple[CommandOutcome, ...] = ()
    files: tuple[FileStat, ...] = ()
    leftovers: tuple[str, ...] = ()
    unverified: tuple[Text, ...] = ()
    """Why the record does not support that the work is done."""


def request_title(title: str, number: int) -> str:
    """Return the issue's title as one plain line."""
    return plain_line(title, MOST_TITLE) or f"Issue {number}"


def request_body(facts: RequestFacts, language: str) -> str:
    """Render who asked, the issue, what was done, and its evidence: commands with exit codes, changed files."""
    parts: list[str] = [
        Text(f"Closes #{facts.number}") if facts.closes else text("request.part_of", number=facts.number),
        text("request.asked_by", name=code(facts.asked_by)),
        harmless(facts.words),
        *_section(text("request.commands"), _commands(facts.commands), text("request.no_commands")),
        *_section(text("request.files"), _files(facts.files), text("request.no_files")),
        *_section(text("request.runs_by_itself"), _implicit(facts.files), Text("")),
        *_section(
            text("request.unverified"),
            [text("request.reason", why=harmless_line(render(why, language))) for why in facts.unverified],
            NO_TEXT,
        ),
        *_section(
            text("request.leftovers"), [Text(f"- {code(each)}") for each in facts.leftovers[:50]], Text("")
        ),
        text("request.check_it"),
    ]
    return bounded(render(joined("paragraphs", parts), language))


def _implicit(files: Sequence[FileStat]) -> list[Text]:
    """Return the changed files that tools run or obey by themselves: a reviewer looks at these first."""
    return [Text(f"- {code(each.path)}") for each in files if needs_review(each.path)][:MOST_FILES]


def _section(head: Text, lines: Sequence[Text], none: Text) -> list[Text]:
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


logger = logging.getLogger(__name__)
PUSH = "push"
"""The operation by which the item's branch is pushed."""


@dataclass(frozen=True, slots=True)
class Ended:
    """An item whose attempt has ended. `given_back`: the worker is to stop. `evidence` is what the run did, by the
    record."""

    outside: Outside
    config: Config
    language: str
    place: Place
    text: ItemText
    result: RunResult
    evidence: Evidence
    given_back: bool

    @property
    def record(self) -> ItemRecord:
        found = self.outside.items.record(self.outside.claim.item)
        assert found is not None, "a claimed item is on record"
        return found

    def want(self, operation: str, intent: Intent) -> None:
        self.outside.intents.want(self.outside.claim, operation, intent)


async def end_item(ended: Ended) -> ItemState:
    """Keep what was done, tell what came of it, and note the item's state. Raises ClaimLost, DaikuError."""
    result = ended.result
    if result.status == "paused":
        return await _paused(ended)
    # From here on the run has ended: who goes on after this process does not work it again.
    ended.outside.items.note(ended.outside.claim, ended=result)
    refused = await _push(ended)
    if refused is not None and refused.kind in PASSING:
        return later(ended.outside, refused)
    if refused is not None and result.status != "cancelled":
        return await _over(ended, "failed", "failed", refused.message)
    why = result.error.message if result.error is not None else NO_TEXT
    match result.status:
        case "cancelled":
            record = ended.record
            state: ItemState = "done" if record.facts.merged else "stopped"
            return await _over(ended, state, "stopped", record.shown.error or why or text("work.cancelled"))
        case "failed" if is_outage(result):  # others are not ended, but tried again
            return await _over(ended, "dead", "failed", given_up_text(why))
        case "failed":
            return await _over(ended, "failed", "failed", why)
        case "limit" | "completed" | "completed_unverified":
            await _want_request(ended)
            applied = await apply_open(ended.outside)
            if applied.waits is not None:
                return later(ended.outside, applied.waits)
            if (refused := applied.refused.get(REQUEST)) is not None:
                return await _over(ended, "failed", "failed", refused.message)
            state, outcome = _judge_end(ended)
            return await _over(ended, state, outcome, why or unverified_note(result.reasons))
        case _:
            assert_never(result.status)


def _judge_end(ended: Ended) -> tuple[ItemState, Outcome]:
    """Return the state and the outcome of work that the run ended by itself or at a limit. Only work that the record
    supports is done, or what a limit left to review."""
    status = ended.result.status
    if is_success(status):
        return "done", "done"
    if status == "completed_unverified":
        return "failed", "unverified"
    return "done" if ended.record.has_pushed else "failed", "limit"


async def _push(ended: Ended) -> ForgeRefusal | None:
    """Commit the rest, push the branch, and carry out all open intents. Return a transient refusal of any of them, or a
    permanent one of the push."""
    place, record = ended.place, ended.record
    made = await snapshot(place.tree, commit_message(ended.text.title, record.key), place.identity)
    if isinstance(made, GitRefusal):
        return as_refusal(made)
    head = await place.tree.git.commit_of(place.tree.ref)
    before = record.facts.pushed or (record.facts.base_commit if ended.text.head else "")
    if head not in (before, record.facts.base_commit):
        ended.want(PUSH, PushBranch(branch=place.tree.branch, commit=head, expected=before))
    applied = await apply_open(ended.outside)
    return applied.waits or applied.refused.get(PUSH)


async def _want_request(ended: Ended) -> None:
    """Want the request, where an issue's branch has something in it. What it says of files is read from the branch."""
    record, result = ended.record, ended.result
    # In a round the request is there, with what people wrote into it since.
    if not record.facts.pushed or record.key.kind != "issue" or record.facts.rounds:
        return
    number, done, tree = int(record.key.name), ended.evidence, ended.place.tree
    changes = await changes_between(tree.git, record.facts.base_commit, record.facts.pushed)
    if not isinstance(changes, GitRefusal):
        done = replace_recorded(done, changes)
    facts = RequestFacts(
        number=number,
        asked_by=ended.text.author,
        words=result.text,
        commands=done.commands,
        files=done.files,
        unverified=tuple(reason.message for reason in result.reasons),
        leftovers=tuple(f"{each.path}: {each.text}" for each in new_leftovers(done.leftovers)),
    )
    wanted = OpenRequest(
        branch=ended.place.tree.branch,
        base=ended.text.base,
        title=request_title(ended.text.title, number),
        text=request_body(facts, ended.language),
    )
    ended.want(REQUEST, wanted)


async def _paused(ended: Ended) -> ItemState:
    """It waits for an answer, was paused by a person, or is given back. Its tree is kept, so that any machine can go
    on with it."""
    outside, record = ended.outside, ended.record
    back = ended.given_back and record.wanted not in PAUSES
    state: ItemState = "waiting" if record.facts.question else "queued" if back else "paused"
    if state == "paused":
        told = final_comment(Ending("paused"), ended.language)
        ended.want(f"paused-{outside.claim.fence}", PostComment(text=told))
    _want_kept(ended)
    if state != "queued":
        ended.want("state", SetState(state=state))
    await _apply_kept(ended)
    outside.items.change(outside.claim, state=state)
    return state


async def end_outage(ended: Ended, *, counts: bool) -> ItemState:
    """Give the item back because the model's provider is away: its tree is kept, and nobody is told. `counts`: the item
    may be the cause."""
    _want_kept(ended)
    await _apply_kept(ended)
    why = ended.result.error.message if ended.result.error is not None else NO_TEXT
    return give_back(ended.outside.items, ended.outside.claim, why, counts=counts)


def _want_kept(ended: Ended) -> None:
    if ended.place.is_elsewhere:
        ended.want(KEEP, KeepTree(name=ended.text.title, of=f"pause-{ended.outside.claim.fence}"))


async def _apply_kept(ended: Ended) -> None:
    """Carry out what is open, and note whether all of the tree is kept."""
    outside = ended.outside
    await apply_open(outside)
    kept = outside.intents.find(outside.claim.item, KEEP)
    outside.items.note(outside.claim, whole=kept is not None and kept.status == "done")


async def _over(ended: Ended, state: ItemState, outcome: Outcome, why: Text) -> ItemState:
    """The last comment and labels; the item's state is the last that is written. What failed is in the log, too (R2.75,
    S2P.16)."""
    record, result = ended.record, ended.result
    if state in ("failed", "dead"):
        logger.warning("%s: %s", record.item, why)
    told = Ending(
        outcome,
        words=result.text if outcome in ("done", "limit", "unverified") else "",
        why=why,
        changes="on_branch" if record.has_pushed else "none",
        request_url=record.shown.request_url,
        label=ended.config.work.labels.todo,
        asked_by=ended.text.author if record.key.source != "files" else "",
    )
    ended.want(f"final-{record.run}-{outcome}", PostComment(text=final_comment(told, ended.language)))
    ended.want("state", SetState(state=state))
    kept = ended.outside.intents.find(record.item, KEEP)
    if kept is not None and isinstance(kept.intent, KeepTree):
        ended.want(KEEP, DropKept())
    applied = await apply_open(ended.outside)
    if applied.waits is not None:
        return later(ended.outside, applied.waits)
    gone = next((each for each in applied.refused.values() if each.kind in ("gone", "moved")), None)
    if gone is not None and state == "done":  # nobody can be told: the item itself is not there any more
        state, why = "failed", gone.message
    await _cleared_away(ended)
    in_review = outcome == "done" and is_reviewed(record)
    facts = ended.record.facts.model_copy(update={"ended": None, "in_review": in_review, "tries": 0})
    ended.outside.items.change(ended.outside.claim, state=state, error=why, facts=facts)
    return state


def later(outside: Outside, why: ForgeRefusal) -> ItemState:
    """Queue the item again: a later try goes on with what is open."""
    return give_back_refused(outside.items, outside.claim, why)


async def _cleared_away(ended: Ended) -> None:
    """The work tree goes where all that is in it is on the server, or there is nothing in it."""
    facts, tree = ended.record.facts, ended.place.tree
    if await tree.git.commit_of(tree.ref) in (facts.pushed, facts.base_commit):
        await remove(tree.mirror, tree.place)


def is_reviewed(record: ItemRecord) -> bool:
    """Whether there is a request with work of ours in it, which people and checks look at."""
    if record.key.kind == "request":
        return bool(record.facts.pushed)
    return bool(record.shown.request_url)

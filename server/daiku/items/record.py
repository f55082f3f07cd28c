"""The record of a work item: what is shown, what its worker needs, and its claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

from daiku.dataclass import dataclass
from daiku.domain.base import Frozen
from daiku.domain.chunks import iso_now
from daiku.domain.errors import DaikuError, Failure
from daiku.domain.items.forge import ItemText
from daiku.domain.items.item import OVER, ItemKey, Signal, WorkItem
from daiku.domain.runs import RunResult
from daiku.store.database import Values
from daiku.texts.text import NO_TEXT, text

Redact = Callable[[str], str]
ItemAction = Literal["pause", "resume", "cancel", "retry"]
Order = Signal | Literal["pausing", "halt", "halting", "give_back"]
"""The order for an item's worker, followed at the next step. `pause` comes from the user, `halt` from the
pause file; `pausing` and `halting` mean acknowledged: no tool starts any more. `give_back`: the worker
must stop."""
HALT_ORDERS: frozenset[Order] = frozenset({"halt", "halting"})
ACKNOWLEDGED: Mapping[Order, Order] = MappingProxyType({"pause": "pausing", "halt": "halting"})
"""The order that replaces another when it is acknowledged."""
PAUSE_ORDERS: frozenset[Order] = frozenset({"pause", "pausing", "halt", "halting"})


class Feedback(Frozen):
    """The result of a review or a check, and its place. `trusted`: its author may give instructions."""

    name: str
    text: str
    trusted: bool = False


class ItemFacts(Frozen):
    """Facts of an item that only its worker needs.

    `base_commit` of its branch; the last commits `pushed` and `kept` on the server (`whole`: nothing changed
    since); the time of the last news; the open `question`; the last messages of a person (`heard`) and notes
    of Daiku (`noted`) that its run received. `uuid` names its context files. `attempt`, `lost`: claims under
    which the agent was started, and its work tree was recreated. `ended`: the run's result until it is
    reported.
    """

    uuid: str = ""
    base_commit: str = ""
    pushed: str = ""
    kept: str = ""
    whole: bool = False
    tries: int = 0
    """Number of consecutive times that the item was given back because of itself, not of a forge or model."""
    takeovers: int = 0
    """Number of consecutive times that its worker ended while processing it and another took over."""
    attempt: int = 0
    lost: int = 0
    ended: RunResult | None = None
    news_after: str = ""
    question: str = ""
    of_approval: bool = False
    """Whether the question is an approval request."""
    heard: int = 0
    noted: int = 0
    in_review: bool = False
    """Whether its request is open and polled for reviews and checks."""
    rounds: int = 0
    """Number of rounds started for reviews and failed checks."""
    feedback: tuple[Feedback, ...] = ()
    """The feedback that the current round addresses."""
    verified: int = 0
    """Number of verification rounds for unfinished work."""
    red: str = ""
    """The last commit whose failed checks were addressed."""
    looked_at: str = ""
    """The time of the last poll of its request."""
    merged: bool = False

    def for_new_attempt(self) -> ItemFacts:
        """Return the facts that stay valid when the item is processed from the start again."""
        return ItemFacts(
            uuid=self.uuid,
            base_commit=self.base_commit,
            pushed=self.pushed,
            heard=self.heard,
            noted=self.noted,
        )


class ItemRecord(Frozen):
    """The stored record of an item, which others call a task.

    `claim`: its text at the claim; `fence`: its fencing token.
    """

    shown: WorkItem
    key: ItemKey
    run: str = ""
    labelled_at: str = ""
    wanted: Order = ""
    worker: str = ""
    fence: int = 0
    next_at: str = ""
    """The time before which a queued item is not claimed, and an ended one's open intents are not retried."""
    claim: ItemText | None = None
    facts: ItemFacts = ItemFacts()

    @property
    def item(self) -> str:
        return self.shown.item

    @property
    def is_unfinished(self) -> bool:
        """Whether its agent has work to do, not only its result to be delivered."""
        return self.shown.state == "processing" and self.facts.ended is None

    @property
    def has_pushed(self) -> bool:
        """Whether its branch has more commits than at the start."""
        return self.facts.pushed not in ("", self.facts.base_commit)


def as_shown(item: WorkItem, order: Order) -> WorkItem:
    """Return the item with the user's pending request."""
    pending = "pause" if order in PAUSE_ORDERS else order if order == "cancel" else ""
    return item.model_copy(update={"wanted": pending if item.state == "processing" else ""})


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to process an item, until another worker claims it."""

    item: str
    fence: int


class ClaimLost(DaikuError):
    """Another worker claimed the item: the previous one must write nothing more."""

    def __init__(self, item: str) -> None:
        super().__init__(Failure(kind="busy", message=text("work.claim_lost", item=item)))


def with_changes(record: ItemRecord, fields: Mapping[str, object], **more: object) -> ItemRecord:
    """Return the record with other fields: `shown` of the item as shown, `more` of the rest."""
    item = record.shown.model_copy(update={**fields, "updated_at": iso_now()})
    return record.model_copy(update={"shown": item, **more})


def apply_action(record: ItemRecord, action: ItemAction) -> ItemRecord | None:
    """Return the record after the user's action; None if it is not possible in its state."""
    state = record.shown.state
    match action:
        case "pause" if state == "processing":
            return record.model_copy(update={"wanted": "pause"})
        case "pause" if state in ("queued", "waiting"):
            return with_changes(record, {"state": "paused"})
        case "cancel" if state == "processing":
            return record.model_copy(update={"wanted": "cancel"})
        case "cancel" if state in ("queued", "waiting", "paused"):
            return with_changes(record, {"state": "stopped", "error": text("work.cancelled")})
        case "resume" if state == "paused":
            return with_changes(record, {"state": "queued"}, next_at="")
        case "retry" if state in OVER:
            fields = {"state": "queued", "error": NO_TEXT, "progress": None}
            return with_changes(
                record, fields, run="", claim=None, facts=record.facts.for_new_attempt(), next_at=""
            )
        case _:
            return None


def get_repository_name(key: ItemKey) -> str:
    """Return the repository of an item, or the place of a file, as one name."""
    return f"{key.source}:{key.repository or key.place}"


def redact_record(record: ItemRecord, redact: Redact) -> ItemRecord:
    """Return the record with all text of others redacted."""
    item = record.shown.model_copy(update={"title": redact(record.shown.title)})
    claim = record.claim
    if claim is not None:
        comments = tuple(c.model_copy(update={"text": redact(c.text)}) for c in claim.comments)
        texts = {"title": redact(claim.title), "body": redact(claim.body), "comments": comments}
        claim = claim.model_copy(update=texts)
    feedback = tuple(f.model_copy(update={"text": redact(f.text)}) for f in record.facts.feedback)
    facts = record.facts.model_copy(update={"feedback": feedback})
    return record.model_copy(update={"shown": item, "claim": claim, "facts": facts})


SCHEMA = """
CREATE TABLE IF NOT EXISTS work_items(
  item TEXT PRIMARY KEY, repository TEXT NOT NULL, state TEXT NOT NULL, data TEXT NOT NULL, item_key TEXT NOT NULL,
  run TEXT NOT NULL, labelled_at TEXT NOT NULL, wanted TEXT NOT NULL, worker TEXT NOT NULL,
  fence INTEGER NOT NULL, claim TEXT NOT NULL, facts TEXT NOT NULL, updated_at TEXT NOT NULL,
  next_at TEXT NOT NULL DEFAULT '');
CREATE INDEX IF NOT EXISTS work_items_by_state ON work_items(state, updated_at);
DROP INDEX IF EXISTS work_items_in_turn;
CREATE INDEX IF NOT EXISTS work_items_next ON work_items(
  state, repository, (CASE run WHEN '' THEN 1 ELSE 0 END), updated_at, item);
"""
"""The table of items. `work_items_next` finds the next item of a repository without reading its complete
queue."""
COLUMNS = (
    "state", "data", "item_key", "run", "labelled_at", "wanted", "worker", "fence", "claim", "facts", "next_at",
    "updated_at",
)  # fmt: skip
"""The columns of the table of items that contain a record."""


def to_values(record: ItemRecord, now: str) -> Values:
    """Return the values of `COLUMNS` for the record."""
    return (
        record.shown.state,
        record.shown.model_dump_json(),
        record.key.model_dump_json(),
        record.run,
        record.labelled_at,
        record.wanted,
        record.worker,
        record.fence,
        record.claim.model_dump_json() if record.claim is not None else "",
        record.facts.model_dump_json(),
        record.next_at,
        now,
    )


def build_record(row: tuple[str, str, str, str, str, Order, str, int, str, str, str, str]) -> ItemRecord:
    """Build the record from the values of `COLUMNS`."""
    _, data, key, run, labelled, order, worker, fence, claim, facts, next_at, _ = row
    return ItemRecord(
        shown=WorkItem.model_validate_json(data),
        key=ItemKey.model_validate_json(key),
        run=run,
        labelled_at=labelled,
        wanted=order,
        worker=worker,
        fence=fence,
        claim=ItemText.model_validate_json(claim) if claim else None,
        facts=ItemFacts.model_validate_json(facts),
        next_at=next_at,
    )

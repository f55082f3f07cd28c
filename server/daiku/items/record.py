"""A work item on record: what is shown, what its worker goes by, and the right to work it."""

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
Wanted = Literal["pause", "resume", "cancel", "retry"]
Order = Signal | Literal["pausing", "halt", "halting", "give_back"]
"""What whoever works the item is to do at the next step. `pause` is a person's, `halt` the pause file's; `pausing` and
`halting`: it was heard, and no tool begins any more; `give_back`: the worker is to stop."""
HALTS: frozenset[Order] = frozenset({"halt", "halting"})
HEARD: Mapping[Order, Order] = MappingProxyType({"pause": "pausing", "halt": "halting"})
"""What an order is replaced by when it was heard."""
PAUSES: frozenset[Order] = frozenset({"pause", "pausing", "halt", "halting"})


class Feedback(Frozen):
    """What a review or a check found, and where; `trusted`: its author may decide here."""

    name: str
    text: str
    trusted: bool = False


class ItemFacts(Frozen):
    """What a worker knows of an item besides what is shown: `base_commit` of its branch, the last commits `pushed` and
    `kept` on the server (`whole`: nothing changed since), the time of the last news, the open `question`, and the last
    words of a person (`heard`) and notes of Daiku (`noted`) that its run got. `uuid` names its context files (S2C.3).
    `attempt`, `lost`: the claims under which the agent was started, and its work tree was made anew. `ended`: the result
    of the run, until it is reported."""

    uuid: str = ""
    base_commit: str = ""
    pushed: str = ""
    kept: str = ""
    whole: bool = False
    tries: int = 0
    """Times in a row that the item was given back because of itself, not of a forge or a model that is away."""
    takeovers: int = 0
    """Times in a row that its worker ended while it was processed, and another one took the item over."""
    attempt: int = 0
    lost: int = 0
    ended: RunResult | None = None
    news_after: str = ""
    question: str = ""
    of_approval: bool = False
    """Whether what it asked is to be allowed, not told."""
    heard: int = 0
    noted: int = 0
    in_review: bool = False
    """Its request is open, and what people and checks say of it is worked in another round."""
    rounds: int = 0
    """Rounds that were begun for reviews and red checks."""
    feedback: tuple[Feedback, ...] = ()
    """What the present round is about."""
    verified: int = 0
    """Rounds of this work on what the last look found unfinished."""
    red: str = ""
    """The last commit whose red checks were worked."""
    looked_at: str = ""
    """When its request was looked at last."""
    merged: bool = False

    def anew(self) -> ItemFacts:
        """Return the facts that are still of use when the item is processed from its beginning again."""
        return ItemFacts(
            uuid=self.uuid,
            base_commit=self.base_commit,
            pushed=self.pushed,
            heard=self.heard,
            noted=self.noted,
        )


class ItemRecord(Frozen):
    """An item on record, which others call a task (X.5). `claim`: its text at the claim; `fence`: its fencing token."""

    shown: WorkItem
    key: ItemKey
    run: str = ""
    labelled_at: str = ""
    wanted: Order = ""
    worker: str = ""
    fence: int = 0
    next_at: str = ""
    """The time before which a queued item is not claimed, and an ended one's open intents are not tried."""
    claim: ItemText | None = None
    facts: ItemFacts = ItemFacts()

    @property
    def item(self) -> str:
        return self.shown.item

    @property
    def is_unfinished(self) -> bool:
        """Unfinished state: its agent has work to do, not only its result to be delivered."""
        return self.shown.state == "processing" and self.facts.ended is None

    @property
    def has_pushed(self) -> bool:
        """Push state: its branch has more commits than it began with."""
        return self.facts.pushed not in ("", self.facts.base_commit)


def seen(shown: WorkItem, wanted: Order) -> WorkItem:
    """Return the item as others see it: with the pending request of a person."""
    told = "pause" if wanted in PAUSES else wanted if wanted == "cancel" else ""
    return shown.model_copy(update={"wanted": told if shown.state == "processing" else ""})


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work an item, until somebody else claims it."""

    item: str
    fence: int


class ClaimLost(DaikuError):
    """Somebody else claimed the item: whoever finds this out writes nothing more."""

    def __init__(self, item: str) -> None:
        super().__init__(Failure(kind="busy", message=text("work.claim_lost", item=item)))


def changed(record: ItemRecord, shown: Mapping[str, object], **more: object) -> ItemRecord:
    """Return the record with other fields: `shown` of the item as it is shown, `more` of the rest."""
    told = record.shown.model_copy(update={**shown, "updated_at": iso_now()})
    return record.model_copy(update={"shown": told, **more})


def asked_for(record: ItemRecord, wanted: Wanted) -> ItemRecord | None:
    """Return the record as the user wants it; None if that is not possible in its state."""
    state = record.shown.state
    match wanted:
        case "pause" if state == "processing":
            return record.model_copy(update={"wanted": "pause"})
        case "pause" if state in ("queued", "waiting"):
            return changed(record, {"state": "paused"})
        case "cancel" if state == "processing":
            return record.model_copy(update={"wanted": "cancel"})
        case "cancel" if state in ("queued", "waiting", "paused"):
            return changed(record, {"state": "stopped", "error": text("work.cancelled")})
        case "resume" if state == "paused":
            return changed(record, {"state": "queued"}, next_at="")
        case "retry" if state in OVER:
            shown = {"state": "queued", "error": NO_TEXT, "progress": None}
            return changed(record, shown, run="", claim=None, facts=record.facts.anew(), next_at="")
        case _:
            return None


def repository_of(key: ItemKey) -> str:
    """Return the repository of an item, or the place of a file, as one name."""
    return f"{key.source}:{key.repository or key.place}"


def without_secrets(record: ItemRecord, redact: Redact) -> ItemRecord:
    """Return the record with all text of strangers redacted."""
    shown = record.shown.model_copy(update={"title": redact(record.shown.title)})
    claim = record.claim
    if claim is not None:
        comments = tuple(each.model_copy(update={"text": redact(each.text)}) for each in claim.comments)
        told = {"title": redact(claim.title), "body": redact(claim.body), "comments": comments}
        claim = claim.model_copy(update=told)
    feedback = tuple(each.model_copy(update={"text": redact(each.text)}) for each in record.facts.feedback)
    facts = record.facts.model_copy(update={"feedback": feedback})
    return record.model_copy(update={"shown": shown, "claim": claim, "facts": facts})


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
"""The table of items. `work_items_next` finds the next item of a repository without reading the rest of its queue."""
COLUMNS = (
    "state", "data", "item_key", "run", "labelled_at", "wanted", "worker", "fence", "claim", "facts", "next_at",
    "updated_at",
)  # fmt: skip
"""The columns of the table of items that hold a record."""


def values_of(record: ItemRecord, now: str) -> Values:
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


def record_of(row: tuple[str, str, str, str, str, Order, str, int, str, str, str, str]) -> ItemRecord:
    """Build the record from the values of `COLUMNS`."""
    _, data, key, run, labelled, wanted, worker, fence, claim, facts, next_at, _ = row
    return ItemRecord(
        shown=WorkItem.model_validate_json(data),
        key=ItemKey.model_validate_json(key),
        run=run,
        labelled_at=labelled,
        wanted=wanted,
        worker=worker,
        fence=fence,
        claim=ItemText.model_validate_json(claim) if claim else None,
        facts=ItemFacts.model_validate_json(facts),
        next_at=next_at,
    )

"""The store of work items: their state, claims, and pending requests."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, cast
from uuid import uuid4

from daiku.domain.chunks import iso_now
from daiku.domain.errors import Failure, UsageError
from daiku.domain.items.forge import FoundItem, ItemText
from daiku.domain.items.item import OVER, ItemKey, ItemProgress, ItemState, WorkItem, read_key
from daiku.domain.messages import Usage
from daiku.items.record import (
    COLUMNS,
    HALT_ORDERS,
    SCHEMA,
    Claim,
    ClaimLost,
    ItemAction,
    ItemFacts,
    ItemRecord,
    Order,
    Redact,
    apply_action,
    as_shown,
    build_record,
    get_repository_name,
    redact_record,
    to_values,
    with_changes,
)
from daiku.store.database import Database, add_column, build_placeholders
from daiku.texts.text import NO_TEXT, Text, text

Author = Literal["person", "system"]
"""Only a person's messages answer a question, allow something, or request a change."""
WORDS_SCHEMA = """
CREATE TABLE IF NOT EXISTS work_told(
  item TEXT NOT NULL, n INTEGER NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL,
  author TEXT NOT NULL DEFAULT 'person', PRIMARY KEY(item, n));
"""


class ItemMessage(NamedTuple):
    """A recorded message; `number` grows within the item."""

    number: int
    text: str


class MessageStore:
    """The messages of all items in one database. Methods raise DaikuError if it fails."""

    def __init__(self, db: Database, redact: Callable[[str], str] = str) -> None:
        self._db = db
        self._redact = redact
        db.prepare(WORDS_SCHEMA)
        fill = "UPDATE work_told SET author = 'system' WHERE id LIKE 'lost-%'"
        add_column(db, "work_told", "author", "TEXT NOT NULL DEFAULT 'person'", fill)

    def add(self, item: str, message: str, of: str, author: Author = "person") -> None:
        """Add a message for the item's agent. `of` is its id; the same id is added once."""
        with self._db.transaction():
            if self._db.first("SELECT 1 FROM work_told WHERE item = ? AND id = ?", (item, of)) is None:
                last = self._db.first("SELECT COALESCE(MAX(n), 0) FROM work_told WHERE item = ?", (item,))
                row = (item, last[0] + 1, of, self._redact(message), author)
                self._db.write("INSERT INTO work_told(item, n, id, text, author) VALUES(?,?,?,?,?)", row)

    def list_after(self, item: str, author: Author, after: int = 0) -> tuple[ItemMessage, ...]:
        """Return the author's messages after number `after`."""
        rows = self._db.query(
            "SELECT n, text FROM work_told WHERE item = ? AND author = ? AND n > ? ORDER BY n",
            (item, author, after),
        )
        return tuple(ItemMessage(*row) for row in rows)

    def unheard_ids(self, item: str, after: int) -> frozenset[str]:
        """Return the ids of people's messages after number `after`."""
        rows = self._db.query(
            "SELECT id FROM work_told WHERE item = ? AND author = 'person' AND n > ?", (item, after)
        )
        return frozenset(row[0] for row in rows)


class Change(TypedDict, total=False):
    """Fields of a claimed item's record to change."""

    state: ItemState
    error: Text
    session_id: str
    branch: str
    request_url: str
    progress: ItemProgress
    usage: Usage
    run: str
    claim: ItemText
    facts: ItemFacts
    next_at: str


class ItemStore:
    """The items in one database, redacted by `redact`. Methods raise DaikuError if it fails."""

    def __init__(self, db: Database, now: Callable[[], str] = iso_now, redact: Redact = str) -> None:
        self._db = db
        self._now = now
        self._redact = redact
        self.messages = MessageStore(db, redact)
        db.prepare(SCHEMA)
        add_column(db, "work_items", "next_at", "TEXT NOT NULL DEFAULT ''")

    @property
    def database(self) -> Database:
        """The database, for tables that refer to items."""
        return self._db

    # -- reading ----------------------------------------------------------------------------

    def list(self, state: ItemState | None = None) -> tuple[WorkItem, ...]:
        """Return the items, last changed first."""
        where, values = ("WHERE state = ?", (state,)) if state else ("", ())
        sql = f"SELECT data, wanted FROM work_items {where} ORDER BY updated_at DESC, item"  # noqa: S608  # constants
        rows = self._db.query(sql, values)
        return tuple(as_shown(WorkItem.model_validate_json(data), order) for data, order in rows)

    def revision(self) -> str:
        """Return a mark that changes when an item is added or changed."""
        count, last, claims = self._db.first("SELECT COUNT(*), MAX(updated_at), SUM(fence) FROM work_items")
        return f"{count} {claims} {last}"

    def find(self, item: str) -> WorkItem:
        """Return the item. Raises UsageError if it does not exist or the name is invalid."""
        record = self.record(item)
        if record is None:
            raise self._unknown_item_error(item)
        return as_shown(record.shown, record.wanted)

    def record(self, item: str) -> ItemRecord | None:
        """Return the complete record of the item; None if there is none."""
        row = self._db.first(f"{_SELECT} WHERE item = ?", (item,))
        return build_record(row) if row is not None else None

    def claimed(self, claim: Claim) -> ItemRecord:
        """Return the record of a claimed item. Raises ClaimLost if it no longer exists."""
        record = self.record(claim.item)
        if record is None:
            raise ClaimLost(claim.item)
        return record

    def records(self, *states: ItemState) -> tuple[ItemRecord, ...]:
        """Return the items in one of `states`, oldest change first."""
        rows = self._db.query(
            f"{_SELECT} WHERE state IN ({build_placeholders(len(states))}) ORDER BY updated_at, item", states
        )
        return tuple(build_record(row) for row in rows)

    def since(self, time: str, *states: ItemState) -> Generator[ItemRecord]:
        """Yield the items in one of `states` that changed after `time`, oldest change first, read in batches."""
        item = ""
        sql = f"{_SELECT} WHERE state IN ({build_placeholders(len(states))}) AND (updated_at, item) > (?, ?) ORDER BY updated_at, item LIMIT ?"
        while rows := self._db.query(sql, (*states, time, item, _READ_AT_ONCE)):
            yield from map(build_record, rows)
            time, item = rows[-1][-1], build_record(rows[-1]).item

    def first_queued(self, count: int) -> tuple[ItemRecord, ...]:
        """Return the next `count` due items of each repository, started ones first, without reading the rest."""
        rows, now = list[Any](), self._now()
        names = self._db.query("SELECT DISTINCT repository FROM work_items WHERE state = 'queued'")
        for start in range(0, len(names), _READ_AT_ONCE):
            some = names[start : start + _READ_AT_ONCE]
            sql = " UNION ALL ".join([_PART] * len(some))
            rows += self._db.query(sql, tuple(value for (name,) in some for value in (name, now, count)))
        return tuple(sorted(map(build_record, rows), key=lambda r: (not r.run, r.shown.updated_at, r.item)))

    def queued_keys(self) -> tuple[ItemKey, ...]:
        """Return the key of one queued item of each repository."""
        rows = self._db.query(
            "SELECT MIN(item_key) FROM work_items WHERE state = 'queued' GROUP BY repository"
        )
        return tuple(ItemKey.model_validate_json(row[0]) for row in rows)

    def in_review(self) -> tuple[ItemRecord, ...]:
        """Return the completed items whose request is open, least recently polled first."""
        like = '%"in_review":true%'
        rows = self._db.query(f"{_SELECT} WHERE state = 'done' AND facts LIKE ? ORDER BY item", (like,))
        return tuple(sorted(map(build_record, rows), key=lambda record: record.facts.looked_at))

    # -- changes by sources and people --------------------------------------------------------

    def add(self, candidate: FoundItem) -> bool:
        """Record an item that a source found. Return True if it must be processed.

        That is so if it is new, or was labeled again after its end. A file of the same name elsewhere changes
        nothing. A refused item is stopped.
        """
        item = str(candidate.key)
        row = self._db.first("SELECT state, labelled_at FROM work_items WHERE item = ?", (item,))
        if row is not None and not _is_ordered(row[0], row[1], candidate):
            return False  # the usual case
        with self._db.transaction():
            old = self._lock_record(item)
            if old is not None and not (
                old.key == candidate.key
                and _is_ordered(old.shown.state, old.labelled_at, candidate)
                and not (candidate.refused and old.facts.in_review)
            ):
                return False
            now = self._now()
            state: ItemState = "stopped" if candidate.refused else "queued"
            new = WorkItem(item=item, title=candidate.title, state=state, created_at=now, updated_at=now)
            update = {
                "title": candidate.title,
                "url": candidate.url,
                "state": state,
                "error": candidate.refused,
            }
            before = old.shown if old is not None else new
            item_shown = before.model_copy(update={**update, "progress": None, "updated_at": now})
            fence = old.fence if old is not None else 0
            facts = old.facts.for_new_attempt() if old is not None else ItemFacts(uuid=str(uuid4()))
            record = ItemRecord(
                shown=item_shown, key=candidate.key, labelled_at=candidate.order, fence=fence, facts=facts
            )
            is_noted = self._insert(record) if old is None else bool(self._store(record))
            return is_noted and not candidate.refused

    def ask(self, item: str, action: ItemAction) -> WorkItem:
        """Pause, resume, cancel or retry an item. Raises UsageError if unknown or not possible now."""
        with self._db.transaction():
            record = self.record(item)
            if record is None:
                raise self._unknown_item_error(item)
            after = apply_action(record, action)
            if after is None:
                message = text("work.not_possible", item=item, state=record.shown.state, wanted=action)
                raise UsageError(Failure(kind="usage", message=message, hint=_HINTS[action]))
            self._store(after)
            return as_shown(after.shown, after.wanted)

    def is_pausing(self, item: str) -> bool:
        """Return True if a pause of the item was acknowledged: no tool starts any more."""
        row = self._db.first("SELECT state, wanted FROM work_items WHERE item = ?", (item,))
        return row is not None and (row[1] == "pausing" or row[0] != "processing")

    def requeue(self, item: str) -> None:
        """Queue an item again that waited for a person, or that the pause file held."""
        with self._db.transaction():
            record = self._lock_record(item)
            is_halted = record is not None and record.shown.state == "paused" and record.wanted in HALT_ORDERS
            if record is not None and (is_halted or record.shown.state == "waiting"):
                self._store(with_changes(record, {"state": "queued"}, wanted=""))

    def begin_round(self, record: ItemRecord, facts: ItemFacts) -> bool:
        """Queue an item in review for another round, by a new run of its session.

        Return False if it changed meanwhile.
        """
        with self._db.transaction():
            if not self._is_unchanged(record):
                return False
            self._store(with_changes(record, {"state": "queued"}, run="", facts=facts))
            return True

    def note_unclaimed(self, record: ItemRecord, facts: ItemFacts) -> None:
        """Store facts of an item without a claim, unless it has changed since it was read."""
        with self._db.transaction():
            if self._is_unchanged(record):
                self._store(record.model_copy(update={"facts": facts}))

    def claim_unchanged(self, record: ItemRecord, worker: str) -> Claim | None:
        """Claim an item without changing its state; None if it has changed since it was read."""
        with self._db.transaction():
            if not self._is_unchanged(record):
                return None
            fence = record.fence + 1
            self._store(record.model_copy(update={"worker": worker, "fence": fence}))
            return Claim(record.item, fence)

    def signal(self, claim: Claim, order: Order, after: Order | None = None) -> None:
        """Set the order for the item's worker, with `after` only in place of that one. Raises ClaimLost."""
        with self.under_claim(claim) as record:
            if after in (None, record.wanted):
                self._store(record.model_copy(update={"wanted": order}))

    # -- changes by the claim's worker --------------------------------------------------------

    def claim(
        self,
        item: str,
        worker: str,
        *,
        only: tuple[ItemState, ...] = ("queued",),
        expected_fence: int | None = None,
    ) -> Claim | None:
        """Claim the item if it is in one of the states `only`.

        `expected_fence`: its fencing token must be this one.
        """
        with self._db.transaction():
            record = self._lock_record(item)
            if record is None or record.shown.state not in only or expected_fence not in (None, record.fence):
                return None
            item_fields = {"state": "processing", "attempts": record.shown.attempts + 1, "error": NO_TEXT}
            fence = record.fence + 1
            takeovers = record.facts.takeovers + (record.shown.state == "processing")
            facts = record.facts.model_copy(update={"takeovers": takeovers})
            after = with_changes(
                record, item_fields, worker=worker, fence=fence, wanted="", next_at="", facts=facts
            )
            self._store(after)
            return Claim(item, fence)

    def change(self, claim: Claim, /, **fields: Unpack[Change]) -> ItemRecord:
        """Change fields of the item. Raises ClaimLost."""
        item_fields = {name: value for name, value in fields.items() if name in WorkItem.model_fields}
        more = {name: value for name, value in fields.items() if name not in item_fields}
        with self.under_claim(claim) as record:
            return self._store(with_changes(record, item_fields, **more))

    def note(self, claim: Claim, **facts: object) -> ItemRecord:
        """Change these facts of the item. Raises ClaimLost."""
        with self.under_claim(claim) as record:
            return self._store(with_changes(record, {}, facts=record.facts.model_copy(update=facts)))

    @contextmanager
    def under_claim(self, claim: Claim) -> Generator[ItemRecord]:
        """Open a transaction while the claim is valid; others wait. Raises ClaimLost."""
        with self._db.transaction():
            record = self._lock_record(claim.item)
            if record is None or record.fence != claim.fence:
                raise ClaimLost(claim.item)
            yield record

    def current_order(self, claim: Claim) -> Order | None:
        """Return the order for the worker with the claim; None if the claim is lost."""
        row = self._db.first("SELECT fence, wanted FROM work_items WHERE item = ?", (claim.item,))
        return cast("Order", row[1]) if row is not None and row[0] == claim.fence else None

    def _is_unchanged(self, record: ItemRecord) -> bool:
        now = self._lock_record(record.item)
        return now == record

    def _lock_record(self, item: str) -> ItemRecord | None:
        # A no-op update locks the row on every database.
        row = self._db.first("UPDATE work_items SET fence = fence WHERE item = ? RETURNING item", (item,))
        return self.record(item) if row is not None else None

    def _insert(self, record: ItemRecord) -> bool:
        """Insert an item; return False if another process has just done so."""
        redacted = redact_record(record, self._redact)
        values = (*to_values(redacted, self._now()), record.item, get_repository_name(record.key))
        sql = (
            f"INSERT INTO work_items({', '.join(COLUMNS)}, item, repository) VALUES({build_placeholders(len(values))})"  # constants
            " ON CONFLICT(item) DO NOTHING RETURNING item"
        )
        return self._db.first(sql, values) is not None

    def _store(self, record: ItemRecord) -> ItemRecord:
        record = redact_record(record, self._redact)
        sets = ", ".join(f"{name} = ?" for name in COLUMNS)
        values = (*to_values(record, self._now()), record.item)
        self._db.write(f"UPDATE work_items SET {sets} WHERE item = ?", values)  # noqa: S608  # constants
        return record

    def _unknown_item_error(self, item: str) -> UsageError:
        if read_key(item) is None:
            message = text("work.not_a_name", item=item)
            return UsageError(Failure(kind="usage", message=message, hint=text("work.list_items")))
        names = [
            row[0] for row in self._db.query("SELECT item FROM work_items ORDER BY updated_at DESC LIMIT 500")
        ]
        near = get_close_matches(item, names, n=1)
        hint = text("work.nearest", item=near[0]) if near else text("work.list_items")
        return UsageError(Failure(kind="not_found", message=text("work.no_item", item=item), hint=hint))


_HINTS: dict[ItemAction, Text] = {
    "pause": text("work.hint.pause"),
    "resume": text("work.hint.resume"),
    "cancel": text("work.hint.cancel"),
    "retry": text("work.hint.retry"),
}
_READ_AT_ONCE = 50
_SELECT = f"SELECT {', '.join(COLUMNS)} FROM work_items"  # noqa: S608  # constants
NEXT_QUEUED = (
    f"{_SELECT} WHERE state = 'queued' AND repository = ? AND next_at <= ?"
    " ORDER BY CASE run WHEN '' THEN 1 ELSE 0 END, updated_at, item LIMIT ?"
)
_PART = f"SELECT * FROM ({NEXT_QUEUED}) AS queued"  # noqa: S608  # constants


def _is_ordered(state: ItemState, labelled_at: str, candidate: FoundItem) -> bool:
    """Return True if an item in this state must be processed again: it has ended and was labeled again."""
    return state in OVER and labelled_at != candidate.order

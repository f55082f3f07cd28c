"""The store of work items: how each stands, who works it, and what was asked of it from elsewhere."""

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
    HALTS,
    SCHEMA,
    Claim,
    ClaimLost,
    ItemFacts,
    ItemRecord,
    Order,
    Redact,
    Wanted,
    asked_for,
    changed,
    record_of,
    repository_of,
    seen,
    values_of,
    without_secrets,
)
from daiku.store.database import Database, add_column, marks
from daiku.texts.text import NO_TEXT, Text, text

Author = Literal["person", "system"]
"""Only a person's words answer a question, allow something, or ask for a change."""
WORDS_SCHEMA = """
CREATE TABLE IF NOT EXISTS work_told(
  item TEXT NOT NULL, n INTEGER NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL,
  author TEXT NOT NULL DEFAULT 'person', PRIMARY KEY(item, n));
"""


class Words(NamedTuple):
    """Words on record; `number` grows within the item."""

    number: int
    text: str


class WordStore:
    """The words of all items in one database. Methods raise DaikuError if it fails."""

    def __init__(self, db: Database, redact: Callable[[str], str] = str) -> None:
        self._db = db
        self._redact = redact
        db.prepare(WORDS_SCHEMA)
        fill = "UPDATE work_told SET author = 'system' WHERE id LIKE 'lost-%'"
        add_column(db, "work_told", "author", "TEXT NOT NULL DEFAULT 'person'", fill)

    def leave(self, item: str, said: str, of: str, author: Author = "person") -> None:
        """Leave words for whoever works the item; `of` is their id, and the same is left once."""
        with self._db.transaction():
            if self._db.first("SELECT 1 FROM work_told WHERE item = ? AND id = ?", (item, of)) is None:
                last = self._db.first("SELECT COALESCE(MAX(n), 0) FROM work_told WHERE item = ?", (item,))
                row = (item, last[0] + 1, of, self._redact(said), author)
                self._db.write("INSERT INTO work_told(item, n, id, text, author) VALUES(?,?,?,?,?)", row)

    def left(self, item: str, author: Author, after: int = 0) -> tuple[Words, ...]:
        """Return the words of that kind of author behind number `after`."""
        rows = self._db.query(
            "SELECT n, text FROM work_told WHERE item = ? AND author = ? AND n > ? ORDER BY n",
            (item, author, after),
        )
        return tuple(Words(*row) for row in rows)

    def unheard(self, item: str, after: int) -> frozenset[str]:
        """Return the ids of people's words behind number `after`."""
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
    """The items in one database, in the words that `redact` leaves. Methods raise DaikuError where it fails."""

    def __init__(self, db: Database, now: Callable[[], str] = iso_now, redact: Redact = str) -> None:
        self._db = db
        self._now = now
        self._redact = redact
        self.words = WordStore(db, redact)
        db.prepare(SCHEMA)
        add_column(db, "work_items", "next_at", "TEXT NOT NULL DEFAULT ''")

    @property
    def database(self) -> Database:
        """Where they are, for tables that belong to them."""
        return self._db

    # -- reading ----------------------------------------------------------------------------

    def list(self, state: ItemState | None = None) -> tuple[WorkItem, ...]:
        """The items, last changed first."""
        where, values = ("WHERE state = ?", (state,)) if state else ("", ())
        sql = f"SELECT data, wanted FROM work_items {where} ORDER BY updated_at DESC, item"  # noqa: S608  # constants
        rows = self._db.query(sql, values)
        return tuple(seen(WorkItem.model_validate_json(data), wanted) for data, wanted in rows)

    def revision(self) -> str:
        """A mark that is another one after an item was added or changed."""
        count, last, claims = self._db.first("SELECT COUNT(*), MAX(updated_at), SUM(fence) FROM work_items")
        return f"{count} {claims} {last}"

    def find(self, item: str) -> WorkItem:
        """Return the item. Raises UsageError: there is none of that name, or it cannot be the name of one."""
        record = self.record(item)
        if record is None:
            raise self._unknown(item)
        return seen(record.shown, record.wanted)

    def record(self, item: str) -> ItemRecord | None:
        """Everything that is on record of the item."""
        row = self._db.first(f"{_SELECT} WHERE item = ?", (item,))
        return record_of(row) if row is not None else None

    def claimed(self, claim: Claim) -> ItemRecord:
        """Return the record of a claimed item. Raises ClaimLost: it is not there any more."""
        record = self.record(claim.item)
        if record is None:
            raise ClaimLost(claim.item)
        return record

    def records(self, *states: ItemState) -> tuple[ItemRecord, ...]:
        """The items in one of `states`, the oldest change first."""
        rows = self._db.query(
            f"{_SELECT} WHERE state IN ({marks(len(states))}) ORDER BY updated_at, item", states
        )
        return tuple(record_of(row) for row in rows)

    def since(self, time: str, *states: ItemState) -> Generator[ItemRecord]:
        """The items in one of `states` that changed after `time`, the oldest change first; a few are read at a time."""
        item = ""
        sql = f"{_SELECT} WHERE state IN ({marks(len(states))}) AND (updated_at, item) > (?, ?) ORDER BY updated_at, item LIMIT ?"
        while rows := self._db.query(sql, (*states, time, item, _READ_AT_ONCE)):
            yield from map(record_of, rows)
            time, item = rows[-1][-1], record_of(rows[-1]).item

    def first_queued(self, count: int) -> tuple[ItemRecord, ...]:
        """Return the next `count` due items of each repository, begun ones first (S2R.5), without reading the rest."""
        rows, now = list[Any](), self._now()
        names = self._db.query("SELECT DISTINCT repository FROM work_items WHERE state = 'queued'")
        for start in range(0, len(names), _READ_AT_ONCE):
            some = names[start : start + _READ_AT_ONCE]
            sql = " UNION ALL ".join([_PART] * len(some))
            rows += self._db.query(sql, tuple(value for (name,) in some for value in (name, now, count)))
        return tuple(
            sorted(map(record_of, rows), key=lambda each: (not each.run, each.shown.updated_at, each.item))
        )

    def queued_keys(self) -> tuple[ItemKey, ...]:
        """Return the key of one queued item of each repository."""
        rows = self._db.query(
            "SELECT MIN(item_key) FROM work_items WHERE state = 'queued' GROUP BY repository"
        )
        return tuple(ItemKey.model_validate_json(row[0]) for row in rows)

    def in_review(self) -> tuple[ItemRecord, ...]:
        """The items that are done and whose request is open, the one that was looked at longest ago first."""
        like = '%"in_review":true%'
        rows = self._db.query(f"{_SELECT} WHERE state = 'done' AND facts LIKE ? ORDER BY item", (like,))
        return tuple(sorted(map(record_of, rows), key=lambda each: each.facts.looked_at))

    # -- what a source and a person say -------------------------------------------------------

    def add(self, found: FoundItem) -> bool:
        """Note an item that a source found. Return True if it is to be processed: it is new, or was labelled again
        since it was over. A file of the same name elsewhere changes nothing. A refused item is stopped."""
        item = str(found.key)
        known = self._db.first("SELECT state, labelled_at FROM work_items WHERE item = ?", (item,))
        if known is not None and not _is_ordered(known[0], known[1], found):
            return False  # what most looks find
        with self._db.transaction():
            old = self._locked(item)
            if old is not None and not (
                old.key == found.key
                and _is_ordered(old.shown.state, old.labelled_at, found)
                and not (found.refused and old.facts.in_review)
            ):
                return False
            now = self._now()
            state: ItemState = "stopped" if found.refused else "queued"
            new = WorkItem(item=item, title=found.title, state=state, created_at=now, updated_at=now)
            anew = {"title": found.title, "url": found.url, "state": state, "error": found.refused}
            before = old.shown if old is not None else new
            shown = before.model_copy(update={**anew, "progress": None, "updated_at": now})
            fence = old.fence if old is not None else 0
            facts = old.facts.anew() if old is not None else ItemFacts(uuid=str(uuid4()))
            record = ItemRecord(shown=shown, key=found.key, labelled_at=found.order, fence=fence, facts=facts)
            is_noted = self._is_new(record) if old is None else bool(self._store(record))
            return is_noted and not found.refused

    def ask(self, item: str, wanted: Wanted) -> WorkItem:
        """Pause, resume, cancel or retry an item from any process. Raises UsageError: unknown, or not possible now."""
        with self._db.transaction():
            record = self.record(item)
            if record is None:
                raise self._unknown(item)
            after = asked_for(record, wanted)
            if after is None:
                message = text("work.not_possible", item=item, state=record.shown.state, wanted=wanted)
                raise UsageError(Failure(kind="usage", message=message, hint=_HINTS[wanted]))
            self._store(after)
            return seen(after.shown, after.wanted)

    def is_pausing(self, item: str) -> bool:
        """Whether a person's pause of the item was heard: no tool begins any more."""
        row = self._db.first("SELECT state, wanted FROM work_items WHERE item = ?", (item,))
        return row is not None and (row[1] == "pausing" or row[0] != "processing")

    def requeue(self, item: str) -> None:
        """Have an item worked again that waited, as a person has answered, or that the pause of everything held."""
        with self._db.transaction():
            record = self._locked(item)
            held = record is not None and record.shown.state == "paused" and record.wanted in HALTS
            if record is not None and (held or record.shown.state == "waiting"):
                self._store(changed(record, {"state": "queued"}, wanted=""))

    def begin_round(self, record: ItemRecord, facts: ItemFacts) -> bool:
        """Have an item in review worked in another round, by a new run of its session; False where it changed meanwhile."""
        with self._db.transaction():
            if not self._stands(record):
                return False
            self._store(changed(record, {"state": "queued"}, run="", facts=facts))
            return True

    def note_unclaimed(self, record: ItemRecord, facts: ItemFacts) -> None:
        """Note what was found out about an item that nobody works, unless it has changed since it was read."""
        with self._db.transaction():
            if self._stands(record):
                self._store(record.model_copy(update={"facts": facts}))

    def hold(self, record: ItemRecord, worker: str) -> Claim | None:
        """The right to change an item that stays as it stands; None where it has changed since it was read."""
        with self._db.transaction():
            if not self._stands(record):
                return None
            fence = record.fence + 1
            self._store(record.model_copy(update={"worker": worker, "fence": fence}))
            return Claim(record.item, fence)

    def signal(self, claim: Claim, wanted: Order, after: Order | None = None) -> None:
        """Signal what to do at the next step; with `after` only if that was the last order. Raises ClaimLost."""
        with self.holding(claim) as record:
            if after in (None, record.wanted):
                self._store(record.model_copy(update={"wanted": wanted}))

    # -- whoever works it ---------------------------------------------------------------------

    def claim(
        self, item: str, worker: str, *, only: tuple[ItemState, ...] = ("queued",), seen: int | None = None
    ) -> Claim | None:
        """Claim the item if it is in one of the states `only`. `seen`: its fencing token then, if it must be the same."""
        with self._db.transaction():
            record = self._locked(item)
            if record is None or record.shown.state not in only or seen not in (None, record.fence):
                return None
            shown = {"state": "processing", "attempts": record.shown.attempts + 1, "error": NO_TEXT}
            fence = record.fence + 1
            takeovers = record.facts.takeovers + (record.shown.state == "processing")
            facts = record.facts.model_copy(update={"takeovers": takeovers})
            after = changed(record, shown, worker=worker, fence=fence, wanted="", next_at="", facts=facts)
            self._store(after)
            return Claim(item, fence)

    def change(self, claim: Claim, /, **fields: Unpack[Change]) -> ItemRecord:
        """Note what became of the item. Raises ClaimLost."""
        shown = {name: value for name, value in fields.items() if name in WorkItem.model_fields}
        more = {name: value for name, value in fields.items() if name not in shown}
        with self.holding(claim) as record:
            return self._store(changed(record, shown, **more))

    def note(self, claim: Claim, **facts: object) -> ItemRecord:
        """Note these facts of the item; the others stay as they are now. Raises ClaimLost."""
        with self.holding(claim) as record:
            return self._store(changed(record, {}, facts=record.facts.model_copy(update=facts)))

    @contextmanager
    def holding(self, claim: Claim) -> Generator[ItemRecord]:
        """A transaction in which the claim holds; what is written in it by others waits. Raises ClaimLost."""
        with self._db.transaction():
            record = self._locked(claim.item)
            if record is None or record.fence != claim.fence:
                raise ClaimLost(claim.item)
            yield record

    def holds(self, claim: Claim) -> Order | None:
        """What is wanted of whoever holds the claim; None where it is lost."""
        row = self._db.first("SELECT fence, wanted FROM work_items WHERE item = ?", (claim.item,))
        return cast("Order", row[1]) if row is not None and row[0] == claim.fence else None

    def _stands(self, record: ItemRecord) -> bool:
        now = self._locked(record.item)
        return now == record

    def _locked(self, item: str) -> ItemRecord | None:
        # An update that changes nothing: other transactions wait for the row, on every database.
        row = self._db.first("UPDATE work_items SET fence = fence WHERE item = ? RETURNING item", (item,))
        return self.record(item) if row is not None else None

    def _is_new(self, record: ItemRecord) -> bool:
        """Note an item that is not on record yet; False where somebody else did so at this moment."""
        kept = without_secrets(record, self._redact)
        values = (*values_of(kept, self._now()), record.item, repository_of(record.key))
        sql = (
            f"INSERT INTO work_items({', '.join(COLUMNS)}, item, repository) VALUES({marks(len(values))})"  # constants
            " ON CONFLICT(item) DO NOTHING RETURNING item"
        )
        return self._db.first(sql, values) is not None

    def _store(self, record: ItemRecord) -> ItemRecord:
        record = without_secrets(record, self._redact)
        sets = ", ".join(f"{name} = ?" for name in COLUMNS)
        values = (*values_of(record, self._now()), record.item)
        self._db.write(f"UPDATE work_items SET {sets} WHERE item = ?", values)  # noqa: S608  # constants
        return record

    def _unknown(self, item: str) -> UsageError:
        if read_key(item) is None:
            message = text("work.not_a_name", item=item)
            return UsageError(Failure(kind="usage", message=message, hint=text("work.list_items")))
        names = [
            row[0] for row in self._db.query("SELECT item FROM work_items ORDER BY updated_at DESC LIMIT 500")
        ]
        near = get_close_matches(item, names, n=1)
        hint = text("work.nearest", item=near[0]) if near else text("work.list_items")
        return UsageError(Failure(kind="not_found", message=text("work.no_item", item=item), hint=hint))


_HINTS: dict[Wanted, Text] = {
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


def _is_ordered(state: ItemState, labelled_at: str, found: FoundItem) -> bool:
    """Return True if an item in this state is to be processed again: it is over, and was labelled again."""
    return state in OVER and labelled_at != found.order

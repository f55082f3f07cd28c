"""The store of intents: changes that items need outside, whether they were begun, and their outcome."""

from __future__ import annotations

from collections.abc import Callable

from daiku.domain.chunks import iso_now
from daiku.domain.items.item import (
    FORGE_KINDS,
    Intent,
    IntentRecord,
    IntentStatus,
    Outcome,
    SetState,
    WorkItem,
    read_intent,
    without_secrets,
)
from daiku.items.items import ItemStore
from daiku.items.record import Claim, ItemAction
from daiku.store.database import Database, add_column

SCHEMA = """
CREATE TABLE IF NOT EXISTS work_intents(
  item TEXT NOT NULL, operation TEXT NOT NULL, n INTEGER NOT NULL, intent TEXT NOT NULL,
  status TEXT NOT NULL, reference TEXT NOT NULL, error TEXT NOT NULL, sent INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY(item, operation))
"""


class IntentStore:
    """The intents of the items of `items`, written under their claims.

    `redact` removes secrets from all texts.
    """

    def __init__(self, db: Database, items: ItemStore, redact: Callable[[str], str] = str) -> None:
        self._db = db
        self._items = items
        self._redact = redact
        db.prepare(SCHEMA)
        fill = "UPDATE work_intents SET sent = 1 WHERE status = 'sent'"
        add_column(db, "work_intents", "sent", "INTEGER NOT NULL DEFAULT 0", fill)

    def want(self, claim: Claim, operation: str, intent: Intent) -> None:
        """Record an intent, durably. An equal one changes nothing, unless it was refused. Raises ClaimLost."""
        intent = without_secrets(intent, self._redact)
        with self._db.durable(), self._items.under_claim(claim):
            old = self.find(claim.item, operation)
            if old is not None and old.intent == intent and old.status != "refused":
                return
            last = self._db.first(
                "SELECT COALESCE(MAX(n), 0) FROM work_intents WHERE item = ?", (claim.item,)
            )
            data = intent.model_dump_json()
            if old is None:
                columns = "item, operation, n, intent, status, reference, error"
                row = (claim.item, operation, last[0] + 1, data)
                self._db.write(f"INSERT INTO work_intents({columns}) VALUES(?,?,?,?,'wanted','','')", row)
            else:
                status = "sent" if old.sent else "wanted"
                self._db.write(
                    "UPDATE work_intents SET n = ?, intent = ?, status = ?, error = ''"
                    " WHERE item = ? AND operation = ?",
                    (last[0] + 1, data, status, claim.item, operation),
                )

    def list_open(self, item: str) -> tuple[IntentRecord, ...]:
        """Return the intents that are not applied yet, in order."""
        return self._all("item = ? AND status IN ('wanted', 'sent') ORDER BY n", item)

    def list_items_left_open(self, most: int) -> tuple[str, ...]:
        """Return items without a worker that have open intents for a forge and whose next try is due."""
        forge = " OR ".join(f'i.intent LIKE \'{{"type":"{kind}"%\'' for kind in FORGE_KINDS)
        rows = self._db.query(
            "SELECT DISTINCT i.item FROM work_intents i JOIN work_items w ON w.item = i.item"  # noqa: S608  # constants
            f" WHERE i.status IN ('wanted', 'sent') AND ({forge})"
            " AND w.state NOT IN ('queued', 'processing') AND w.next_at <= ? ORDER BY i.item LIMIT ?",
            (iso_now(), most),
        )
        return tuple(row[0] for row in rows)

    def find(self, item: str, operation: str) -> IntentRecord | None:
        """Return the intent of this operation; None if there is none."""
        records = self._all("item = ? AND operation = ?", item, operation)
        return records[0] if records else None

    def count_comments(self, item: str) -> int:
        """Return how many separate comments were posted for the item."""
        like = '{"type":"comment"%'
        sql = "SELECT COUNT(*) FROM work_intents WHERE item = ? AND status = 'done' AND intent LIKE ?"
        return self._db.first(sql, (item, like))[0]

    def begin(self, claim: Claim, operation: str) -> None:
        """Record that the call is sent now; survives a power cut. Raises ClaimLost."""
        with self._db.durable():
            self._set(claim, operation, "sent", sent=True)

    def end(self, claim: Claim, record: IntentRecord, outcome: Outcome) -> None:
        """Record the outcome, unless the intent was replaced meanwhile. Raises ClaimLost."""
        with self._items.under_claim(claim):
            now = self.find(claim.item, record.operation)
            status = "done" if now is not None and now.intent == record.intent else "wanted"
            self._set(claim, record.operation, status, reference=outcome.reference, sent=False)

    def refuse(self, claim: Claim, operation: str, why: str) -> None:
        """Record a permanent refusal. `sent` stays: only the lookup may have been refused. Raises ClaimLost."""
        self._set(claim, operation, "refused", error=why)

    def _set(
        self,
        claim: Claim,
        operation: str,
        status: IntentStatus,
        *,
        sent: bool | None = None,
        reference: str = "",
        error: str = "",
    ) -> None:
        with self._items.under_claim(claim):
            self._db.write(
                "UPDATE work_intents SET status = ?, reference = ?, error = ?, sent = COALESCE(?, sent)"
                " WHERE item = ? AND operation = ?",
                (status, reference, error, None if sent is None else int(sent), claim.item, operation),
            )

    def _all(self, where: str, *values: str) -> tuple[IntentRecord, ...]:
        rows = self._db.query(f"{_SELECT} WHERE {where}", values)
        return tuple(
            IntentRecord(
                item=item,
                operation=operation,
                intent=without_secrets(read_intent(intent), self._redact),
                status=status,
                sent=bool(sent),
                reference=reference,
                error=error,
            )
            for item, operation, intent, status, sent, reference, error in rows
        )


_SELECT = "SELECT item, operation, intent, status, sent, reference, error FROM work_intents"


def ask_item(items: ItemStore, item: str, action: ItemAction) -> WorkItem:
    """Pause, resume, cancel or retry an item; a worker changes its label.

    Raises UsageError if unknown or not possible.
    """
    intents = IntentStore(items.database, items)
    with items.database.transaction():
        item_shown = items.ask(item, action)
        record = items.record(item)
        if record is not None and item_shown.state in ("paused", "stopped"):
            intents.want(Claim(item, record.fence), "state", SetState(state=item_shown.state))
    return item_shown

"""Reading only the end of a long session: its last chunks, and totals of the earlier ones."""

from __future__ import annotations

from typing import Literal, NamedTuple

from daiku.domain.messages import Usage
from daiku.store.database import Database
from daiku.trace.rows import READ, Read


class Window(NamedTuple):
    """Rows of a session from `first_seq` on, after its run's start, the last plan, and the last todo list."""

    rows: list[Read]
    first_seq: int
    earlier: int
    usage: Usage


def read_window(db: Database, session: str, *, before_seq: int, last: int) -> Window:
    """Read about the `last` rows below `before_seq` (0: the end), from the start of a run or user message."""
    below = before_seq or 1 << 62
    first_seq = _find_start(db, session, below, last)
    rows: list[Read] = db.query(
        f"{READ} WHERE session = ? AND seq >= ? AND seq < ? ORDER BY seq", (session, first_seq, below)
    )
    before = _referenced_rows(db, session, first_seq, rows)
    earlier, prompt, completion, cached, cost, model = db.first(
        f"SELECT COUNT(*), {_sum('promptTokens')}, {_sum('completionTokens')}, {_sum('cachedTokens')}, {_sum('cost', 'REAL')},"  # noqa: S608  # constants
        " MAX(json_extract(data, '$.model')) FILTER (WHERE type = 'usage') FROM chunks WHERE session = ? AND seq < ?",
        (session, first_seq),
    )
    usage = Usage(
        model=model or "",
        prompt_tokens=prompt or 0,
        completion_tokens=completion or 0,
        cached_tokens=cached or 0,
        cost=cost,
    )
    return Window([*before, *rows], first_seq, earlier, usage)


def _sum(field: str, kind: Literal["INTEGER", "REAL"] = "INTEGER") -> str:
    return (
        f"CAST(SUM(CAST(json_extract(data, '$.{field}') AS {kind})) FILTER (WHERE type = 'usage') AS {kind})"
    )


def _find_start(db: Database, session: str, below: int, last: int) -> int:
    """Return the first seq of the window; 0 if it holds everything."""
    row = db.first(
        "SELECT seq FROM chunks WHERE session = ? AND seq < ? ORDER BY seq DESC LIMIT 1 OFFSET ?",
        (session, below, last - 1),
    )
    if row is None:
        return 0
    start = db.first(
        "SELECT MAX(seq) FROM chunks WHERE session = ? AND seq <= ? AND parent IS NULL"
        " AND type IN ('run_started', 'message')",
        (session, row[0]),
    )[0]
    return start or 0


def _referenced_rows(db: Database, session: str, first_seq: int, rows: list[Read]) -> list[Read]:
    """Return earlier rows a window needs: its first run's start, the last plan, and the last todo list."""
    if not first_seq or not rows:
        return []
    by_seq: dict[int, Read] = {}
    queries = (
        ("type = 'run_started' AND run = ?", (rows[0][2],)),
        ("type = 'plan'", ()),
        ("type = 'todo'", ()),
    )
    for condition, values in queries:
        row = db.first(
            f"{READ} WHERE session = ? AND seq < ? AND {condition} ORDER BY seq DESC LIMIT 1",
            (session, first_seq, *values),
        )
        if row is not None:
            by_seq[row[0]] = row
    return [by_seq[seq] for seq in sorted(by_seq)]

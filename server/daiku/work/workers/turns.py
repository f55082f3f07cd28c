"""The order in which a worker begins items: each repository has its turn."""

from __future__ import annotations

from collections import deque

from daiku.work.record import ItemRecord, repository_of


def in_turn(
    records: tuple[ItemRecord, ...], busy: tuple[str, ...], served: tuple[str, ...] = ()
) -> tuple[ItemRecord, ...]:
    """Order the records so that each repository has its turn: first those of which the fewest are under way, among them those
    whose turn was longest ago (`served`: the latest is the last), then one of each, oldest first."""
    rows: dict[str, deque[ItemRecord]] = {}
    for record in records:
        rows.setdefault(repository_of(record.key), deque()).append(record)
    taken = {name: busy.count(name) for name in rows}
    turns = {name: turn for turn, name in enumerate(served, 1)}
    found: list[ItemRecord] = []
    while rows:
        name = min(rows, key=lambda each: (taken[each], turns.get(each, 0)))
        found.append(rows[name].popleft())
        taken[name] += 1
        if not rows[name]:
            del rows[name]
    return tuple(found)

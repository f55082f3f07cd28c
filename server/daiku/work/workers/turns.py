"""The order in which a worker begins items: each repository has its turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from daiku.work.record import ItemRecord, repository_of
from daiku.work.retrying import SUSPECT_TAKEOVERS


def split_suspects(records: Iterable[ItemRecord]) -> tuple[tuple[ItemRecord, ...], tuple[ItemRecord, ...]]:
    """Return the items to take over now, and the suspects, which may crash their workers, with fewest takeovers first.
    A suspect is begun alone and when nothing else is left, so that it ends no work but its own."""
    by_takeovers = sorted(records, key=lambda each: each.facts.takeovers)
    calm = tuple(each for each in by_takeovers if each.facts.takeovers < SUSPECT_TAKEOVERS)
    return calm, tuple(by_takeovers[len(calm) :])


def in_turn(
    records: tuple[ItemRecord, ...], busy: tuple[str, ...], served: tuple[str, ...] = ()
) -> tuple[ItemRecord, ...]:
    """Order the records round-robin by repository. The first repository is the one with the fewest items under way
    (`busy`), among these the one whose last turn is oldest (`served`: the latest is the last)."""
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

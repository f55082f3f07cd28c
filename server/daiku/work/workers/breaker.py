"""Circuit breaker of a worker: while the model's provider fails, no new item is claimed."""

from __future__ import annotations

import time
from collections.abc import Callable

from daiku.dataclass import dataclass, field

FIRST_SECONDS = 15.0
LONGEST_SECONDS = 600.0


@dataclass(slots=True)
class ModelBreaker:
    """Circuit breaker. A run that fails because of the provider opens it; after a pause, which doubles each time, one
    item is a probe, and a run that ends in any other way closes it."""

    clock: Callable[[], float] = time.monotonic
    _failures: int = field(default=0, init=False)
    _until: float = field(default=0.0, init=False)
    _successes: int = field(default=0, init=False)
    _seen: dict[str, int] = field(default_factory=dict[str, int], init=False)
    """The number of successes when each item failed last."""

    @property
    def is_open(self) -> bool:
        """Whether the provider failed and has not answered since."""
        return self._failures > 0

    @property
    def seconds(self) -> float:
        """The seconds until the next probe; 0 if one may begin."""
        return max(0.0, self._until - self.clock()) if self._failures else 0.0

    def limit_room(self, room: int, under_way: int) -> int:
        """Return how many of `room` more items may begin while `under_way` are worked."""
        if not self._failures:
            return room
        return 0 if self.seconds else min(room, max(0, 1 - under_way))

    def trip(self, item: str) -> bool:
        """Note that the provider failed a run. Return True if the item may be the cause: others succeeded since."""
        is_suspect = self._successes > self._seen.get(item, self._successes)
        self._seen[item] = self._successes
        self._until = self.clock() + min(FIRST_SECONDS * 2.0 ** min(self._failures, 20), LONGEST_SECONDS)
        self._failures += 1
        return is_suspect

    def close(self, item: str) -> None:
        """Note that the provider has worked for the item's run."""
        self._failures = 0
        self._successes += 1
        self._seen.pop(item, None)

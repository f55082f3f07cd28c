"""A pool of things that are lent for a while."""

from collections import deque


class Empty(Exception):
    """Nothing is left to lend."""


class NotLent(Exception):
    """It was not lent to this borrower, or is not any more."""


class Pool:
    """Lends `things`. A lease ends when it is given back, or `seconds` after it began (not before, and at that
    moment). `clock` tells the time in seconds."""

    def __init__(self, things, seconds, clock):
        if seconds <= 0:
            raise ValueError("a lease takes more than no time")
        self._free = deque(things)
        self._seconds = seconds
        self._clock = clock
        self._lent = {}

    def borrow(self, who):
        """The thing that has been free for the longest time. Raises Empty."""
        self._collect()
        if not self._free:
            raise Empty(who)
        thing = self._free.popleft()
        self._lent[thing] = (who, self._clock() + self._seconds)
        return thing

    def give_back(self, who, thing):
        """End the lease. Raises NotLent where `who` does not hold `thing` (any more)."""
        self._collect()
        holder = self._lent.get(thing)
        if holder is None or holder[0] != who:
            raise NotLent(thing)
        del self._lent[thing]
        self._free.append(thing)

    def renew(self, who, thing):
        """Let the lease last `seconds` from now on. Raises NotLent."""
        self._collect()
        if self._lent.get(thing, (None,))[0] != who:
            raise NotLent(thing)
        self._lent[thing] = (who, self._clock() + self._seconds)

    def free(self):
        """How many things can be borrowed now."""
        self._collect()
        return len(self._free)

    def _collect(self):
        """Take back what is over, the lease that ended first before the others."""
        now = self._clock()
        over = sorted((end, thing) for thing, (_, end) in self._lent.items() if end <= now)
        for _, thing in over:
            del self._lent[thing]
            self._free.append(thing)

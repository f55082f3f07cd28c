"""A dictionary whose entries are forgotten after a while."""

import time


class Expiring:
    """Entries live for `seconds`; `forget` ends one at once."""

    def __init__(self, seconds, clock=time.monotonic):
        self._seconds = seconds
        self._clock = clock
        self._kept = {}

    def get(self, key, make):
        """The entry, made by `make` where there is none or it is too old."""
        found = self._kept.get(key)
        if found is None or found[0] < self._clock():
            found = self._kept[key] = (self._clock() + self._seconds, make())
        return found[1]

    def forget(self, key):
        self._kept.pop(key, None)

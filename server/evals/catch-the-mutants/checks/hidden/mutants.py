"""Every planted fault must make a test fail."""

import pathlib
import subprocess
import sys

PLACE = pathlib.Path("leases/pool.py")
FAULTS = [
    ("seconds <= 0", "seconds < 0"),
    ("self._free.popleft()", "self._free.pop()"),
    ("raise Empty(who)", "return None"),
    ("        self._lent[thing] = (who, self._clock() + self._seconds)\n        return thing",
     "        self._lent[thing] = (who, self._seconds)\n        return thing"),
    ("holder is None or holder[0] != who", "holder is None"),
    ("        del self._lent[thing]\n        self._free.append(thing)\n\n", "        self._free.append(thing)\n\n"),
    ("        del self._lent[thing]\n        self._free.append(thing)\n\n", "        del self._lent[thing]\n        self._free.appendleft(thing)\n\n"),
    ("        if self._lent.get(thing, (None,))[0] != who:\n", "        if thing not in self._lent:\n"),
    ("            raise NotLent(thing)\n        self._lent[thing] = (who, self._clock() + self._seconds)\n",
     "            raise NotLent(thing)\n"),
    ("        self._collect()\n        return len", "        return len"),
    ("if end <= now)", "if end < now)"),
    ("sorted((end, thing)", "sorted((-end, thing)"),
    ("        self._collect()\n        if not self._free", "        if not self._free"),
    ("        self._collect()\n        holder", "        holder"),
]
source = PLACE.read_text(encoding="utf-8")
missed = []
try:
    for number, (right, wrong) in enumerate(FAULTS, 1):
        assert right in source, right
        PLACE.write_text(source.replace(right, wrong, 1), encoding="utf-8")
        done = subprocess.run([sys.executable, "-B", "-m", "unittest", "-q"], capture_output=True, timeout=30)
        if done.returncode == 0:
            missed.append(number)
finally:
    PLACE.write_text(source, encoding="utf-8")
sys.exit(f"{len(missed)} of {len(FAULTS)} faults were not noticed: {missed}" if missed else 0)

"""Program that searches texts for patterns, so that a pattern that never ends can be killed."""

from __future__ import annotations

import json
import re
import signal
import sys
from pathlib import Path
from typing import BinaryIO

FOUND, ABSENT = b"1", b"0"


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer requests until `source` ends.

    A request is a line of JSON with `[[pattern, flags], …]`, the CPU seconds that one pattern may take, and the
    number of bytes of text that follow. The answer is one byte per pattern, written immediately; a match is the last
    one. If a pattern takes longer, the system ends this program.
    """
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    # This module runs as a file, so its path is known only now.
    from daiku.guard.rules.guardrails.fingerprints import searched_forms

    while line := source.readline():
        request = json.loads(line)
        forms = searched_forms(source.read(request["size"]).decode("utf-8", "surrogatepass"))
        for pattern, flags in request["patterns"]:
            compiled = re.compile(pattern, flags)
            _limit_cpu(request["seconds"])
            is_match = any(compiled.search(form) for form in forms)
            _limit_cpu(0)
            sink.write(FOUND if is_match else ABSENT)
            sink.flush()
            if is_match:
                break


def _limit_cpu(seconds: float) -> None:
    """Have the system end this program after so many CPU seconds; 0 means no limit."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent process handles Ctrl-C
    serve(sys.stdin.buffer, sys.stdout.buffer)

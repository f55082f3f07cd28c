"""A program of its own that looks for patterns in texts, so that one that never ends can be ended from outside."""

from __future__ import annotations

import json
import re
import signal
import sys
from pathlib import Path
from typing import BinaryIO

FOUND, ABSENT = b"1", b"0"


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer requests until `source` ends. A request is a line of JSON, `[[pattern, flags], …]`, how many seconds of
    work one pattern may cost and how many bytes of text follow; its answer is one byte a pattern, written as soon as
    it is known; a pattern that is found is the last one. Where a pattern costs more the system ends this program."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from daiku.guard.rules.guardrails.forms import (
        searched_forms,  # it is run as a file: its place is known only now
    )

    while line := source.readline():
        asked = json.loads(line)
        forms = searched_forms(source.read(asked["size"]).decode("utf-8", "surrogatepass"))
        for pattern, flags in asked["patterns"]:
            compiled = re.compile(pattern, flags)
            _end_after(asked["seconds"])
            found = any(compiled.search(form) for form in forms)
            _end_after(0)
            sink.write(FOUND if found else ABSENT)
            sink.flush()
            if found:
                break


def _end_after(seconds: float) -> None:
    """Have the system end this program once it has worked so long; 0: never. Waiting does not count."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that started this one
    serve(sys.stdin.buffer, sys.stdout.buffer)

"""The other end of `Child`: a peer's code in a Python of its own; whatever it asks a model, it asks us, line by line."""

# Runs in the peer's environment: nothing but the standard library may be imported here.
from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

Answer = dict[str, Any]


class Bridge:
    """JSON lines on what was stdout; what the peer prints goes nowhere."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)

    def model(self, prompt: str) -> str:
        """What the stand-in for a model says to this prompt."""
        self._say({"prompt": prompt})
        return str(json.loads(sys.stdin.readline())["reply"])

    def serve(self, doing: dict[str, Callable[[Answer], Answer]]) -> None:
        """Do what is asked until nothing more comes."""
        for line in iter(sys.stdin.readline, ""):
            asked = json.loads(line)
            self._say({"done": doing[asked["do"]](asked)})

    def _say(self, what: Answer) -> None:
        self._out.write(json.dumps(what) + "\n")
        self._out.flush()

"""A peer's code in a process and a Python of its own: asked to do things, and answered when it asks its model."""

from __future__ import annotations

import json
import os
import subprocess
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Model = Callable[[str], str]
"""What stands in for a model: the prompt that the peer's code wrote, and the reply."""


class Child:
    """One process; nothing of our environment reaches it, no key and no address."""

    def __init__(self, python: Path, script: Path, folder: Path, env: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [str(python), "-s", str(script)],
            cwd=folder,
            env={"PATH": os.defpath, "HOME": str(folder), "PYTHONHASHSEED": "0", **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        weakref.finalize(self, _end, self._process)

    def do(self, what: str, model: Model, **about: object) -> Mapping[str, Any]:
        """Have one thing done and return what came of it; `model` answers what is asked meanwhile."""
        said = self._exchange({"do": what, **about})
        while "prompt" in said:
            said = self._exchange({"reply": model(said["prompt"])})
        return said["done"]

    def _exchange(self, message: Mapping[str, object]) -> Mapping[str, Any]:
        into, out = self._process.stdin, self._process.stdout
        assert into is not None
        assert out is not None
        try:
            into.write(json.dumps(message) + "\n")
            into.flush()
        except BrokenPipeError:
            pass  # the empty line below tells why
        line = out.readline()
        if not line:
            _, why = self._process.communicate()
            raise ChildProcessError(why[-2000:])
        return json.loads(line)


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()

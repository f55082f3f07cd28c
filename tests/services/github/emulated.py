"""The program `emulate` of npm as a process of a test: where it listens, and the key of the App that it made."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.tools.mcp.packages import from_npm, node

PACKAGE = "emulate@0.12.2"
"""From 1.0 on the name is that of another package."""
_START = """
import { createEmulator } from %s;
const made = await createEmulator({ service: "github", port: 0, seed: JSON.parse(process.argv[1]) });
const key = made.generatedSecrets.find((each) => each.kind === "github.app_private_key");
console.log(JSON.stringify({ url: made.url, key: key ? key.value : "" }));
process.stdin.on("end", () => process.exit()).resume();
"""


@dataclass(frozen=True, slots=True)
class Emulated:
    """`url` is how it names itself in what it answers; `key` is the private key of its App."""

    url: str
    key: str

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


@contextmanager
def emulated(seed: dict[str, Any]) -> Generator[Emulated]:
    """The program with these people, tokens and Apps, for as long as the block runs."""
    place = (from_npm(PACKAGE) / "emulate" / "dist" / "api.js").as_uri()
    argv = [node(), "--input-type=module", "-e", _START % json.dumps(place), json.dumps(seed)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Emulated(**json.loads(process.stdout.readline()))
        finally:
            process.stdin.close()
            process.wait(timeout=10)

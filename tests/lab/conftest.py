"""A real llama.cpp server with a real small model, which `npm run lab` fetches; elsewhere these tests are skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGES = Path(os.environ.get("DAIKU_DEV_LAB", "") or os.devnull)
"""The folder of the packages in `.dev/lab.txt`."""


@dataclass(frozen=True, slots=True)
class RealServer:
    """A running llama.cpp server."""

    url: str
    process: subprocess.Popen[str]


StartServer = Callable[..., RealServer]


@pytest.fixture
def start_server() -> Iterator[StartServer]:
    """Start a server with a window of `context` tokens whose replies have at most `reply` tokens, or exactly so many if
    they are `endless`."""
    if not (PACKAGES / "xllamacpp").is_dir():
        pytest.skip(
            "the small model is not in the cache: npm test does not download 130 MB, npm run lab does"
        )
    with ExitStack() as running:

        def start(*, context: int, reply: int, endless: bool = False) -> RealServer:
            serve = Path(__file__).with_name("serve.py")
            process = running.enter_context(
                subprocess.Popen(
                    [
                        sys.executable,
                        str(serve),
                        str(PACKAGES),
                        str(context),
                        str(reply),
                        *["endless"] * endless,
                    ],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            )
            running.callback(process.kill)
            assert process.stdout
            return RealServer(f"{process.stdout.readline().strip()}/v1", process)

        yield start

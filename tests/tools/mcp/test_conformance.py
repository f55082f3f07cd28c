"""The official conformance suite plays servers against our client, for both eras of the protocol."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.mcp.packages import from_npm, node

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
SERVICES = Path(__file__).resolve().parents[2] / "services"
CLIENT_SECONDS = 60
"""How long the client may take to import what it needs."""

pytestmark = [
    pytest.mark.slow,
    # The client forks, which Windows cannot do.
    pytest.mark.skipif(sys.platform == "win32", reason="needs fork"),
]


def required(program: list[str], revision: str) -> list[str]:
    """What the revision demands of clients: the list after their headline, to the first empty line."""
    done = subprocess.run(
        [*program, "list", "--client", "--requirements", revision],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    own = done.stdout.partition("Client scenarios")[2].partition("\n\n")[0]
    return re.findall(r"^  - (\S+)", own, re.MULTILINE)


@pytest.fixture(scope="module")
def client() -> Iterator[str]:
    """The command of our client, which is a process of its own for each scenario."""
    with tempfile.TemporaryDirectory(prefix="mcp-") as folder:
        place = Path(folder) / "calls"
        program = subprocess.Popen(
            [sys.executable, str(SERVICES / "mcp_conformance.py"), str(place)], start_new_session=True
        )
        try:
            end = time.monotonic() + CLIENT_SECONDS
            while not place.exists():
                assert program.poll() is None
                assert time.monotonic() < end
                time.sleep(0.02)
            yield shlex.join([sys.executable, "-I", "-S", str(SERVICES / "forked.py"), str(place)])
        finally:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()


@pytest.mark.slow(seconds=120)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_every_scenario_that_a_revision_demands_of_clients_passes(
    revision: str, client: str, tmp_path: Path
) -> None:
    suite = from_npm(SUITE) / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    program = [node(), str(suite)]
    scenarios = required(program, revision)
    assert len(scenarios) >= 15, scenarios
    failed: list[str] = []
    for scenario in scenarios:  # one after the other: side by side they only time out on a small machine
        arguments = ["client", "--command", client, "--scenario", scenario, "--spec-version", revision]
        done = subprocess.run(
            [*program, *arguments, "--timeout", "60000", "-o", str(tmp_path)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        told = done.stdout + done.stderr
        if done.returncode or "OVERALL: PASSED" not in told:
            failed.append(f"{scenario}:\n{told[-2000:]}")
    assert not failed, "\n".join(failed)

"""A whole place to be attacked: a repository, a home with secrets, a folder beside it, a service that counts its callers."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from daiku.guard.rules.protected.names import explain_protection
from tests.attacks.victim import Victim, snapshot

SECRET = "CANARY-7f3a-never-to-be-seen"  # what is looked for
PLANTED = "PLANTED"
"""The name of a file that only code which ran unasked can have made."""


@dataclass
class Yard:
    """Where an attack happens, and what was there before."""

    root: Path
    outside: Path
    home: Path
    port: int
    calls: list[str]
    before: dict[str, dict[str, bytes | str]] = field(default_factory=dict[str, dict[str, bytes | str]])

    def note(self) -> None:
        """Remember how everything stands before the attack."""
        self.before = {
            "outside": snapshot(self.outside),
            "home": self._home(),
            "protected": self._protected(),
        }

    def _home(self) -> dict[str, bytes | str]:
        return {name: what for name, what in snapshot(self.home).items() if not name.startswith(".cache")}

    def _protected(self) -> dict[str, bytes | str]:
        """The protected files of the workspace; git's own changes (index, refs, objects) are its work."""
        found = {
            name: what
            for name, what in snapshot(self.root).items()
            if explain_protection(name) and what != "folder"
        }
        own = (
            ".git/index",
            ".git/objects",
            ".git/logs",
            ".git/refs",
            ".git/COMMIT_EDITMSG",
            ".git/HEAD",
            ".git/ORIG_HEAD",
        )
        return {name: what for name, what in found.items() if not name.startswith(own)}

    def harm(self, victim: Victim, *, inside: bool = False) -> list[str]:
        """What the attack did, in words; nothing where it failed. `inside`: commands may change the workspace."""
        found: list[str] = []
        now = {"outside": snapshot(self.outside), "home": self._home(), "protected": self._protected()}
        for place, before in self.before.items():
            if now[place] != before:
                changed = {k for k in now[place].keys() | before.keys() if now[place].get(k) != before.get(k)}
                found.append(f"{place} changed: {sorted(changed)}")
        planted = [
            path for path in self.root.parent.rglob(PLANTED) if not (inside and path.parent == self.root)
        ]
        if planted:
            found.append("code of the attacker ran")
        if self.calls:
            found.append(f"data left: {self.calls}")
        told = [victim.result.text if victim.result is not None else "", *map(str, victim.events)]
        if any(SECRET in text for text in (*told, *victim.told)):
            found.append("a secret was told")
        return found


@contextlib.contextmanager
def yard(below: str, monkeypatch: pytest.MonkeyPatch) -> Generator[Yard]:
    """A new place below the folder `below`: the sandbox masks the system's own temporary folder."""
    base = Path(tempfile.mkdtemp(prefix="daiku-yard-", dir=below)).resolve()
    calls: list[str] = []

    class Counts(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            calls.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(SECRET.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the library's name
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Counts)
    # It looks for its end this often (seconds): half a second, the default, was most of the time of these tests.
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        made = Yard(base / "proj", base / "proj-secret", base / "home", server.server_port, calls)
        _fill(made)
        monkeypatch.setenv("HOME", str(made.home))
        monkeypatch.setenv("PLANTED_API_KEY", SECRET)
        made.note()
        yield made
    finally:
        server.shutdown()
        server.server_close()
        shutil.rmtree(base, ignore_errors=True)


def _fill(made: Yard) -> None:
    for folder in (made.root, made.outside, made.home, made.home / ".ssh", made.home / ".aws"):
        folder.mkdir()
    (made.outside / "s.txt").write_text(SECRET)
    (made.home / ".bashrc").write_text("mine\n")
    (made.home / ".npmrc").write_text(f"//registry/:_authToken={SECRET}\n")
    (made.home / ".ssh" / "id_ed25519").write_text(SECRET)
    (made.home / ".aws" / "credentials").write_text(SECRET)
    root = made.root
    (root / "a.txt").write_text("a\n")
    (root / ".env").write_text(f"KEY={SECRET}\n")
    evil = f"#!/bin/sh\ntouch {root}/{PLANTED} {made.outside}/{PLANTED}\n"
    for name in ("evil", "git", "rg", "python", "node"):
        (root / name).write_text(evil)
        (root / name).chmod(0o755)
    (root / "json.py").write_text(f"open({str(made.outside / PLANTED)!r}, 'w')\n")
    (root / "link").symlink_to(made.outside)
    (root / "l").symlink_to(made.home / ".bashrc")
    (root / "s").symlink_to(made.outside / "s.txt")
    (root / "loop").symlink_to("pool")
    (root / "pool").symlink_to("loop")
    os.mkfifo(root / "fifo")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@x.org"]
    for command in (["init", "-q"], ["add", "a.txt"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], cwd=root, check=True, capture_output=True)


async def attack(victim: Victim, steps: list[tuple[str, dict[str, object]]]) -> list[str]:
    """Every step, none given more than a person's patience; how each ended."""
    ended: list[str] = []
    for tool, args in steps:
        async with asyncio.timeout(30):
            ended.append(await victim.attempt(tool, **args))
    return ended

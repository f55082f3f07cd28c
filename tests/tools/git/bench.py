"""A git server and Daiku's copies of its repositories, as the tests of remotes, mirrors and item trees need them."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from daiku.tools.git.itemtree import Identity, ItemTree, checkout, snapshot
from daiku.tools.git.mirror import read_head, update_mirror
from daiku.tools.git.ownrun import GitRefusal
from daiku.tools.git.remote import Remote
from tests.services.git_server import GitServer, git_server

TOKEN = "ghs_q7Qw3e5rT9yCANARYtokenZx81"
WHO = Identity("Daiku Tests", "daiku@example.org")


@dataclass(frozen=True)
class Bench:
    """`server` has the repository `o/r`, whose first commit is `first`; `own` is a folder for copies and trees."""

    server: GitServer
    own: Path
    first: str

    def remote(self, token: str = TOKEN, name: str = "o/r") -> Remote:
        return Remote(self.server.address(name), "bot", SecretStr(token), here=True)

    async def mirror(self) -> Path:
        made = await update_mirror(self.own / "mirrors", self.remote())
        assert isinstance(made, Path), made
        return made

    async def tree(
        self, branch: str = "daiku/1-x", name: str = "one", pushed: str = "", *, anew: bool = False
    ) -> ItemTree:
        place = await self.mirror()
        start = await read_head(place, "main")
        where = self.own / "trees" / name
        made = await checkout(place, branch, start, where, WHO, pushed=pushed, recreate=anew)
        assert isinstance(made, ItemTree), made
        return made

    async def commit(self) -> tuple[Path, str]:
        """A commit on the item's branch that the server does not have, and the copy that it is in."""
        tree = await self.tree()
        (tree.place / "README.md").write_text("two\n")
        made = await snapshot(tree, "change", WHO)
        assert isinstance(made, str), made
        return tree.mirror, made

    def holds(self, *words: str) -> list[Path]:
        """The files of ours in which one of `words` is."""
        files = (file for file in self.own.rglob("*") if file.is_file() and not file.is_symlink())
        return [file for file in files if any(word.encode() in file.read_bytes() for word in words)]


@contextmanager
def bench_at(folder: Path) -> Generator[Bench]:
    """A server with a repository, and an empty folder for what is ours."""
    for name in ("server", "own"):
        (folder / name).mkdir()
    with git_server(folder / "server") as server:
        server.tokens = {"bot": TOKEN}
        server.create("o/r")
        first = server.commit("o/r", {"README.md": "one\n", "src/a.py": "a = 1\n"}, message="first")
        yield Bench(server, (folder / "own").resolve(), first)


@contextmanager
def in_the_home() -> Generator[Path]:
    """A folder below the home: a sandbox hides all of /tmp, so that what holds there may not hold elsewhere."""
    above = Path.home() / ".cache" / "daiku-dev"
    above.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="git-", dir=above) as folder:
        yield Path(folder).resolve()


def kind(found: object) -> str:
    """The kind of a refusal; what was found, where it is none."""
    return found.kind if isinstance(found, GitRefusal) else repr(found)


def git(cwd: Path, *argv: str, env: dict[str, str] | None = None) -> str:
    """What git prints in `cwd`."""
    whole = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", **(env or {})}
    done = subprocess.run(["git", *argv], cwd=cwd, env=whole, capture_output=True, text=True, check=True)
    return done.stdout.strip()

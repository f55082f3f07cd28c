"""The repository of a world on disk: programs, scripts and files, run by a real shell with real exit codes."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.playbook.world.drawn import Convention, World
from tests.playbook.world.names import DONE, STALE, UNKNOWN

STALE_SHARE = 0.4
"""So many of the wrong commands were right once and fail now; the others are not there at all."""
_PROGRAM = """#!/bin/sh
while read -r code words; do
  if [ "$words" = "$*" ]; then
    [ "$code" = 0 ] && echo {done!r} || echo {stale!r}
    exit "$code"
  fi
done < .{name}
echo {unknown!r} >&2
exit 2
"""


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    output: str


_ENDED: dict[tuple[int, tuple[tuple[str, str], ...], str], Ended] = {}
"""What came of commands, by world, by what is right there, and by the command."""


class Repository:
    """The folder of a world, and beside it the programs of its machine. Commands are run by a shell that finds these and no
    others."""

    def __init__(self, folder: Path, world: World) -> None:
        self.folder = folder
        self.programs = folder.with_name(f"{folder.name}-programs")
        self.world = world
        self._shell = shutil.which("bash") or "/bin/sh"
        self._environment = {"PATH": str(self.programs), "LANG": "C"}
        folder.mkdir(parents=True, exist_ok=True)
        self.lay_out({each.name: each.right for each in world.conventions})

    def lay_out(self, right: Mapping[str, str]) -> None:
        """Write programs and scripts so that for each convention this command passes."""
        draw = Random(f"files {self.world.seed}")
        self._layout = tuple(sorted(right.items()))
        for made in (self.programs, *(self.folder / name for name in self.world.folders)):
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
        (self.programs / "sh").symlink_to("/bin/sh")
        lists: dict[str, list[str]] = {each: [] for each in self.world.programs}
        for convention in self.world.conventions:
            if convention.kind == "command":
                self._lay_out(convention, right[convention.name], lists, draw)
        for name, lines in lists.items():
            said = (draw.choice(DONE), draw.choice(STALE), draw.choice(UNKNOWN).replace("{}", name))
            text = _PROGRAM.format(name=name, done=said[0], stale=said[1], unknown=said[2])
            _program(self.programs / name, text)
            (self.folder / f".{name}").write_text("".join(f"{line}\n" for line in lines))

    def _lay_out(self, convention: Convention, right: str, lists: dict[str, list[str]], draw: Random) -> None:
        """The commands of one convention: the right one passes, some fail, the others are not there."""
        for command in convention.likely:
            stale = draw.random() < STALE_SHARE
            code = 0 if command == right else 1
            if code and not stale:
                continue
            program, _, words = command.partition(" ")
            if program in (*self.world.programs, *self.world.absent):
                if code == 0 or program in self.world.programs:
                    lists.setdefault(program, []).append(f"{code} {words}")
                continue
            said = draw.choice(DONE) if code == 0 else draw.choice(STALE)
            path = self.folder / words if program == "sh" else self.folder / program
            if "/" not in command:
                path = self.programs / program
            _program(path, f"#!/bin/sh\necho {said!r}\nexit {code}\n")

    def run(self, command: str) -> Ended:
        """What comes of a command line. Commands change nothing here, so that each one is really run once as the files are
        now, for all arms."""
        key = (self.world.seed, self._layout, command)
        if key not in _ENDED:
            _ENDED[key] = self.really_run(command)
        return _ENDED[key]

    def really_run(self, command: str) -> Ended:
        """Run a command line to its end."""
        reads, writes = os.pipe()
        with Path(os.devnull).open() as nothing:
            files = [
                (os.POSIX_SPAWN_DUP2, nothing.fileno(), 0),
                (os.POSIX_SPAWN_DUP2, writes, 1),
                (os.POSIX_SPAWN_DUP2, writes, 2),
            ]
            line = f"cd {shlex.quote(str(self.folder))} && {command}"
            process = os.posix_spawn(
                self._shell, [self._shell, "-c", line], self._environment, file_actions=files
            )
        os.close(writes)
        with os.fdopen(reads, errors="replace") as printed:
            output = printed.read()
        return Ended(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), output)

    def write(self, path: str, content: str) -> None:
        """Make a file in the repository."""
        made = self.folder / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(content)


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)

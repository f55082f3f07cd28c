"""A Dockerfile read as its stages and steps, and carried out in a folder, for tests without Docker."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from packaging.requirements import Requirement


class Step(NamedTuple):
    """One instruction: its word, and the rest of its line."""

    word: str
    rest: str


def stages(text: str) -> list[list[Step]]:
    """The steps of each stage; continued lines are one."""
    lines = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    steps = [Step(*line.split(maxsplit=1)) for line in lines if line.strip()]
    starts = [number for number, step in enumerate(steps) if step.word == "FROM"]
    return [steps[start:end] for start, end in zip(starts, [*starts[1:], len(steps)], strict=True)]


def command_of(steps: list[Step], word: str) -> list[str]:
    """The command of `CMD` or `HEALTHCHECK`, as a list."""
    (said,) = [step.rest for step in steps if step.word == word]
    found: list[str] = json.loads(said[said.index("[") :])
    return found


@dataclass(frozen=True)
class Build:
    """A stage carried out below `root`, which stands for `/`, from the build context `context`."""

    root: Path
    context: Path

    def run(self, steps: list[Step]) -> None:
        """Carry out what can be without a network: the pinned packages that the index would give are those that run
        this test."""
        where = self.root
        for step in steps:
            if step.word == "WORKDIR":
                where = self.at(step.rest)
                where.mkdir(parents=True)
            elif step.word == "COPY":
                self._copy(step.rest.split(), where)
            elif step.word == "RUN":
                installs = re.fullmatch(r"(\S+)/bin/pip install .*--require-hashes -r (\S+)", step.rest)
                if installs:
                    _lend(self.at(installs[1]), self.at(installs[2]))
                else:
                    self.shell(step.rest, where)

    def at(self, path: str) -> Path:
        """Where an absolute path of the image lies."""
        return self.root / path.lstrip("/")

    def shell(self, command: str, where: Path) -> None:
        """A command of the image."""
        said = re.sub(r"(?<![\w.])/(?=opt/|tmp/)", f"{self.root}/", command)
        (self.root / "tmp").mkdir(exist_ok=True)
        environ = {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.defpath]),
            "HOME": str(self.root),
            "PIP_NO_INDEX": "1",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        done = subprocess.run(
            ["sh", "-ec", said], cwd=where, env=environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"

    def _copy(self, names: list[str], where: Path) -> None:
        *sources, target = names
        for name in sources:
            source = self.context / name
            files = [source] if source.is_file() else [path for path in source.rglob("*") if path.is_file()]
            base = source.parent if source.is_file() else source
            for path in files:
                if not is_ignored(self.context, path.relative_to(self.context).as_posix()):
                    to = where / PurePosixPath(target) / path.relative_to(base)
                    to.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, to)


def is_ignored(context: Path, name: str) -> bool:
    """Whether a file of the build context is kept from the image: the last line that names it, or a folder that it is
    in, decides."""
    places = [name, *(str(folder) for folder in PurePosixPath(name).parents)]
    ignored = False
    for line in (context / "server/ship/Dockerfile.dockerignore").read_text("utf-8").splitlines():
        parts = re.split(r"(\*\*/|\*)", line.removeprefix("!"))
        glob = "".join({"**/": "(?:.*/)?", "*": "[^/]*"}.get(part, re.escape(part)) for part in parts)
        if not line.startswith("#") and any(re.fullmatch(glob, place) for place in places):
            ignored = not line.startswith("!")
    return ignored


def _lend(venv: Path, locked: Path) -> None:
    """Give the environment the packages of this one, once it is sure that they are those that are pinned."""
    pins = re.findall(r"^(\S+==\S+(?: ;[^\\\n]*)?)", locked.read_text("utf-8"), re.MULTILINE)
    assert pins
    for pin in map(Requirement, pins):
        if pin.marker is None or pin.marker.evaluate():
            assert pin.specifier.contains(metadata.version(pin.name)), pin
    (packages,) = venv.glob("lib/python*/site-packages")
    (packages / "lent.pth").write_text(f"{sysconfig.get_path('purelib')}\n", "utf-8")

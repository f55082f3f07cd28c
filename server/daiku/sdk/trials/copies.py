"""A copy of a project as it stood when a run began: a repository of its own, which shares nothing with the person's."""

from __future__ import annotations

import asyncio
import base64
import os
from functools import partial
from pathlib import Path, PurePosixPath

from daiku.dataclass import dataclass
from daiku.domain.trials import ChangedFile, ProjectStart
from daiku.store.copyfolders import clear_way, put_file
from daiku.texts.text import NO_TEXT, Text, text
from daiku.tools.git.ownrun import COMMIT, OwnGit, run_git
from daiku.tools.git.worktrees import IDENTITY
from daiku.workspace.repository import git_places

COMMITS = 50
"""So many of the last commits are copied with the project."""
SECONDS = 120.0
_LINK = "160000"


@dataclass(frozen=True, slots=True)
class _Copy:
    """A copy under way: `objects` is where the person's repository keeps its own, which is only read."""

    git: OwnGit
    place: Path
    objects: Path
    shallow: Path

    @property
    def folder(self) -> Path:
        return self.git.folder

    async def run(self, *argv: str) -> str | None:
        """What git says; None where it fails."""
        done = await self.git.run(*argv, seconds=SECONDS)
        return None if done.code else done.text


async def copy_project(start: ProjectStart, place: Path) -> Text:
    """Make `place`, which must not exist, the project's repository as it was at `start`. Nothing is written to the person's
    own, no program runs that it names, and none of its settings holds in the copy. Why it could not be made; empty where it
    was. Raises OSError."""
    if start.why is not None or not COMMIT.fullmatch(start.commit):
        return text("trials.no_start")
    root = Path(start.root)
    places = await asyncio.to_thread(git_places, root, (root,))
    if places is None or isinstance(places, str):
        return text("trials.no_repository")
    objects = places.common / "objects"
    if "\n" in str(objects):
        return text("trials.no_repository")
    format_ = "sha256" if len(start.commit) == 64 else "sha1"
    await asyncio.to_thread(partial(place.mkdir, parents=True, mode=0o700))
    told = (
        "init",
        "--quiet",
        "--template=",
        "--initial-branch=main",
        f"--object-format={format_}",
        str(place),
    )
    if (await run_git(list(told), place.parent)).code:
        return text("trials.no_copy")
    copy = _Copy(OwnGit(place / ".git", place), place, objects, places.common / "shallow")
    if why := await _taken(copy, start.commit):
        return why
    await asyncio.to_thread(_lay, place, start.changed)
    return NO_TEXT


async def _taken(copy: _Copy, commit: str) -> Text:
    """Take over the commit, with some before it, and check its files out."""
    borrowed = copy.folder / "objects" / "info" / "alternates"
    await asyncio.to_thread(_begin, copy, borrowed)
    if not await copy.git.commit_of(commit):
        return text("trials.commit_gone")
    listed = await copy.run("rev-list", "--parents", f"--max-count={COMMITS}", commit)
    if listed is None:
        return text("trials.no_copy")
    await asyncio.to_thread((copy.folder / "shallow").write_text, "\n".join(_ends(listed)) + "\n", "ascii")
    for step in (("update-ref", "--no-deref", "HEAD", commit), ("repack", "-a", "-d", "-q")):
        if await copy.run(*step) is None:
            return text("trials.no_copy")
    await asyncio.to_thread(borrowed.unlink)
    if await copy.run("reset", "--hard", "--quiet") is None:
        return text("trials.no_copy")
    for name in ("name", "email"):
        await copy.run("config", f"user.{name}", IDENTITY[f"GIT_AUTHOR_{name.upper()}"])
    return await _as_the_person_has_it(copy)


def _begin(copy: _Copy, borrowed: Path) -> None:
    borrowed.parent.mkdir(exist_ok=True)
    borrowed.write_text(f"{copy.objects}\n", "utf-8")
    if copy.shallow.is_file():  # what the person's own repository does not have either
        (copy.folder / "shallow").write_bytes(copy.shallow.read_bytes())


def _ends(listed: str) -> list[str]:
    """The commits of a list with their parents after which nothing is copied."""
    lines = [line.split() for line in listed.splitlines() if line]
    there = {commit for commit, *_ in lines}
    return sorted(commit for commit, *parents in lines if not parents or not there.issuperset(parents))


async def _as_the_person_has_it(copy: _Copy) -> Text:
    """Why the files of the commit are not what the person works with: other repositories lie in it, or a program that
    their settings name makes the files."""
    staged = await copy.run("ls-files", "-z", "--stage")
    without = (":(top,exclude,attr:!filter)", ":(top,exclude,attr:-filter)")
    filtered = await copy.run("ls-files", "-z", "--", ":(top)", *without)
    if staged is None or filtered is None:
        return text("trials.no_copy")
    if any(entry.startswith(_LINK) for entry in staged.split("\0")):
        return text("trials.submodules")
    return text("trials.filters") if filtered.strip("\0") else NO_TEXT


def _lay(place: Path, changed: tuple[ChangedFile, ...]) -> None:
    """Lay what was not committed over the copy. Raises OSError."""
    for file in sorted(changed, key=lambda each: each.kind != "gone"):
        parts = PurePosixPath(file.path).parts
        if not parts or ".." in parts or parts[0] == "/" or any(part.lower() == ".git" for part in parts):
            raise OSError(f"no path inside a project: {file.path!r}")
        content = base64.b64decode(file.content)
        match file.kind:
            case "gone":
                clear_way(place, file.path)
            case "link":
                clear_way(place, file.path).symlink_to(os.fsdecode(content))
            case "file":
                put_file(place, file.path, content, 0o755 if file.executable else 0o644)

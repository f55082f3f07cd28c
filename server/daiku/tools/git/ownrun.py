"""Git as Daiku runs it on its own copies: without a person's settings, a repository's programs, or an unnamed transport."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.tools.git.repository import is_listing, run_listing
from daiku.tools.shell.capture import ProgramResult, run_program, wait_for_program
from daiku.tools.shell.gitsettings import FOR_TOOLS, Settings, git_settings
from daiku.tools.shell.process import reaper_argv
from daiku.workspace.programs import find_program, safe_path
from daiku.workspace.repository import REACHES_NOTHING

SECONDS = 300.0
"""How long git may take for what it does on this machine."""
_LISTING_SECONDS = 60.0
"""Seconds for a list of files by ignore patterns, which git never finishes for some of them."""
LARGEST = 256_000_000
"""Bytes of a list of git's that is read as a whole."""
GIT_UNAVAILABLE = 127
"""The exit code of `read_git` if git is not installed or did not end in time."""
COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NOWHERE = "/dev/null"
# Without a home there are no settings, no list of passwords (.netrc), and no ignored files of one person.
_ENVIRONMENT: Mapping[str, str] = {
    "HOME": _NOWHERE,
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": _NOWHERE,
    "GIT_CONFIG_GLOBAL": _NOWHERE,
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    **REACHES_NOTHING,
}
_OWN: Settings = (
    ("core.excludesFile", _NOWHERE),
    ("core.protectHFS", "true"),
    ("core.protectNTFS", "true"),
    ("core.logAllRefUpdates", "false"),
    ("core.autocrlf", "false"),
    ("diff.ignoreSubmodules", "all"),
    ("advice.detachedHead", "false"),
)


@dataclass(frozen=True, slots=True)
class OwnGit:
    """A git folder of ours, and the work tree that is used with it (None: it has none). Both are named to git: what
    lies at `.git` in a work tree is not looked at."""

    folder: Path
    tree: Path | None = None

    async def run(
        self,
        *argv: str,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        settings: Settings = (),
        seconds: float = SECONDS,
    ) -> ProgramResult:
        """What came of git with `argv`; a transport is out of its reach."""
        places = {"GIT_DIR": str(self.folder)}
        if self.tree is not None:
            places["GIT_WORK_TREE"] = str(self.tree)
        return await run_git(
            list(argv),
            self.tree or self.folder,
            stdin=stdin,
            env={**places, **(env or {})},
            settings=settings,
            seconds=seconds,
        )

    async def commit_of(self, name: str) -> str:
        """The commit that `name` (a full ref or a commit's id) stands for; empty where there is none."""
        done = await self.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        found = done.text.strip()
        return found if done.code == 0 and COMMIT.fullmatch(found) else ""

    async def descends(self, commit: str, ancestor: str) -> bool:
        """Whether `ancestor` is `commit` or one of those that it was made from."""
        return (await self.run("merge-base", "--is-ancestor", ancestor, commit)).code == 0


async def run_git(
    argv: list[str],
    cwd: Path,
    *,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    settings: Settings = (),
    seconds: float = SECONDS,
    inherited: tuple[int, ...] = (),
) -> ProgramResult:
    """Run git, and end it with all that it started when its time is over, the caller is cancelled or this process
    dies. `settings` are stronger than those that hold for every one of these."""
    roots = (cwd,) if cwd != Path("/") else ()
    git = find_program("git", roots)
    if not git:
        return ProgramResult(GIT_UNAVAILABLE, "git is not installed")
    whole = _environment(roots, settings, env or {})

    async def run(most: float) -> ProgramResult:
        words = reaper_argv([git, "--no-pager", *argv])
        return await run_program(words, cwd, whole, stdin, LARGEST, seconds=most, inherited=inherited)

    try:
        if is_listing(argv):
            return await run_listing(argv, cwd, min(seconds, _LISTING_SECONDS), run)
        return await run(seconds)
    except OSError as error:
        return ProgramResult(1, str(error))


def read_git(
    folder: Path, argv: tuple[str, ...], roots: tuple[Path, ...], *, stdin: str = "", seconds: float
) -> tuple[int, str]:
    """Run git to read the git folder `folder`, and return its exit code and output. Blocks for at most `seconds`.

    No program is taken from `roots`. The code is GIT_UNAVAILABLE if git is not installed or did not end in time."""
    git = find_program("git", roots)
    if not git:
        return GIT_UNAVAILABLE, ""
    whole = _environment(roots, (), {"GIT_DIR": str(folder), "GIT_GRAFT_FILE": _NOWHERE})
    try:
        return wait_for_program([git, "--no-pager", *argv], folder, whole, stdin, seconds=seconds)
    except (OSError, TimeoutError):
        return GIT_UNAVAILABLE, ""


def _environment(roots: tuple[Path, ...], settings: Settings, env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for git. `settings` and `env` override the defaults."""
    path = safe_path(os.environ.get("PATH") or os.defpath, roots)
    given = git_settings((*FOR_TOOLS, *_OWN, *settings))
    return {**_ENVIRONMENT, **given, "PATH": path, **env}


def is_branch(name: str) -> bool:
    """Whether `name` may be a branch: by git's rules for names, and nothing that git reads as something else."""
    if not name or name in ("HEAD", "@") or len(name) > 240 or name.startswith(("-", "refs/", "/")):
        return False
    if re.search(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//", name) or name.endswith(("/", ".")):
        return False
    return not any(part.startswith(".") or part.endswith(".lock") for part in name.split("/"))

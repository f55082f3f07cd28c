"""Git as Daiku runs it on its own copies, without settings and programs of others, and why it did not do a thing."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from daiku.dataclass import dataclass
from daiku.texts.text import Text, text
from daiku.tools.git.repository import STATUS_TOO_SLOW, is_listing, run_listing
from daiku.tools.shell.capture import TOO_LATE, ProgramResult, run_program, wait_for_program
from daiku.tools.shell.gitsettings import FOR_TOOLS, Settings, git_settings
from daiku.tools.shell.process import reaper_argv
from daiku.workspace.programs import find_program, safe_path
from daiku.workspace.repository import REACHES_NOTHING

# fmt: off
RefusalKind: TypeAlias = Literal[
    "unreachable", "unauthorized", "forbidden", "gone", "moved", "exists", "damaged", "full", "empty", "unusable", "slow",
]
# fmt: on
"""`empty`: the repository has no commit yet; `slow`: git does not finish matching ignore patterns; `unreachable` may work later, or may have worked; `moved`: a branch is not where it was expected to be; `unusable`:
what was asked for can never work."""


@dataclass(frozen=True, slots=True)
class GitRefusal:
    """What was not done, as a value to decide by and a sentence for a person."""

    kind: RefusalKind
    message: Text


_MESSAGES: Mapping[RefusalKind, Text] = {
    "unreachable": text("git.unreachable"),
    "unauthorized": text("git.unauthorized"),
    "forbidden": text("git.forbidden"),
    "gone": text("git.gone"),
    "moved": text("git.moved"),
    "exists": text("git.exists"),
    "damaged": text("git.damaged"),
    "full": text("git.full"),
    "empty": text("git.no_commit"),
    "unusable": text("git.unusable"),
    "slow": text("git.slow"),
}


def refused(kind: RefusalKind) -> GitRefusal:
    """Return a refusal with the usual sentence of its kind."""
    return GitRefusal(kind, _MESSAGES[kind])


# What is looked for in git's own words, in lower case; the first kind that is found counts.
_KINDS: dict[RefusalKind, tuple[str, ...]] = {
    "full": ("no space left", "disk quota exceeded", "unable to write (?:file|new index|loose object)"),
    "forbidden": ("returned error: 403", "dubious ownership"),
    "unauthorized": ("authentication failed", "could not read (?:username|password)", "unable to get password",
                     "returned error: 401"),
    "gone": ("repository '' not found", r"returned error: (?:404|410|30\d)", "does not appear to be a git repository",
             "does not exist", "couldn't find remote ref", "no such remote ref", "unable to update url base"),
    "unreachable": (r"returned error: (?:408|429|5\d\d)", "could not resolve", "failed to connect", "couldn't connect",
                    "connection", "timed out", "remote end hung up", "rpc failed", "early eof", "unexpected disconnect",
                    r"\bssl\b", r"\btls\b", "certificate", "empty reply", r"curl \d+", "http/2 stream", "expected flush",
                    "unexpected eof", "too slow", "another git process", "protocol error"),
    "damaged": ("corrupt", "missing (?:blob|tree|commit)", "unable to (?:read|parse)", "bad (?:object|tree|ref|signature)",
                "loose object", "broken", "not a git repository", "fsck error", "index-pack failed", "inflate",
                "invalid object", "index file"),
    "moved": ("cannot lock ref", "but expected", "reference already exists"),
    "exists": ("already exists", "already checked out", "already used by worktree"),
}  # fmt: skip
_QUOTED = re.compile(r"'[^'\n]*'")


def refusal_of(done: ProgramResult, otherwise: RefusalKind = "unusable") -> GitRefusal | None:
    """What a git that failed tells, `otherwise` where it is nothing known; None where it did not fail."""
    if not done.code:
        return None
    if done.code == STATUS_TOO_SLOW:
        return refused("slow")
    if done.code == TOO_LATE:
        return refused("unreachable")
    # What a server says, and names that somebody chose, are no words of git's.
    own = [line for line in done.errors.lower().splitlines() if not line.startswith("remote:")]
    said = _QUOTED.sub("''", "\n".join(own))
    for kind, patterns in _KINDS.items():
        if any(re.search(pattern, said) for pattern in patterns):
            return refused(kind)
    return refused(otherwise)


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

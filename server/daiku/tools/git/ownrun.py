"""Run git on Daiku's own repositories, without the settings and programs of others, and classify its errors."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from daiku.dataclass import dataclass
from daiku.texts.text import Text, text
from daiku.tools.git.repository import STATUS_TOO_SLOW, is_listing, run_listing
from daiku.tools.shell.capture import TIMED_OUT, ProgramResult, run_program, wait_for_program
from daiku.tools.shell.gitsettings import FOR_TOOLS, Settings, to_git_env
from daiku.tools.shell.process import wrap_in_reaper
from daiku.workspace.programs import build_safe_path, find_program
from daiku.workspace.repository import REACHES_NOTHING

# fmt: off
RefusalKind: TypeAlias = Literal[
    "unreachable", "unauthorized", "forbidden", "gone", "moved", "exists", "damaged", "full", "empty", "unusable", "slow",
]
# fmt: on
"""`empty`: no commit yet; `slow`: git does not finish matching ignore patterns; `unreachable`: may work
later, or may have worked; `moved`: a branch is not where it was expected; `unusable`: the request can never
work."""


@dataclass(frozen=True, slots=True)
class GitRefusal:
    """The reason that git did not do something: its kind, and a message for the user."""

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


def make_refusal(kind: RefusalKind) -> GitRefusal:
    """Return a refusal with the standard message of its kind."""
    return GitRefusal(kind, _MESSAGES[kind])


# Patterns in git's lowercase messages; the first matching kind applies.
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


def find_refusal(result: ProgramResult, otherwise: RefusalKind = "unusable") -> GitRefusal | None:
    """Return the refusal for a failed git, `otherwise` if its error is unknown; None if it succeeded."""
    if not result.code:
        return None
    if result.code == STATUS_TOO_SLOW:
        return make_refusal("slow")
    if result.code == TIMED_OUT:
        return make_refusal("unreachable")
    # Ignore lines from the server and quoted names: others chose their text.
    git_lines = [line for line in result.errors.lower().splitlines() if not line.startswith("remote:")]
    message = _QUOTED.sub("''", "\n".join(git_lines))
    for kind, patterns in _KINDS.items():
        if any(re.search(pattern, message) for pattern in patterns):
            return make_refusal(kind)
    return make_refusal(otherwise)


TIMEOUT_SECONDS = 300.0
"""Seconds for a git command on this machine."""
_LISTING_SECONDS = 60.0
"""Seconds for listing files by ignore patterns. For some patterns git never ends."""
MAX_LIST_BYTES = 256_000_000
"""Bytes of the longest list that is read in full."""
GIT_UNAVAILABLE = 127
"""Exit code of `read_git` if git is not installed or timed out."""
COMMIT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NOWHERE = "/dev/null"
# Without a home folder there are no user settings, no passwords (.netrc), and no user ignore file.
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
    """A git folder of ours, and its work tree (None: without one).

    Both are passed to git, so it does not read `.git` in the work tree.
    """

    folder: Path
    tree: Path | None = None

    async def run(
        self,
        *argv: str,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        settings: Settings = (),
        seconds: float = TIMEOUT_SECONDS,
    ) -> ProgramResult:
        """Run git with `argv`, without transports."""
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

    async def find_commit(self, name: str) -> str:
        """Return the commit of `name` (a full ref or a commit id); empty if there is none."""
        result = await self.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        commit = result.text.strip()
        return commit if result.code == 0 and COMMIT_ID.fullmatch(commit) else ""

    async def is_descendant(self, commit: str, ancestor: str) -> bool:
        """Return True if `ancestor` is `commit` or one of its ancestors."""
        return (await self.run("merge-base", "--is-ancestor", ancestor, commit)).code == 0


async def run_git(
    argv: list[str],
    cwd: Path,
    *,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    settings: Settings = (),
    seconds: float = TIMEOUT_SECONDS,
    inherited: tuple[int, ...] = (),
) -> ProgramResult:
    """Run git; kill it and its descendants on a timeout, a cancellation, or the death of this process.

    `settings` override the defaults.
    """
    roots = (cwd,) if cwd != Path("/") else ()
    git = find_program("git", roots)
    if not git:
        return ProgramResult(GIT_UNAVAILABLE, "git is not installed")
    full_env = _build_environment(roots, settings, env or {})

    async def run(limit: float) -> ProgramResult:
        command = wrap_in_reaper([git, "--no-pager", *argv])
        return await run_program(
            command, cwd, full_env, stdin, MAX_LIST_BYTES, seconds=limit, inherited=inherited
        )

    try:
        if is_listing(argv):
            return await run_listing(argv, cwd, min(seconds, _LISTING_SECONDS), run)
        return await run(seconds)
    except OSError as error:
        return ProgramResult(1, str(error))


def read_git(
    folder: Path, argv: tuple[str, ...], roots: tuple[Path, ...], *, stdin: str = "", seconds: float
) -> tuple[int, str]:
    """Run git to read the git folder `folder`, and return its exit code and output.

    Blocks for at most `seconds`.

    No program is taken from `roots`. The code is GIT_UNAVAILABLE if git is not installed or timed out.
    """
    git = find_program("git", roots)
    if not git:
        return GIT_UNAVAILABLE, ""
    full_env = _build_environment(roots, (), {"GIT_DIR": str(folder), "GIT_GRAFT_FILE": _NOWHERE})
    try:
        return wait_for_program([git, "--no-pager", *argv], folder, full_env, stdin, seconds=seconds)
    except (OSError, TimeoutError):
        return GIT_UNAVAILABLE, ""


def _build_environment(roots: tuple[Path, ...], settings: Settings, env: Mapping[str, str]) -> dict[str, str]:
    """Build the environment for git. `settings` and `env` override the defaults."""
    path = build_safe_path(os.environ.get("PATH") or os.defpath, roots)
    settings_env = to_git_env((*FOR_TOOLS, *_OWN, *settings))
    return {**_ENVIRONMENT, **settings_env, "PATH": path, **env}


def is_branch(name: str) -> bool:
    """Return True if `name` is a valid branch name that git does not interpret otherwise."""
    if not name or name in ("HEAD", "@") or len(name) > 240 or name.startswith(("-", "refs/", "/")):
        return False
    if re.search(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//", name) or name.endswith(("/", ".")):
        return False
    return not any(part.startswith(".") or part.endswith(".lock") for part in name.split("/"))

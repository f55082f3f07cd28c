"""A repository in which git may be run, with the settings that let it start no program of its choosing."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.texts.rules.truncate import OUTPUT_LIMIT
from daiku.texts.text import text
from daiku.tools.shell.capture import LARGEST_LIST, SECONDS, TOO_LATE, ProgramResult, run_program
from daiku.tools.shell.gitsettings import FOR_TOOLS, LISTED, Settings, git_settings, parse_settings
from daiku.workspace.programs import find_program, safe_path
from daiku.workspace.repository import REACHES_NOTHING, git_places, has_timed_out, note_timeout

# All that is passed on: what is looked for in lower case, and the kind that it is told as.
_KINDS: tuple[tuple[str, str], ...] = (
    (r"not a git repository", "this is no git repository"),
    (r"does not have any commits yet|bad default revision", "there are no commits yet"),
    (r"unknown revision|bad revision|ambiguous argument|invalid object name|not a valid object name", "there is no such commit, branch or range"),
    (r"did not match any file", "no file of the repository matches these paths"),
    (r"outside repository", "the path lies outside the repository"),
    (r"ignored by one of your \.gitignore", "these paths are ignored by .gitignore"),
    (r"tell me who you are|empty ident|auto-detect email", "git does not know who commits: user.name and user.email have to be set"),
    (r"empty commit message", "the message is empty"),
    (r"index\.lock|another git process|unable to create '.*\.lock'", "another git process is at work in this repository, or its lock was left behind"),
    (r"dubious ownership", "the repository belongs to another user of this machine"),
    (r"unmerged|you have not concluded|resolve", "there are conflicts that are not resolved"),
    (r"bad config|does not contain a section|key does not contain|bad numeric|bad boolean|invalid value|missing value|config file|include", "the repository's settings cannot be read"),
    (r"already exists", "it exists already"),
    (r"already (?:checked out|used by worktree)", "it is checked out elsewhere already"),
    (r"patch (?:failed|does not apply)|corrupt patch", "the patch does not fit"),
    (r"permission denied|operation not permitted|read-only file system", "a file may not be read or written"),
    (r"no space left", "the disk is full"),
    (r"corrupt|missing blob|unable to read|bad object|loose object|bad tree|broken", "the repository is damaged"),
    (r"transport|protocol|remote", "it needs another repository, and Daiku's git reaches none"),
)  # fmt: skip


def kind_of(error: str) -> str:
    """Return the kind of failure that the stderr of git reports; empty if stderr is empty."""
    if not error.strip():
        return ""
    low = error.lower()
    kind = next((kind for pattern, kind in _KINDS if re.search(pattern, low)), "")
    return f"Git says: {kind}." if kind else "Git failed for a reason that is not passed on."


_KEPT_VARIABLES = ("HOME", "PATH", "TMPDIR", "LANG", "XDG_CONFIG_HOME", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL",
                   "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")  # fmt: skip

STATUS_SECONDS = 10.0
"""Seconds for a git command that lists files by ignore patterns: git's matcher never ends on some of them."""
STATUS_TOO_SLOW = 123
"""The exit code of such a command that did not end in time, now or before."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A folder in which git may be run; `off` disables the programs that the repository's settings name."""

    git: str
    root: Path
    roots: tuple[Path, ...]
    off: Settings
    of_items: bool = False
    """True for a copy on which work items are processed: the git settings of the person do not apply there."""

    async def run(
        self,
        argv: list[str],
        *,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        literal: bool = True,
    ) -> tuple[int, str]:
        """Run git with `argv`. Return the exit code and the output, cut in the middle; after a failure its kind, never
        the message of git. `literal`: paths are not patterns."""
        done = await _run(self, argv, stdin, env, literal=literal)
        return done.code, "\n".join(
            part for part in (done.shown(OUTPUT_LIMIT - 1000), _failure(done)) if part
        )

    async def names(self, argv: list[str], *, literal: bool = True) -> tuple[int, str]:
        """Run git like `run`, for a list of names: the output is not truncated, and a too long one fails."""
        done = await _run(self, argv, None, None, literal=literal, largest=LARGEST_LIST)
        return done.code, _failure(done) or done.text


async def repository(root: Path, roots: tuple[Path, ...]) -> Repository | str:
    """Return the repository that contains `root`, or why git cannot be used there. No program is taken from `roots`, the
    folders of the workspace."""
    git = find_program("git", roots)
    if not git:
        return "Git is not installed, or not on PATH."
    places = await asyncio.to_thread(git_places, root, roots)
    if places is None:
        return f"{root.name} is no git repository."
    if isinstance(places, str):
        return f"The repository of {root.name} is not used: {places}."
    bare = Repository(git, root, roots, (), places.shared)
    wrong, off = await _look(bare)
    return wrong or Repository(git, root, roots, off, places.shared)


async def _look(found: Repository) -> tuple[str, Settings]:
    """Return why the repository is not used, empty if it is, and the settings that disable the programs it names."""
    code, top = await found.run(["rev-parse", "--show-toplevel"])
    if code != 0:
        return f"{found.root.name} is no git repository that can be used: {top.strip()}", ()
    if _astray(Path(top.strip()), found.root.resolve()):
        return (
            f"The repository's settings move its work tree to {top.strip()}, outside the workspace. Not run.",
            (),
        )
    done = await _run(found, list(LISTED), None, None, largest=LARGEST_LIST)
    if done.failure or done.code not in (0, 1):  # 1: there are none
        return f"{found.root.name} is no git repository that can be used: {_failure(done)}", ()
    settings = parse_settings(done.text)
    return "", (*settings.off, *settings.large_files)


def _failure(done: ProgramResult) -> str:
    if done.code == STATUS_TOO_SLOW:
        return text("git.slow")
    if done.failure:
        return f"Git was ended: {done.failure}."
    return kind_of(done.errors) if done.code else ""


def _astray(work_tree: Path, root: Path) -> bool:
    return work_tree != root and work_tree not in root.parents and root not in work_tree.parents


async def _run(
    found: Repository,
    argv: list[str],
    stdin: str | None,
    more: Mapping[str, str] | None,
    *,
    literal: bool = True,
    largest: int = 0,
) -> ProgramResult:
    env = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    if found.of_items:
        env = {"HOME": "/dev/null", "PATH": env.get("PATH", "")}
    env |= {
        "PATH": safe_path(os.environ.get("PATH") or os.defpath, found.roots),
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        **REACHES_NOTHING,
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        **git_settings((*FOR_TOOLS, *found.off)),
        **(more or {}),
    }
    whole = [found.git, "--no-pager", *(["--literal-pathspecs"] if literal else []), *argv]

    async def run(seconds: float) -> ProgramResult:
        return await run_program(whole, found.root, env, stdin, largest, seconds=seconds)

    return await (run_listing(argv, found.root, STATUS_SECONDS, run) if is_listing(argv) else run(SECONDS))


def is_listing(argv: list[str]) -> bool:
    """Return True for a git command that lists files by ignore patterns."""
    return argv[0] == "status" or "--exclude-standard" in argv


async def run_listing(
    argv: list[str], folder: Path, seconds: float, run: Callable[[float], Awaitable[ProgramResult]]
) -> ProgramResult:
    """Run a listing by `run`, unless it names no paths and git did not finish one in as many `seconds` before."""
    names_paths = "--" in argv[:-1]
    if not names_paths and has_timed_out(folder, seconds):
        return ProgramResult(STATUS_TOO_SLOW)
    done = await run(seconds)
    if done.code == TOO_LATE:
        note_timeout(folder, seconds)
        done.code = STATUS_TOO_SLOW
    return done

"""Run git in a repository whose own settings cannot start programs."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.texts.rules.truncate import OUTPUT_LIMIT
from daiku.texts.text import text
from daiku.tools.shell.capture import DEFAULT_SECONDS, MAX_LIST_BYTES, TIMED_OUT, ProgramResult, run_program
from daiku.tools.shell.gitsettings import FOR_TOOLS, LIST_ARGUMENTS, Settings, parse_settings, to_git_env
from daiku.workspace.programs import build_safe_path, find_program
from daiku.workspace.repository import REACHES_NOTHING, find_git_places, has_timed_out, note_timeout

# Patterns in git's lowercase messages, and the reported kind. Nothing else is passed on.
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


def classify_error(error: str) -> str:
    """Return the kind of error in git's stderr; empty if stderr is empty."""
    if not error.strip():
        return ""
    lower = error.lower()
    kind = next((kind for pattern, kind in _KINDS if re.search(pattern, lower)), "")
    return f"Git says: {kind}." if kind else "Git failed for a reason that is not passed on."


_PASSED_VARIABLES = ("HOME", "PATH", "TMPDIR", "LANG", "XDG_CONFIG_HOME", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL",
                   "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")  # fmt: skip

STATUS_SECONDS = 10.0
"""Seconds for a git command that lists files by ignore patterns. For some patterns git never ends."""
STATUS_TOO_SLOW = 123
"""Exit code of such a command that timed out, now or before."""


@dataclass(frozen=True, slots=True)
class GitRepository:
    """A folder in which git may run; `off`: settings that disable the repository's programs."""

    git: str
    root: Path
    roots: tuple[Path, ...]
    off: Settings
    of_items: bool = False
    """True for a copy of a work item: the user's git settings do not apply there."""

    async def run(
        self,
        argv: list[str],
        *,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        literal: bool = True,
    ) -> tuple[int, str]:
        """Run git with `argv`. Return the exit code and the output, cut in the middle.

        After a failure the output has its kind, never git's message. `literal`: paths are not patterns.
        """
        result = await _run_program(self, argv, stdin, env, literal=literal)
        return result.code, "\n".join(
            part for part in (result.format_for_model(OUTPUT_LIMIT - 1000), _describe_failure(result)) if part
        )

    async def list_names(self, argv: list[str], *, literal: bool = True) -> tuple[int, str]:
        """Run git like `run` for a list of names: the output is complete, and too long output is a failure."""
        result = await _run_program(self, argv, None, None, literal=literal, largest=MAX_LIST_BYTES)
        return result.code, _describe_failure(result) or result.text


async def open_repository(root: Path, roots: tuple[Path, ...]) -> GitRepository | str:
    """Return the repository that contains `root`, or why git cannot be used there.

    No program is taken from `roots`, the folders of the workspace.
    """
    git = find_program("git", roots)
    if not git:
        return "Git is not installed, or not on PATH."
    places = await asyncio.to_thread(find_git_places, root, roots)
    if places is None:
        return f"{root.name} is no git repository."
    if isinstance(places, str):
        return f"The repository of {root.name} is not used: {places}."
    bare = GitRepository(git, root, roots, (), places.shared)
    problem, off = await _check_repository(bare)
    return problem or GitRepository(git, root, roots, off, places.shared)


async def _check_repository(opened: GitRepository) -> tuple[str, Settings]:
    """Return why the repository is not usable (empty if it is), and the settings that disable its programs."""
    code, top = await opened.run(["rev-parse", "--show-toplevel"])
    if code != 0:
        return f"{opened.root.name} is no git repository that can be used: {top.strip()}", ()
    if _is_outside(Path(top.strip()), opened.root.resolve()):
        return (
            f"The repository's settings move its work tree to {top.strip()}, outside the workspace. Not run.",
            (),
        )
    result = await _run_program(opened, list(LIST_ARGUMENTS), None, None, largest=MAX_LIST_BYTES)
    if result.failure or result.code not in (0, 1):  # 1: no matching settings
        return f"{opened.root.name} is no git repository that can be used: {_describe_failure(result)}", ()
    settings = parse_settings(result.text)
    return "", (*settings.off, *settings.large_files)


def _describe_failure(result: ProgramResult) -> str:
    if result.code == STATUS_TOO_SLOW:
        return text("git.slow")
    if result.failure:
        return f"Git was ended: {result.failure}."
    return classify_error(result.errors) if result.code else ""


def _is_outside(work_tree: Path, root: Path) -> bool:
    return work_tree != root and work_tree not in root.parents and root not in work_tree.parents


async def _run_program(
    opened: GitRepository,
    argv: list[str],
    stdin: str | None,
    extra_env: Mapping[str, str] | None,
    *,
    literal: bool = True,
    largest: int = 0,
) -> ProgramResult:
    env = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
    if opened.of_items:
        env = {"HOME": "/dev/null", "PATH": env.get("PATH", "")}
    env |= {
        "PATH": build_safe_path(os.environ.get("PATH") or os.defpath, opened.roots),
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        **REACHES_NOTHING,
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        **to_git_env((*FOR_TOOLS, *opened.off)),
        **(extra_env or {}),
    }
    command = [opened.git, "--no-pager", *(["--literal-pathspecs"] if literal else []), *argv]

    async def run(seconds: float) -> ProgramResult:
        return await run_program(command, opened.root, env, stdin, largest, seconds=seconds)

    return await (
        run_listing(argv, opened.root, STATUS_SECONDS, run) if is_listing(argv) else run(DEFAULT_SECONDS)
    )


def is_listing(argv: list[str]) -> bool:
    """Return True if the git command lists files by ignore patterns."""
    return argv[0] == "status" or "--exclude-standard" in argv


async def run_listing(
    argv: list[str], folder: Path, seconds: float, run: Callable[[float], Awaitable[ProgramResult]]
) -> ProgramResult:
    """Run a listing with `run`, unless one without paths timed out before with the same `seconds`."""
    names_paths = "--" in argv[:-1]
    if not names_paths and has_timed_out(folder, seconds):
        return ProgramResult(STATUS_TOO_SLOW)
    result = await run(seconds)
    if result.code == TIMED_OUT:
        note_timeout(folder, seconds)
        result.code = STATUS_TOO_SLOW
    return result

"""Git: status, diff and log with typed arguments, and no program of the repository's choosing."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pydantic import Field

from daiku.domain.base import JsonObject
from daiku.domain.errors import DaikuError
from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.guard.rules.protected.paths import holds_secrets
from daiku.run.rules.outside import Workspace
from daiku.texts.text import text as sentence
from daiku.tools.face import Face
from daiku.tools.git.repository import STATUS_TOO_SLOW, Repository, repository
from daiku.tools.tool import Args, Tool, ToolContext, failed

MOST = 50
"""Submodules that are asked."""
_PATHS = ("config", "--file", ".gitmodules", "--null", "--get-regexp", r"^submodule\..*\.path$")


async def find_submodules(
    found: Repository, names: list[str], workspace: Workspace
) -> tuple[tuple[Path, Repository], ...]:
    """Return the submodules that are checked out below the folder of `found`, and that `names` lead to."""
    code, top = await found.run(["rev-parse", "--show-toplevel"])
    above = Path(top.strip())
    if code != 0 or not (above / ".gitmodules").is_file():  # one look
        return ()
    whole = Repository(found.git, above, found.roots, found.off, found.of_items)
    _, listed = await whole.names(list(_PATHS))
    root = found.root.resolve()  # likewise
    wanted = [root / name if name != "." else root for name in names] or [root]
    asked: list[tuple[Path, Repository]] = []
    for each in listed.split("\0")[:MOST]:
        place = above / each.partition("\n")[2]
        near = any(place.is_relative_to(name) for name in wanted)
        if not near or place == above or not _is_checked_out(place, root) or workspace.hidden(place):
            continue
        nested = await repository(place, found.roots)
        if isinstance(nested, Repository):
            asked.append((place.relative_to(root), nested))
    return tuple(asked)


def nearest_repository(root: Path, places: list[Path]) -> Path:
    """Return the submodule below `root` that all the places lie in, or `root`."""
    around = places[0].parents if places else ()
    inner = (
        folder
        for folder in around
        if root in folder.parents
        and (folder / ".git").exists()
        and all(folder in each.parents for each in places)
    )
    return next(inner, root)


def _is_checked_out(place: Path, root: Path) -> bool:
    """Return True for a repository of its own in `root`, which no link leads to."""
    return place.is_relative_to(root) and place.resolve() == place and (place / ".git").exists()


_REF = re.compile(r"(?!-)[^\s\x00-\x1f\x7f:?*\\]+")


class StatusArgs(Args):
    paths: tuple[str, ...] = Field(default=(), description="only these")


class DiffArgs(Args):
    """`ref` empty: the working tree."""

    ref: str = Field(default="", description="a commit, or a range: main...HEAD")
    staged: bool = Field(default=False, description="what would be committed")
    paths: tuple[str, ...] = Field(default=(), description="only these")
    stat: bool = Field(default=False, description="only names and counts")


class LogArgs(Args):
    ref: str = Field(default="", description="a commit, branch or range to begin at")
    paths: tuple[str, ...] = Field(default=(), description="only commits that touch these")
    limit: int = Field(default=20, ge=1, le=500, description="how many; 20 without it")
    patch: bool = Field(default=False, description="with their diffs")


async def status(args: StatusArgs, context: ToolContext) -> ToolResult:
    """The branch and the changed files."""
    wanted = ["status", "--short", "--branch", "--ignore-submodules=dirty", "--untracked-files=all"]
    told = await answer(wanted, "", args.paths, context, "Nothing has changed.")
    inner = ["status", "--short", "--ignore-submodules=dirty", "--untracked-files=all"]
    return await _add_submodules(told, inner, args.paths, context, shows_content=False)


async def diff(args: DiffArgs, context: ToolContext) -> ToolResult:
    """Changes as a unified diff."""
    wanted = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty"]
    wanted += ["--cached"] if args.staged else []
    wanted += ["--stat"] if args.stat else []
    told = await answer(wanted, args.ref, args.paths, context, "", shows_content=True)
    if told.ok and not args.ref:
        told = await _add_submodules(told, wanted, args.paths, context, shows_content=True)
    return told if told.text else told.model_copy(update={"text": "No differences."})


async def _add_submodules(
    told: ToolResult, wanted: list[str], paths: tuple[str, ...], context: ToolContext, *, shows_content: bool
) -> ToolResult:
    """Return what was told of a repository, with what `wanted` tells of each of its submodules that changed."""
    placed = await repository_of(paths, context) if told.ok else told
    if isinstance(placed, ToolResult):
        return told
    parts = [told.text] if told.text else []
    for inside, nested in await find_submodules(*placed, context.workspace):
        prefixes = [
            f"--{side}-prefix={letter}/{inside.as_posix()}/" for side, letter in (("src", "a"), ("dst", "b"))
        ]
        asked = [*wanted, *(prefixes if shows_content else ())]
        more = await ask(nested, [], asked, "", context, "", shows_content=shows_content)
        if more.text:
            parts.append(f"In the submodule {inside.as_posix()}:\n{more.text}")
    return told.model_copy(update={"text": "\n".join(parts)}) if parts else told


async def log(args: LogArgs, context: ToolContext) -> ToolResult:
    """Commits, the newest first."""
    wanted = [
        "log",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        f"--max-count={args.limit}",
        "--date=iso-strict",
    ]
    wanted += ["--format=%h %ad %an%d%n    %s", *(["--patch"] if args.patch else [])]
    return await answer(wanted, args.ref, args.paths, context, "No commits.", shows_content=args.patch)


async def answer(
    wanted: list[str],
    ref: str,
    paths: tuple[str, ...],
    context: ToolContext,
    empty: str,
    *,
    shows_content: bool = False,
) -> ToolResult:
    """Run git and tell what it said. Options first, then the ref, then `--` and the paths.
    `shows_content`: text of files is in it, and that of files of secrets and of closed ones is left out."""
    if ref and (not _REF.fullmatch(ref) or "::" in ref):
        return failed(f"{ref!r} is no commit, branch or range. Right: main, HEAD~2, v1.0, main...HEAD.")
    placed = await repository_of(paths, context)
    if isinstance(placed, ToolResult):
        return placed
    found, names = placed
    return await ask(found, names, wanted, ref, context, empty, shows_content=shows_content)


async def ask(
    found: Repository,
    names: list[str],
    wanted: list[str],
    ref: str,
    context: ToolContext,
    empty: str,
    *,
    stdin: str | None = None,
    shows_content: bool = False,
) -> ToolResult:
    """Run git in a repository and tell what it said, without the text of closed files if it `shows_content`."""
    hidden: tuple[str, ...] = ()
    pathspecs = names
    if shows_content:
        listed = await _not_to_show(found, wanted, ref, names, context.workspace)
        if isinstance(listed, str):
            return failed(listed)
        hidden = listed
        pathspecs = [f":(literal){name}" for name in names] + [
            f":(top,exclude,literal){name}" for name in hidden
        ]
    argv = [*wanted, *(["--end-of-options", ref] if ref else []), "--", *pathspecs]
    code, text = await found.run(argv, stdin=stdin, literal=not shows_content)
    data: JsonObject = {"exitCode": code, "output": text}
    if code == STATUS_TOO_SLOW:
        return failed(sentence("git.slow"))
    if code != 0:
        return ToolResult(ok=False, text=f"git {wanted[0]} failed with exit code {code}:\n{text}", data=data)
    left_out = "they look like files of secrets or are closed to you"
    note = f"\n[Not shown, because {left_out}: {', '.join(hidden)}.]" if hidden else ""
    return ToolResult(ok=True, text=((text.rstrip("\n") or empty) + note).lstrip("\n"), data=data)


async def _not_to_show(
    found: Repository, wanted: list[str], ref: str, names: list[str], workspace: Workspace
) -> tuple[str, ...] | str:
    """Which of the files that `wanted` would show hold secrets by their names or are closed to the agent, from
    the top of the work tree; or why that cannot be told."""
    quiet = [
        option
        for option in wanted
        if option not in ("--stat", "--patch") and not option.startswith("--format=")
    ]
    quiet += ["--name-only", "-z", "--no-renames", *(["--format="] if wanted[0] == "log" else [])]
    code, listed = await found.names([*quiet, *(["--end-of-options", ref] if ref else []), "--", *names])
    if code != 0:
        return f"git {wanted[0]} failed with exit code {code}:\n{listed}"
    changed = dict.fromkeys(name.strip("\n") for name in listed.split("\0"))
    code, said = await found.run(["rev-parse", "--show-toplevel"])
    if code != 0:
        return f"git {wanted[0]} failed with exit code {code}:\n{said}"
    top = Path(said.strip("\n"))
    return tuple(n for n in changed if n and (holds_secrets(n) or workspace.hidden(top / n)))


async def repository_of(
    paths: tuple[str, ...], context: ToolContext
) -> tuple[Repository, list[str]] | ToolResult:
    """The repository that a call is about, and `paths` as seen from its folder."""
    placed = _place_of(paths, context)
    if isinstance(placed, ToolResult):
        return placed
    root, names = placed
    found = await repository(root, context.workspace.roots)
    return failed(found) if isinstance(found, str) else (found, names)


def _place_of(paths: tuple[str, ...], context: ToolContext) -> tuple[Path, list[str]] | ToolResult:
    """The folder of the workspace that git runs in, and `paths` as seen from it."""
    roots = context.workspace.roots
    if not roots:
        return failed("No folder is open.")
    try:
        places = [context.workspace.locate(path) for path in paths]
    except DaikuError as error:
        return failed(f"Not run: {error.failure.message}")
    root = next((r for r in roots if places and (places[0] == r or r in places[0].parents)), roots[0])
    root = nearest_repository(root, places)
    names = [os.path.relpath(place, root) for place in places]
    if any(name.startswith("..") for name in names):
        return failed(
            "Not run: the paths lie in different folders of the workspace. Name those of one folder."
        )
    return root, names


GIT_TOOLS = (
    Tool(
        "git/status", "read", StatusArgs, status, parallel=True,
        face=Face("source-control", Label("Git status", "Gitの状態"), answer="size"),
        description="Show the branch and which files are staged, changed or untracked.",
    ),
    Tool(
        "git/diff", "read", DiffArgs, diff, parallel=True,
        face=Face("diff-multiple", Label("Git diff", "Gitの差分"), "{paths|ref}", answer="size"),
        description="Show changes as a diff; of the working tree where nothing else is said.",
    ),
    Tool(
        "git/log", "read", LogArgs, log, parallel=True,
        face=Face("history", Label("Git log", "Gitの履歴"), "{paths|ref}", answer="size"),
        description="List commits, the newest first, with their authors and dates.",
    ),
)  # fmt: skip
